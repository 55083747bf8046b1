//go:build unix

package wasm

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestACompilerThatOthersWaitedFor has another part of the process wait for a child, so that nobody knows how it ended.
func TestACompilerThatOthersWaitedFor(t *testing.T) {
	t.Parallel()
	command := exec.Command("/bin/sh", "-c", "exit 0")
	require.NoError(t, command.Start())
	_, err := syscall.Wait4(command.Process.Pid, nil, 0, nil)
	require.NoError(t, err)
	require.Error(t, command.Wait())
	w := &worker{command: command, crash: &crashText{}, exited: make(chan struct{})}
	close(w.exited)
	b := &processes{config: Config{CompileTimeout: time.Second}}
	require.Equal(t, KindLost, w.death(io.EOF).Kind)
	require.ErrorContains(t, b.compilerFailure(w, io.EOF), "EOF")
}

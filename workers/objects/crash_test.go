//go:build unix

package objects

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKilledHolder kills a process with objects in memory and on disk: nothing of
// them is left.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holdDir+"="+dir)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NotEqual(t, "0", strings.TrimSpace(line), "some are on disk")
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	open(t, Options{Dir: dir})
}

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// TestHeadEndsWithItsStore has a head whose files may not grow serve a store: once
// that has failed the head ends, so that others can open the store.
func TestHeadEndsWithItsStore(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	large := filepath.Join(c.dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20), 0o600))
	cmd := exec.Command("sh", "-c", `ulimit -f 400; exec "$0" "$@"`, os.Args[0],
		"head", "--rest-api", "127.0.0.1:0", "--json")
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), mainVariable+"=1", "FUTURA_STORE="+c.store)
	log := &stacktest.Buffer{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.NoError(t, json.NewDecoder(out).Decode(&endpoint{}), "%s", log)
	submit := c.command("submit", "go:f", "--args-file", large)
	require.NoError(t, submit.Start())
	t.Cleanup(func() {
		_ = submit.Process.Kill()
		_ = submit.Wait()
	})
	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Wait(), &exit), "%s", log)
	require.Equal(t, exitStore, exit.ExitCode(), "%s", log)
	require.Contains(t, log.String(), "file too large")
	require.Contains(t, c.ok("check"), "0 problems")
}

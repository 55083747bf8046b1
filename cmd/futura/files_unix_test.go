//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServeWithTooFewFilesEnds serves a store, also as a worker does, where the process may have hardly more files open
// than the store takes.
func TestServeWithTooFewFilesEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"dev", "--listen", "127.0.0.1:0"},
		{"head", "--listen", "127.0.0.1:0"}, {"worker"}} {
		args := append([]string{"-c", `ulimit -n 12 && exec "$@"`, "sh", os.Args[0], "--store",
			"embedded:" + filepath.Join(t.TempDir(), "store")}, command...)
		cmd := exec.CommandContext(ctx, "sh", args...)
		cmd.Env = append(os.Environ(), mainVariable+"=1", configurationVariable+"="+t.TempDir())
		said, err := cmd.CombinedOutput()
		require.NoError(t, ctx.Err(), "%s", said)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Contains(t, string(said), "may have 12 files and connections open, and needs 32 at least")
	}
}

package remote

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// startChild starts a process that serves a store of its own until the end of
// the test, on disk in dir or in memory, and returns it.
func startChild(t testing.TB, path, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveSocket+"="+path, serveDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "serving\n", line)
	return cmd
}

// TestServingProcessIsKilled kills the process that serves, again and again,
// while clients write: what was acknowledged is there, and they go on by
// themselves with the next process.
func TestServingProcessIsKilled(t *testing.T) {
	t.Parallel()
	const kills, rows = 4, 25
	path := socket(t)
	dir := filepath.Join(t.TempDir(), "store")
	child := startChild(t, path, dir)
	db := dial(t, Address{Network: "unix", Target: path})
	for round := range kills {
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := range rows {
				update(t, db, func(tx kv.Tx) { tx.Set([]byte{byte(round), byte(i)}, []byte("value")) })
			}
		}()
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		child = startChild(t, path, dir)
		<-written
		require.NotEmpty(t, db.ServedOpening())
	}
	for round := range kills {
		for i := range rows {
			require.Equal(t, "value", get(t, db, string([]byte{byte(round), byte(i)})))
		}
	}
}

package remote

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// startChild starts a process that serves a store of its own until the end of
// the test, on disk in dir or in memory, and returns it.
func startChild(t testing.TB, path, dir string) *exec.Cmd {
	return startProcess(t, "serving\n", serveSocket+"="+path, serveDir+"="+dir)
}

// startProcess starts this test's program with more in its environment, and
// waits until it says what it should.
func startProcess(t testing.TB, says string, environment ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environment...)
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
	require.Equal(t, says, line)
	return cmd
}

// TestServingProcessIsKilled kills the process that serves, again and again,
// while clients write: what was acknowledged is there, and they go on by
// themselves with the next process.
func TestServingProcessIsKilled(t *testing.T) {
	t.Parallel()
	const kills, rows = 4, 25
	path := socketPath(t)
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
		require.NotEmpty(t, db.Traits().Opening)
	}
	for round := range kills {
		for i := range rows {
			require.Equal(t, "value", get(t, db, string([]byte{byte(round), byte(i)})))
		}
	}
}

// TestKilledWorkerLosesItsClaimsAtOnce kills a process that holds futures. Its
// heartbeat would be missed in an hour.
func TestKilledWorkerLosesItsClaimsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Millisecond)
	c.submit(t)
	child := startProcess(t, "claimed\n", claimSocket+"="+c.proxy.server.Target)
	require.NoError(t, child.Process.Kill())
	workers, reaped, err := admin.ReapConnection(t.Context(), c.here, <-c.gone)
	require.NoError(t, err)
	require.Equal(t, 1, workers)
	require.Equal(t, claimed, reaped)
	c.promote(t)
	worker, again := c.take(t, c.here)
	outcomes, err := worker.Finish(t.Context(), again)
	require.NoError(t, err)
	requireAll(t, fdbmodel.Applied, outcomes)
	c.requireSound(t)
}

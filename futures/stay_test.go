package futures_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
)

// said are the lines of a log.
type said chan string

// Write implements io.Writer.
func (s said) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}

// TestAWorkerWithADirectoryComesBackWithItsObjects stops the only worker, twice. What it held is
// awaited meanwhile, is not made again, and comes from the next worker with the directory;
// a file that was torn is not believed: its result is made again.
func TestAWorkerWithADirectoryComesBackWithItsObjects(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.dir = filepath.Join(t.TempDir(), "objects")
	stop := o.start(64 << 20)
	made, err := fill.Submit(o.ctx, o.client, 2<<20)
	require.NoError(t, err)
	_, err = made.Await(o.ctx)
	require.NoError(t, err)
	put, err := o.client.Put(o.ctx, bytes.NewReader(patternOf(3<<20)), futures.PutOptions{AsObject: true})
	require.NoError(t, err)
	kept := func() []string {
		found, err := filepath.Glob(filepath.Join(o.dir, "futura-kept-*", "*"))
		require.NoError(t, err)
		return found
	}
	for range 2 {
		stop()
		require.Len(t, kept(), 3, "two objects, and their list")
		cluster := o.client.Cluster()
		waits := make(said, 100)
		again, err := futures.FromCluster(cluster, futures.Options{Logger: slog.New(slog.NewTextHandler(waits, nil))})
		require.NoError(t, err)
		value := make(chan []byte, 2)
		failed := make(chan error, 2)
		for _, id := range []futures.ID{made.ID(), put.ID()} {
			go func() {
				r, err := again.Future(id).Await(o.ctx)
				value <- r.Value
				failed <- err
			}()
		}
		for waiting := map[futures.ID]bool{}; len(waiting) < 2; {
			line := <-waits
			require.Contains(t, line, "keeps it in its directory")
			for _, id := range []futures.ID{made.ID(), put.ID()} {
				if strings.Contains(line, id.String()) {
					waiting[id] = true
				}
			}
		}
		stop = o.start(64 << 20)
		require.ElementsMatch(t, []int{2<<20 + 5, 3 << 20}, []int{len(<-value), len(<-value)})
		require.NoError(t, errors.Join(<-failed, <-failed))
		require.Equal(t, int64(1), o.runs.Load(), "nothing was made again")
		copies, err := results.Of(cluster).Copies(o.ctx, put.ID())
		require.NoError(t, err)
		require.Len(t, copies, 1, "that of the worker that left is replaced")
		require.NoError(t, again.Close(o.ctx))
		o.requireSound()
	}

	stop()
	for _, one := range kept() {
		if filepath.Base(one) != "list.json" {
			require.NoError(t, os.Truncate(one, 1<<20))
		}
	}
	o.start(64 << 20)
	again, err := futures.FromCluster(o.client.Cluster(), futures.Options{})
	require.NoError(t, err)
	r, err := again.Future(made.ID()).Await(o.ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2), o.runs.Load(), "it was made again")
	require.NotEmpty(t, r.Value)
	_, err = again.Future(put.ID()).Await(o.ctx)
	require.ErrorIs(t, err, futures.ErrFailed)
	require.NoError(t, again.Close(o.ctx))
	o.requireSound()
}

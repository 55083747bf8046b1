package remote

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// TestWorkersOutliveTheirServer has the process that serves the store stop and
// start again, more often than a future has lives. It has a worker of its own,
// as futura dev does, and another worker runs a future through all of it.
func TestWorkersOutliveTheirServer(t *testing.T) {
	t.Parallel()
	const restarts = 5
	dir, path := filepath.Join(t.TempDir(), "store"), socketPath(t)
	config := layout.Config{Heartbeat: 100 * time.Millisecond, DeadAfter: 30 * time.Second}
	// serveOnce is one life of the server. It returns how to end it.
	serveOnce := func() (*futures.Client, func()) {
		store, err := embedded.Open(t.Context(), dir, embedded.Options{})
		require.NoError(t, err)
		home, err := futures.New(t.Context(), Share(store), futures.Options{Config: config})
		require.NoError(t, err)
		own, err := workers.New(home, workers.Options{Slots: 1})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- own.Run(ctx) }()
		<-own.Ready()
		stop := serveAt(t, path, store, ServerOptions{OnDisconnect: func(id string) {
			_, _, _ = admin.ReapConnection(context.Background(), home.Cluster(), id)
		}})
		return home, func() {
			stop()
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, home.Close(context.Background()))
			require.NoError(t, store.Close())
		}
	}
	home, end := serveOnce()
	double, hold := futures.Define[int, string]("double"), make(chan struct{})
	task, err := double.Submit(t.Context(), home, 1)
	require.NoError(t, err)
	stopWorker := runWorker(t, dial(t, Address{Network: "unix", Target: path}), double, hold)
	row := func() *layout.Row {
		row, err := home.Cluster().Get(t.Context(), task.ID())
		require.NoError(t, err)
		return &row
	}
	require.Eventually(t, func() bool { return row().State() == layout.Claimed }, patience, time.Millisecond)
	claim := row().Claim.Token
	beat := func() string {
		members, err := home.Cluster().Workers(t.Context())
		require.NoError(t, err)
		for _, m := range members {
			if m.ID == claim.Worker {
				require.True(t, m.Alive)
				return string(m.Beat)
			}
		}
		require.Fail(t, "the worker is gone")
		return ""
	}
	for range restarts {
		end()
		home, end = serveOnce()
		before := beat()
		require.Eventually(t, func() bool { return beat() != before }, patience, time.Millisecond)
	}
	require.Equal(t, claim, row().Claim.Token)
	close(hold)
	require.Eventually(t, func() bool { return row().State() == layout.Realized }, patience, time.Millisecond)
	require.Zero(t, row().Attempts)
	stopWorker()
	end()
}

package remote

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// TestWorkAcrossProcesses submits in one process and runs in another, both
// connected to a third, while both connections are lost now and then, the
// worker's for so long that it is reaped.
func TestWorkAcrossProcesses(t *testing.T) {
	t.Parallel()
	const count, cuts = 400, 2
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	// Heartbeats that would take an hour to be missed: only the connection tells.
	config := layout.Config{Heartbeat: time.Second, DeadAfter: time.Hour}
	home, err := futures.New(t.Context(), Share(store), futures.Options{Config: config})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, home.Close(context.Background())) })
	reaped := make(chan int, 2*cuts)
	at, _ := serve(t, store, ServerOptions{Grace: time.Millisecond, OnDisconnect: func(id string) {
		n, _, err := admin.ReapConnection(context.Background(), home.Cluster(), id)
		if err == nil && n > 0 {
			reaped <- n
		}
	}})

	near, far := newProxy(t, at), newProxy(t, at)
	client, err := futures.New(t.Context(), dial(t, near.at), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })

	double := futures.Define[int, string]("double")
	hold := make(chan struct{}, count)
	stopWorker := runWorker(t, dial(t, far.at), double, hold)
	var asked []*futures.Typed[string]
	for i := range count {
		f, err := double.Submit(t.Context(), client, i)
		require.NoError(t, err)
		asked = append(asked, f)
		if i%(count/cuts) == 1 {
			require.Eventually(t, func() bool {
				members, err := home.Cluster().Workers(t.Context())
				return err == nil && len(members) == 1 && members[0].Alive
			}, patience, time.Millisecond)
			near.cut()
			far.setRefuse(true)
			far.cut()
			require.Equal(t, 1, <-reaped)
			far.setRefuse(false)
			for range count / cuts / 2 {
				hold <- struct{}{}
			}
		}
	}
	close(hold)
	for i, f := range asked {
		text, err := f.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(2*i), text)
	}
	stopWorker()
	report, err := audit.Check(t.Context(), home.Cluster(), audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

// runWorker runs a worker until stop. Its functions wait for hold.
func runWorker(t *testing.T, db *Database, double futures.Definition[int, string], hold <-chan struct{}) (stop func()) {
	c, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	w, err := workers.New(c, workers.Options{Slots: 4})
	require.NoError(t, err)
	require.NoError(t, w.Register(double.Bind(func(ctx context.Context, in int) (string, error) {
		select {
		case <-hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return fmt.Sprint(2 * in), nil
	})))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, c.Close(context.Background()))
	})
	t.Cleanup(stop)
	return stop
}

package futures_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/workers"
)

// passing is a method of an actor that awaits a call of itself to another one.
func passing() futures.Method[[]string, int] {
	actor := futures.DefineActor[int]("passing")
	var pass futures.Method[[]string, int]
	pass = futures.DefineMethod(actor, "pass", func(ctx context.Context, n *int, to []string) (int, error) {
		*n++
		if len(to) == 0 {
			return *n, nil
		}
		c, err := futures.FromContext(ctx)
		if err != nil {
			return 0, err
		}
		return pass.Call(ctx, c, to[0], to[1:])
	}, futures.Retries(0))
	return pass
}

// TestActorsThatAwaitEachOther are told so, those of two workers too, and no actor stays blocked.
func TestActorsThatAwaitEachOther(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, db, pass := context.Background(), embedded.OpenMemory(embedded.Options{}), passing()
		c, err := futures.New(ctx, db, futures.Options{})
		require.NoError(t, err)
		func() {
			for range 2 {
				w := work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 2}) },
					func(w *workers.Worker) error { return w.Register(pass.Bind()) })
				defer w.stop()
			}
			start := time.Now()
			_, err = pass.Call(ctx, c, "a", []string{"b", "c", "a"})
			require.ErrorContains(t, err, futures.ErrCircle.Error())
			require.ErrorContains(t, err, "pass of actor passing/c) awaits ")
			dead := c.Cluster().Config().DeadAfter
			require.Less(t, time.Since(start), 3*dead)
			require.GreaterOrEqual(t, time.Since(start), 2*dead)
			for _, key := range []string{"a", "b", "c"} {
				_, err = pass.Call(ctx, c, key, nil)
				require.NoError(t, err)
			}
		}()
		require.NoError(t, c.Close(ctx))
		require.NoError(t, db.Close())
	})
}

func TestTestsOfActorsThatAwaitEachOther(t *testing.T) {
	t.Parallel()
	pass, cluster := passing(), futurestest.New(t)
	cluster.Register(pass.Bind())
	_, err := pass.Call(t.Context(), cluster.Client, "a", []string{"b", "a"})
	require.ErrorContains(t, err, "nothing is left that could run")
	require.ErrorContains(t, err, "It waits for its turn on actor passing/a")
}

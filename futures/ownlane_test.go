package futures_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestAwaitOfTheOwnLane has functions await futures that they submit: those of their own
// lane of width 1 are refused at once, also where they exist already, and run once the function has ended. Others are
// awaited.
func TestAwaitOfTheOwnLane(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newClient(t, storetest.New(t))
	require.NoError(t, c.SetLaneKind(ctx, "one", futures.LaneSettings{}))
	require.NoError(t, c.SetLaneKind(ctx, "two", futures.LaneSettings{Width: 2}))
	children := make(chan *futures.Future, 10)
	child := func(_ context.Context, args []byte) ([]byte, error) { return args, nil }
	parent := func(lane futures.Lane) workers.Function {
		return func(ctx context.Context, _ []byte) ([]byte, error) {
			own, err := futures.FromContext(ctx)
			if err != nil {
				return nil, workers.Permanent(err)
			}
			var child *futures.Future
			for range 2 { // as a later attempt does, which finds it
				child, err = own.Submit(ctx, futures.Task{Function: "go:child", Lane: lane, Delay: time.Millisecond,
					Key: fmt.Sprint("child in ", lane)})
				if err != nil {
					return nil, workers.Permanent(err)
				}
			}
			children <- child
			if _, err = own.AwaitAll(ctx, []*futures.Future{child}); err != nil {
				return nil, workers.Permanent(err)
			}
			return []byte("done"), nil
		}
	}
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 4}) },
		func(w *workers.Worker) error { return w.Register("child", child) },
		func(w *workers.Worker) error { return w.Register("same", parent(futures.Lane{Kind: "one", Key: "a"})) },
		func(w *workers.Worker) error { return w.Register("other", parent(futures.Lane{Kind: "one", Key: "b"})) },
		func(w *workers.Worker) error { return w.Register("wide", parent(futures.Lane{Kind: "two", Key: "a"})) },
		func(w *workers.Worker) error { return w.Register("none", parent(futures.Lane{})) })
	for function, lane := range map[string]futures.Lane{
		"go:same": {Kind: "one", Key: "a"}, "go:other": {Kind: "one", Key: "a"}, "go:wide": {Kind: "two", Key: "a"},
		"go:none": {Kind: "one", Key: "a"},
	} {
		f, err := c.Submit(ctx, futures.Task{Function: function, Lane: lane})
		require.NoError(t, err)
		_, err = f.Await(ctx)
		if function == "go:same" {
			require.ErrorIs(t, err, futures.ErrFailed)
			require.ErrorContains(t, err, futures.ErrOwnLane.Error())
			require.ErrorContains(t, err, "lane one/a")
		} else {
			require.NoError(t, err, function)
		}
		_, err = c.Future((<-children).ID()).Await(ctx)
		require.NoError(t, err, "the child runs in the end")
	}
}

// TestAwaitOfWhatIsOverInTheOwnLane has a call cancel another one to its actor, and await it.
func TestAwaitOfWhatIsOverInTheOwnLane(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	undo := futures.DefineMethod(b.account, "undo", func(ctx context.Context, _ *account, n int) (int, error) {
		f, err := b.deposit.Submit(ctx, cluster.Client, "alice", n)
		if err != nil {
			return 0, err
		}
		if _, err := f.Cancel(ctx, "undone"); err != nil {
			return 0, err
		}
		if _, err = f.Await(ctx); errors.Is(err, futures.ErrFailed) {
			return n, nil
		}
		return 0, workers.Permanent(err)
	})
	cluster.Register(undo.Bind())
	_, err := undo.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
}

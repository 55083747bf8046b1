package fdbmodel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/internal/storetest"
)

func TestLifeOfAFuture(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "test", fdbmodel.Options{Config: layout.Config{Shards: 16}})
	require.NoError(t, err)
	session, err := c.DrawSessionID()
	require.NoError(t, err)
	box := mailbox.Open(c, session)
	subs := make([]fdbmodel.Submission, 250)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:noop", Session: session, MaxRetries: 3},
			Args: []byte("x")}
	}
	got, err := c.Submit(ctx, subs)
	require.NoError(t, err)
	require.Len(t, got, 250)

	w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:noop"}, Capacity: layout.Resources{Slots: 4}})
	require.NoError(t, err)
	done := 0
	for done < 250 {
		a, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 4}, Max: 64})
		require.NoError(t, err)
		require.NotEmpty(t, a.Futures)
		var cs []fdbmodel.Completion
		for i := range a.Futures {
			require.NoError(t, a.Futures[i].Err)
			require.Equal(t, []byte("x"), a.Futures[i].Inline)
			cs = append(cs, fdbmodel.Completion{Future: &a.Futures[i], Result: &layout.Result{Value: []byte("y")}})
		}
		out, err := w.Finish(ctx, cs)
		require.NoError(t, err)
		for _, o := range out {
			require.Equal(t, fdbmodel.Applied, o)
		}
		out, err = w.Finish(ctx, cs)
		require.NoError(t, err)
		for _, o := range out {
			require.Equal(t, fdbmodel.Already, o)
		}
		done += len(cs)
	}
	seen := map[layout.ID]bool{}
	for len(seen) < 250 {
		notices, watch, err := box.Listen(ctx)
		require.NoError(t, err)
		if watch != nil {
			watch.Cancel()
		}
		for _, n := range notices {
			seen[n.ID] = true
			require.Equal(t, []byte("y"), n.Result.Value)
		}
	}
	require.NoError(t, box.Acknowledge(ctx))
	_, watch, err := box.Listen(ctx)
	require.NoError(t, err)
	watch.Cancel()
	watch, err = w.EnterIdleRing(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 4}})
	require.NoError(t, err)
	require.NotNil(t, watch)
	_, err = c.Submit(ctx, subs[:1])
	require.NoError(t, err)
	<-watch.Done()
	require.NoError(t, w.Leave(ctx))
}

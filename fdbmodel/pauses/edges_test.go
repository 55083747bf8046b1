package pauses_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

func TestPausesOfPartsAndNeighbours(t *testing.T) {
	t.Parallel()
	list := []pauses.Pause{{What: pause.Function, Name: "go:a"}, {What: pause.Queue, Name: "q"}}
	for _, c := range []struct {
		queue, function string
		paused          bool
	}{{"x", "go:a", true}, {"x", "go:a/b", true}, {"x", "go:ab", false}, {"q", "go:b", true}, {"qq", "go:b", false}} {
		_, paused := pauses.Find(list, c.queue, c.function)
		require.Equal(t, c.paused, paused, "%+v", c)
	}
	s := modeltest.NewStage(t)
	first, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:other", "why")
	require.NoError(t, err)
	s.Clock.Advance(time.Minute)
	again, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:other", "why not")
	require.NoError(t, err)
	require.Equal(t, first.At, again.At)
	require.Equal(t, "why not", again.Reason)
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Function = "go:unknown" })
	own := s.Submit()
	f := s.Claim(s.Worker)
	require.Len(t, f, 1, "a pause has a worker run no other functions")
	require.Equal(t, own, f[0].ID)
}

// TestAPauseThatCantBeReadIsListed: it keeps workers from its queue as well, and the others are listed too.
func TestAPauseThatCantBeReadIsListed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "good", "why")
	require.NoError(t, err)
	s.Store(pause.Keys(s.C.Keys()).Pause(pause.Queue, "bad"), []byte{layout.RecordVersion + 1, 0x80})
	list, err := pauses.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Contains(t, list[0].Text(), "queue bad has been paused (")
	require.Contains(t, list[0].Text(), layout.ErrNewerRecord.Error())
	require.Contains(t, list[1].Text(), "(why): futura resume queue good ends that")
	was, err := pauses.Of(s.C).Resume(s.Ctx, pause.Queue, "bad")
	require.NoError(t, err)
	require.True(t, was)
}

// leaving is a store that calls a function after each commit.
type leaving struct {
	kv.Database
	left func()
}

func (l leaving) Begin(o kv.Options) kv.Tx { return leavingTx{l.Database.Begin(o), l} }

type leavingTx struct {
	kv.Tx
	db leaving
}

func (l leavingTx) Commit(ctx context.Context) (kv.Committed, error) {
	defer l.db.left()
	return l.Tx.Commit(ctx)
}

// TestAPauseHoldsThoughNothingIsReadAfterIt has the call end between its commit and the read that tells workers.
func TestAPauseHoldsThoughNothingIsReadAfterIt(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ctx, cancel := context.WithCancel(s.Ctx)
	db := &leaving{s.C.Database(), func() {}}
	c, err := fdbmodel.Open(ctx, db, s.C.Name(), fdbmodel.Options{Clock: s.Clock, Config: s.C.Config()})
	require.NoError(t, err)
	db.left = cancel
	_, err = pauses.Of(c).Pause(ctx, pause.Queue, "q", "")
	require.NoError(t, err)
	list, err := pauses.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

package fdbmodel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/random"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// lateCommits is a store that calls a function instead of the first commit of a
// transaction with a tag. Transactions that it was called with stay open.
type lateCommits struct {
	kv.Database
	instead map[string]func(kv.Tx) error
}

type lateTx struct {
	kv.Tx
	db   *lateCommits
	tag  string
	open bool
}

func (d *lateCommits) Begin(o kv.Options) kv.Tx {
	return &lateTx{Tx: d.Database.Begin(o), db: d, tag: o.Tag}
}

func (t *lateTx) Commit(ctx context.Context) (kv.Committed, error) {
	if instead := t.db.instead[t.tag]; instead != nil {
		delete(t.db.instead, t.tag)
		t.open = true
		return kv.Committed{}, instead(t.Tx)
	}
	return t.Tx.Commit(ctx)
}

func (t *lateTx) Cancel() {
	if !t.open {
		t.Tx.Cancel()
	}
}

// lateTwins is a cluster with futures, whose commits may come late.
type lateTwins struct {
	*waker
	ids     []layout.ID
	workers [2]*Registration
	store   *lateCommits
	late    kv.Tx
}

func newLateTwins(t *testing.T) *lateTwins {
	db := &lateCommits{storetest.New(t), map[string]func(kv.Tx) error{}}
	l := &lateTwins{store: db}
	l.waker, l.ids, l.workers = claimersOn(t, db, 3)
	return l
}

// strike makes the next commit with a tag late, its result unknown, and calls
// meanwhile before the transaction is retried.
func (l *lateTwins) strike(tag string, meanwhile func()) {
	l.store.instead[tag] = func(tx kv.Tx) error {
		l.late = tx
		_, err := tx.ReadVersion(l.ctx) // what has read nothing has none yet
		require.NoError(l, err)
		meanwhile()
		return kv.ErrUnknownResult
	}
}

// TestLateTwinsDoNotCommit commits the first attempt of an operation after its
// retry, and after something that follows.
func TestLateTwinsDoNotCommit(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(l *lateTwins){
		"register, and leave": func(l *lateTwins) {
			l.strike("futura-register", func() {})
			require.NoError(l, l.register(1, "go:f").Leave(l.ctx))
		},
		"claim, and claim others": func(l *lateTwins) {
			l.c.random = random.From(zeros{})
			l.workers[0].scan = claim.NewScanner(l.c.keys, l.c.random.Intn)
			l.strike("futura-claim", func() {
				specs := make([]layout.Spec, 3)
				for i := range specs {
					specs[i] = layout.Spec{Function: "go:f", Priority: 200}
				}
				l.submit(specs...)
			})
			require.NotContains(l, claimedBy(l.waker, l.workers[0], 3), l.ids[0])
		},
		"claim with an error, and claim nothing": func(l *lateTwins) {
			ctx, end := context.WithCancel(l.ctx)
			l.strike("futura-claim", end)
			_, err := l.workers[0].Claim(ctx, ClaimRequest{Free: l.workers[0].info.Capacity, Max: 3})
			require.ErrorIs(l, err, kv.ErrUnknownResult)
			nothing := func(string) bool { return false }
			_, err = l.workers[0].Claim(l.ctx, ClaimRequest{Free: l.workers[0].info.Capacity, Max: 3, Runs: nothing})
			require.NoError(l, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLateTwins(t)
			play(l)
			_, err := l.late.Commit(l.ctx)
			require.ErrorIs(t, err, kv.ErrConflict)
		})
	}
}

// TestAClaimThatCommitsWhileItsWorkerLeaves commits between the last look of the
// worker that leaves and its end: nothing stays claimed.
func TestAClaimThatCommitsWhileItsWorkerLeaves(t *testing.T) {
	t.Parallel()
	l := newLateTwins(t)
	ctx, end := context.WithCancel(l.ctx)
	l.strike("futura-claim", end)
	_, err := l.workers[0].Claim(ctx, ClaimRequest{Free: l.workers[0].info.Capacity, Max: 3})
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	l.store.instead["futura-leave"] = func(tx kv.Tx) error {
		_, err := l.late.Commit(l.ctx)
		require.NoError(t, err)
		_, err = tx.Commit(l.ctx)
		return err
	}
	require.NoError(t, l.workers[0].Leave(l.ctx))
	require.Equal(t, l.ids, claimedBy(l.waker, l.workers[1], 3))
}

// TestClaimsThatEndedLeaveNoList ends the futures of a few claims one by one, and
// some together.
func TestClaimsThatEndedLeaveNoList(t *testing.T) {
	t.Parallel()
	w, ids, workers := claimersOn(t, storetest.New(t), 9)
	var held []ClaimedFuture
	for len(held) < len(ids) {
		answer, err := workers[0].Claim(w.ctx, ClaimRequest{Free: workers[0].info.Capacity, Max: 4})
		require.NoError(t, err)
		held = append(held, answer.Futures...)
	}
	lists := func() int {
		members, err := w.c.Workers(w.ctx)
		require.NoError(t, err)
		return members[0].Claims + members[1].Claims
	}
	for _, step := range []struct{ ends, lists int }{{1, 3}, {2, 3}, {1, 2}, {5, 0}} {
		var completions []Completion
		for i := range step.ends {
			completions = append(completions, Completion{Future: &held[i], Result: &layout.Result{}})
		}
		held = held[step.ends:]
		_, err := workers[0].Finish(w.ctx, completions)
		require.NoError(t, err)
		require.Equal(t, step.lists, lists())
	}
}

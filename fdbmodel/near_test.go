package fdbmodel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// locality is a cluster whose clock stands still, with workers that have objects.
type locality struct {
	*waker
	clock *clock.Virtual
}

func newLocality(t *testing.T) *locality {
	l := &locality{clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	db := storetest.New(t)
	c, err := Open(context.Background(), db, "locality", Options{Clock: l.clock,
		Config: layout.Config{Shards: 4, InfeasibleAfter: time.Minute}})
	require.NoError(t, err)
	l.waker = &waker{t, context.Background(), db, c}
	return l
}

// start submits a future and has a worker claim it. Others are in other queues.
func (l *locality) start(r *Registration, change ...func(*Submission)) *ClaimedFuture {
	l.Helper()
	id := l.submitOne(change...)
	answer, err := r.Claim(l.ctx, ClaimRequest{Free: r.info.Capacity, Max: 1})
	require.NoError(l, err)
	require.Len(l, answer.Futures, 1)
	require.Equal(l, id, answer.Futures[0].ID)
	return &answer.Futures[0]
}

func (l *locality) submitOne(change ...func(*Submission)) layout.ID {
	l.Helper()
	sub := Submission{Spec: layout.Spec{Function: "go:f", AllowReconstruction: true, MaxRetries: 3}}
	for _, fn := range change {
		fn(&sub)
	}
	answers, err := l.c.Submit(l.ctx, []Submission{sub})
	require.NoError(l, err)
	return answers[0].ID
}

func asObject(s *Submission) { s.Spec.AsObject = true }

func usesOf(ids ...layout.ID) func(*Submission) {
	return func(s *Submission) { s.Inputs = ids }
}

// keeps ends a claim with an object of so many bytes.
func (l *locality) keeps(r *Registration, f *ClaimedFuture, size int64) layout.ID {
	l.Helper()
	outcomes, err := r.Finish(l.ctx, []Completion{{Future: f, Result: &layout.Result{Object: f.ID.String(), Size: size}}})
	require.NoError(l, err)
	require.Equal(l, []Outcome{Applied}, outcomes)
	return f.ID
}

// object is the id of a future whose result a worker has.
func (l *locality) object(r *Registration, size int64) layout.ID {
	l.Helper()
	return l.keeps(r, l.start(r, asObject), size)
}

func (l *locality) near(id layout.ID) (layout.WorkerID, time.Duration) {
	l.Helper()
	row, err := l.c.Get(l.ctx, id)
	require.NoError(l, err)
	require.Equal(l, layout.Ready, row.State())
	return row.Attempts.Near, row.Attempts.NearWait
}

// TestAFutureGoesWhereMostBytesAre submits a future after its inputs, and one before
// them: both are left to the worker that has most bytes of them, for as long as the
// others would take to get those, or 2 s. Then anybody takes them.
func TestAFutureGoesWhereMostBytesAre(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b := l.register(1, "go:f"), l.register(1, "go:f")
	small, early := l.object(a, 60<<20), l.start(b, asObject)
	parts := []layout.ID{l.object(a, 50<<20), small, early.ID}
	waiting := l.submitOne(usesOf(parts...))
	parts[2] = l.keeps(b, early, 100<<20)
	for _, id := range []layout.ID{waiting, l.submitOne(usesOf(parts...))} {
		near, wait := l.near(id)
		require.Equal(t, a.info.ID, near)
		require.Equal(t, 1100*time.Millisecond, wait)
	}
	require.Empty(t, claimedBy(l.waker, b, 2))
	require.Equal(t, l.clock.Now().Add(1100*time.Millisecond), b.LeftUntil())
	found, err := b.Poll(l.ctx, ClaimRequest{Free: b.info.Capacity})
	require.NoError(t, err)
	require.False(t, found)
	require.Len(t, claimedBy(l.waker, a, 1), 1, "it takes one at once")
	l.clock.Advance(1100*time.Millisecond - 1)
	require.Empty(t, claimedBy(l.waker, b, 2))
	l.clock.Advance(1)
	require.Len(t, claimedBy(l.waker, b, 1), 1)
	require.Zero(t, b.LeftUntil())
}

// TestNobodyIsPreferred has futures that are as good anywhere: what they take is not
// with a worker, or small; or the worker that has it is gone, or could not run them.
func TestNobodyIsPreferred(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b := l.register(1, "go:f"), l.register(9, "go:f")
	stored := l.start(a)
	_, err := a.Finish(l.ctx, []Completion{{Future: stored, Result: &layout.Result{Value: []byte("v")}}})
	require.NoError(t, err)
	big, little := l.object(a, 1<<30), l.object(a, 10_000)
	for name, id := range map[string]layout.ID{
		"stored":    l.submitOne(usesOf(stored.ID)),
		"small":     l.submitOne(usesOf(little)),
		"too large": l.submitOne(usesOf(big), func(s *Submission) { s.Spec.Requirements.CPU = 2 }),
	} {
		near, wait := l.near(id)
		require.Empty(t, near, name)
		require.Zero(t, wait, name)
	}
	for range 3 {
		require.Len(t, claimedBy(l.waker, b, 1), 1)
	}
	left := l.submitOne(usesOf(big))
	near, wait := l.near(left)
	require.Equal(t, a.info.ID, near)
	require.Equal(t, nearby.MaxWait, wait)
	require.NoError(t, a.Leave(l.ctx))
	require.Equal(t, []layout.ID{left}, claimedBy(l.waker, b, 1), "it is gone")
	late := l.submitOne(usesOf(big))
	near, _ = l.near(late)
	require.Empty(t, near)
}

// TestWhoHasTheInputsIsWoken has idle workers of this process and of others.
func TestWhoHasTheInputsIsWoken(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b := l.register(1, "go:f"), l.register(1, "go:f")
	big := l.object(a, 1<<30)
	watch := l.idle(a)
	hint := b.RequestHint(ClaimRequest{Free: b.info.Capacity})
	defer hint.Cancel()
	l.submitOne(usesOf(big))
	<-watch.Done()
	require.NoError(t, watch.Err())
	require.Empty(t, hint.C())
	require.Len(t, claimedBy(l.waker, a, 1), 1)
	near := a.RequestHint(ClaimRequest{Free: a.info.Capacity})
	l.submitOne(usesOf(big))
	<-near.C()
	require.Empty(t, hint.C())
	l.submitOne(usesOf(big)) // who has it is busy: another one looks, to take it later
	<-hint.C()
}

// TestLocalityCostsOthersNothing counts what a store is asked for by futures with
// inputs that are no objects, and by those that take one.
func TestLocalityCostsOthersNothing(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a := l.register(1, "go:f")
	stored := l.start(a)
	_, err := a.Finish(l.ctx, []Completion{{Future: stored, Result: &layout.Result{Value: []byte("v")}}})
	require.NoError(t, err)
	id := l.submitOne(usesOf(stored.ID))
	row, err := l.c.Get(l.ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.Ready, row.State())
	require.Zero(t, row.Attempts)
	tx := l.db.Begin(kv.Options{})
	defer tx.Cancel()
	value, err := tx.Get(l.c.keys.Ready(id, row.Spec)).Wait(l.ctx)
	require.NoError(t, err)
	require.Equal(t, "go:f", string(value))
}

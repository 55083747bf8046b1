package fdbmodel

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// relay is a Hinter that hands hints to a cluster object of another process.
type relay struct {
	to    *Cluster
	heeds func(message []byte, n int) int
	asked int
	met   []layout.WorkerID
}

func (r *relay) Hint(_ context.Context, message []byte, n int) int {
	r.asked++
	return r.heeds(message, n)
}

func (r *relay) Met(workers []layout.WorkerID) { r.met = append(r.met, workers...) }

// countedWakes counts the transactions that wake workers through the store.
type countedWakes struct {
	kv.Database
	number atomic.Int64
}

func (d *countedWakes) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-wake" {
		d.number.Add(1)
	}
	return d.Database.Begin(o)
}

// TestSubmitsHintAtOtherProcesses has an idle worker of another process heed a hint,
// which takes no transaction to wake it. Hints that are not heeded, or get lost, leave
// everything to the store.
func TestSubmitsHintAtOtherProcesses(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), &countedWakes{Database: storetest.New(t)}
	here, err := Open(ctx, db, "hints", Options{Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	there, err := Open(ctx, db, "hints", Options{})
	require.NoError(t, err)
	hinter := &relay{to: there, heeds: there.Notifier().Hinted}
	here.Notifier().OfferHinter(hinter)
	next := &relay{heeds: func([]byte, int) int { return 0 }}
	here.Notifier().OfferHinter(next) // one is in use
	w := &waker{t, ctx, db, there}
	worker := w.register(9, "go:f")
	req := ClaimRequest{Free: worker.info.Capacity, Max: 1}
	submit := func(s layout.Spec) {
		_, err := here.Submit(ctx, []Submission{{Spec: s}})
		require.NoError(t, err)
	}
	claim := func(hinted bool) {
		answer, err := worker.Claim(ctx, req)
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		require.Equal(t, hinted, answer.Hinted)
		_, err = worker.Finish(ctx, []Completion{{Future: &answer.Futures[0], Result: &layout.Result{}}})
		require.NoError(t, err)
	}

	hint := worker.RequestHint(req)
	watch := w.idle(worker)
	submit(layout.Spec{Function: "go:f", Requirements: layout.Requirements{CPU: 9}})
	<-hint.C()
	require.Zero(t, db.number.Load())
	claim(true)

	for name, spec := range map[string]layout.Spec{
		"busy":  {Function: "go:f"},
		"unfit": {Function: "go:f", Requirements: layout.Requirements{CPU: 10}},
		"other": {Function: "go:g"}, "queue": {Function: "go:f", Queue: "q"},
	} {
		before := db.number.Load()
		if name != "busy" {
			hint = worker.RequestHint(req)
		}
		submit(spec)
		require.Equal(t, before+1, db.number.Load(), name)
		hint.Cancel()
		if name == "busy" {
			claim(false)
		}
	}
	watch.Cancel()

	hinter.heeds = func([]byte, int) int { return 0 } // all are lost
	watch = w.idle(worker)
	submit(layout.Spec{Function: "go:f"})
	<-watch.Done()
	require.NoError(t, watch.Err())
	require.Equal(t, []layout.WorkerID{worker.ID()}, hinter.met)
	claim(false)

	here.Notifier().WithdrawHinter(&relay{}) // another one
	before := hinter.asked
	submit(layout.Spec{Function: "go:f"})
	require.Equal(t, before+1, hinter.asked)
	require.Zero(t, next.asked)
	here.Notifier().WithdrawHinter(hinter)
	submit(layout.Spec{Function: "go:f"})
	require.Equal(t, before+1, hinter.asked)
	require.Equal(t, 1, next.asked)
}

// TestLyingHintsLoseNothing has a hinter that says that somebody looks: the future is
// found by who polls.
func TestLyingHintsLoseNothing(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	c, err := Open(ctx, db, "lies", Options{Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	c.Notifier().OfferHinter(&relay{heeds: func(_ []byte, n int) int { return n }})
	w := &waker{t, ctx, db, c}
	worker := w.register(9, "go:f")
	w.idle(worker)
	w.submit(layout.Spec{Function: "go:f"}, layout.Spec{Function: "go:f"})
	found := false
	for range pollsForAll {
		f, err := worker.Poll(ctx, ClaimRequest{Free: worker.info.Capacity})
		require.NoError(t, err)
		found = found || f
	}
	require.True(t, found)
}

// TestForgedHints are of no effect unless they can be decoded, and then have a worker
// look a bounded number of times, however many come.
func TestForgedHints(t *testing.T) {
	t.Parallel()
	ctx, virtual := context.Background(), clock.NewVirtual(time.Unix(1_900_000_000, 0))
	db := storetest.New(t)
	c, err := Open(ctx, db, "forged", Options{Clock: virtual, Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	w := &waker{t, ctx, db, c}
	worker := w.register(9, "go:f")
	req := ClaimRequest{Free: worker.info.Capacity, Max: 1}
	good := notify.Demand{Queue: layout.DefaultQueue, Function: "go:f", CPU: 1, Shard: 3, Labels: "a=b", Object: true}

	hint := worker.RequestHint(req)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		forged := good.Message()
		for range 1 + random.IntN(3) {
			forged[random.IntN(len(forged))] = byte(random.Uint32())
		}
		c.Notifier().Hinted(forged[:random.IntN(len(forged))], 1)
		c.Notifier().Hinted(good.Message(), -random.IntN(2))
	}
	beyond := notify.Demand{Queue: layout.DefaultQueue, Function: "go:f", Shard: 4}
	require.Zero(t, c.Notifier().Hinted(beyond.Message(), 1))
	require.Zero(t, c.Notifier().Hinted(good.Message(), 1), "it has not the label")
	select {
	case <-hint.C():
		t.Fatal("a message that is cut was heeded")
	default:
	}

	const seconds = 20
	forged, looks := notify.Demand{Queue: layout.DefaultQueue, Function: "go:f"}.Message(), 0
	look := func() {
		answer, err := worker.Claim(ctx, req)
		require.NoError(t, err)
		require.True(t, answer.Hinted)
		hint = worker.RequestHint(req)
		looks++
	}
	for range seconds * 1000 {
		if virtual.Advance(time.Millisecond); c.Notifier().Hinted(forged, 1000) > 0 {
			look()
		}
	}
	require.Greater(t, looks, seconds/2, "they are heeded at all")
	require.Less(t, looks, seconds+12)

	w.submit(layout.Spec{Function: "go:f"}) // hints of the process itself are heeded
	<-hint.C()
	for range 12 { // and after some that found something those of others are again
		w.submit(layout.Spec{Function: "go:f"})
	}
	virtual.Advance(time.Second)
	for range 12 {
		require.Equal(t, 0, c.Notifier().Hinted(forged, 1), "it is about to look")
		answer, err := worker.Claim(ctx, req)
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		hint = worker.RequestHint(req)
		virtual.Advance(time.Second)
		require.Equal(t, 1, c.Notifier().Hinted(forged, 1))
	}
	hint.Cancel()
	hint = worker.RequestHint(req)
	require.Equal(t, 1, c.Notifier().Hinted(forged, 1), "no look was in vain")
}

func TestRegistered(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	worker := w.register(9, "go:f")
	info, err := w.c.Registered(w.ctx, worker.ID())
	require.NoError(t, err)
	require.Equal(t, worker.Info(), info)
	require.NoError(t, worker.Leave(w.ctx))
	_, err = w.c.Registered(w.ctx, worker.ID())
	require.ErrorIs(t, err, ErrNotFound)
}

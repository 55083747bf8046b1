package fdbmodel

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/random"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// Limits of package notify that tests exceed.
const (
	wakeLimit = 16
	ringPage  = 4 * wakeLimit
)

// waker is a cluster whose workers differ in the functions that they can run.
type waker struct {
	*testing.T
	ctx context.Context
	db  kv.Database
	c   *Cluster
}

func newWaker(t *testing.T) *waker {
	db := storetest.New(t)
	c, err := Open(context.Background(), db, "wake", Options{Config: layout.Config{Shards: 2}})
	require.NoError(t, err)
	return &waker{t, context.Background(), db, c}
}

func (w *waker) register(cpu int64, functions ...string) *Registration {
	w.Helper()
	r, err := w.c.Register(w.ctx, layout.WorkerInfo{Functions: functions, Capacity: layout.Resources{Slots: 1, CPU: cpu}})
	require.NoError(w, err)
	return r
}

// idle puts a worker into the ring.
func (w *waker) idle(r *Registration) kv.Watch {
	w.Helper()
	watch, err := r.EnterIdleRing(w.ctx, ClaimRequest{Free: r.info.Capacity})
	require.NoError(w, err)
	require.NotNil(w, watch)
	w.Cleanup(watch.Cancel)
	return watch
}

func (w *waker) submit(specs ...layout.Spec) {
	w.Helper()
	subs := make([]Submission, len(specs))
	for i := range specs {
		subs[i].Spec = specs[i]
	}
	_, err := w.c.Submit(w.ctx, subs)
	require.NoError(w, err)
}

// inRing returns which workers are in the ring.
func (w *waker) inRing(workers ...*Registration) []bool {
	w.Helper()
	tx := w.db.Begin(kv.Options{})
	defer tx.Cancel()
	in := make([]bool, len(workers))
	for i, r := range workers {
		value, err := tx.Get(w.c.keys.Idle(layout.DefaultQueue, r.info.ID)).Wait(w.ctx)
		require.NoError(w, err)
		in[i] = value != nil
	}
	return in
}

func TestWhoCanRunItIsWoken(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	small, other := w.register(1, "go:f"), w.register(9, "go:g")
	module, right := w.register(9, layout.AnyModule), w.register(9, "go:f")
	for _, r := range []*Registration{small, other, module} {
		defer w.idle(r).Cancel()
	}
	watch := w.idle(right)
	w.submit(layout.Spec{Function: "go:f", Requirements: layout.Requirements{CPU: 5}})
	<-watch.Done()
	require.NoError(t, watch.Err())
	require.Equal(t, []bool{true, true, true, false}, w.inRing(small, other, module, right))

	// One transaction wakes one worker for each.
	w.submit(layout.Spec{Function: "go:f"}, layout.Spec{Function: "go:g"}, layout.Spec{Function: "go:nobody"})
	require.Equal(t, []bool{false, false, true}, w.inRing(small, other, module))
}

func TestWhoFitsIsFoundBehindThoseWhoDoNot(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("go:%020d", i))
	}
	for range 2*ringPage + 5 {
		w.idle(w.register(1, "go:g"))
	}
	right, vague := w.register(1, "go:f"), w.register(1, many...)
	watch := w.idle(right)
	w.submit(layout.Spec{Function: "go:f"})
	<-watch.Done()
	require.NoError(t, watch.Err())

	// A worker with too many functions to list is woken for anything.
	watch = w.idle(vague)
	w.submit(layout.Spec{Function: many[150]})
	<-watch.Done()
	require.NoError(t, watch.Err())
}

func TestWhoCanRunItIsWokenWithinAProcess(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	first, second := w.register(9, "go:f"), w.register(9, "go:g")
	hints := []*HintRequest{
		first.RequestHint(ClaimRequest{Free: first.info.Capacity}),
		second.RequestHint(ClaimRequest{Free: layout.Resources{CPU: 9}}),
	}
	w.submit(layout.Spec{Function: "go:g"})
	require.Empty(t, hints[1].C(), "it has no slot")
	hints[1] = second.RequestHint(ClaimRequest{Free: second.info.Capacity})
	w.submit(layout.Spec{Function: "go:g"})
	<-hints[1].C()
	require.Empty(t, hints[0].C())
	w.submit(layout.Spec{Function: "go:f"})
	<-hints[0].C()
}

func TestWakesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	var all []*Registration
	for range 2 {
		for _, queue := range []string{"one", "two"} {
			for range wakeLimit {
				r, err := w.c.Register(w.ctx, layout.WorkerInfo{
					Functions: []string{"go:f"}, Queues: []string{queue, layout.DefaultQueue}, Capacity: layout.Resources{Slots: 1},
				})
				require.NoError(t, err)
				w.idle(r)
				all = append(all, r)
			}
		}
	}
	var specs []layout.Spec
	for range 30 {
		specs = append(specs, layout.Spec{Function: "go:f", Queue: "one"}, layout.Spec{Function: "go:f", Queue: "two"})
	}
	w.submit(specs...)
	tx := w.db.Begin(kv.Options{})
	defer tx.Cancel()
	woken := 0
	for _, r := range all {
		value, err := tx.Get(w.c.keys.Idle(r.info.Queues[0], r.info.ID)).Wait(w.ctx)
		require.NoError(t, err)
		if value == nil {
			woken++
		}
	}
	require.Equal(t, wakeLimit, woken)
}

// zeros is a source of randomness that chooses the first of all.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// later is a clock that is ahead of another one.
type later struct{ clock.Clock }

func (l later) Now() time.Time { return l.Clock.Now().Add(time.Minute) }

// TestWhatIsGivenBackWakesAnIdleWorker has a worker in the ring while another
// one, which is in the ring before it, loses or gives back what it holds.
func TestWhatIsGivenBackWakesAnIdleWorker(t *testing.T) {
	t.Parallel()
	for name, giveBack := range map[string]func(w *waker, r *Registration, held *ClaimedFuture) error{
		"reaped": func(w *waker, r *Registration, held *ClaimedFuture) error {
			n, err := w.c.ForceReap(w.ctx, r.ID())
			require.NoError(w, err)
			require.Equal(w, 1, n)
			w.c.clock = later{w.c.clock}
			promoted, err := w.c.promoteNow(w.ctx, held.ID)
			require.True(w, promoted)
			return err
		},
		"left": func(w *waker, r *Registration, _ *ClaimedFuture) error { return r.Leave(w.ctx) },
		"relinquished": func(w *waker, r *Registration, held *ClaimedFuture) error {
			require.NoError(w, r.LeaveIdleRing(w.ctx))
			_, err := r.Finish(w.ctx, []Completion{{Future: held, Relinquish: true}})
			return err
		},
		"after a claim with an error": func(w *waker, r *Registration, held *ClaimedFuture) error {
			require.NoError(w, r.LeaveIdleRing(w.ctx))
			r.unresolved = append(r.unresolved, held.Token.Sequence)
			return r.resolveClaims(w.ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaker(t)
			var workers [2]*Registration
			for i, id := range []layout.WorkerID{"a", "b"} {
				var err error
				workers[i], err = w.c.Register(w.ctx, layout.WorkerInfo{
					ID: id, Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 2},
				})
				require.NoError(t, err)
			}
			w.submit(layout.Spec{Function: "go:f"})
			answer, err := workers[0].Claim(w.ctx, ClaimRequest{Free: layout.Resources{Slots: 2}, Max: 1})
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
			w.c.random = random.From(zeros{})
			w.idle(workers[0])
			watch := w.idle(workers[1])
			require.NoError(t, giveBack(w, workers[0], &answer.Futures[0]))
			require.Equal(t, []bool{false}, w.inRing(workers[1]))
			<-watch.Done()
			require.NoError(t, watch.Err())
			answer, err = workers[1].Claim(w.ctx, ClaimRequest{Free: layout.Resources{Slots: 2}, Max: 1})
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
		})
	}
}

// TestIdleKnowsWhatFellBeforeIt: a worker that goes idle knows whether a future
// came after its last look.
func TestIdleKnowsWhatFellBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	r := w.register(9, "go:f")
	missed := func() bool {
		idle := r.RequestHint(ClaimRequest{Free: r.info.Capacity})
		defer idle.Cancel()
		return idle.Missed()
	}
	claim := func() int {
		answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 9})
		require.NoError(t, err)
		return len(answer.Futures)
	}
	require.Zero(t, claim())
	require.False(t, missed())
	w.submit(layout.Spec{Function: "go:f"})
	require.True(t, missed())
	require.Equal(t, 1, claim())
	require.False(t, missed())
	answer, err := w.c.Submit(w.ctx, []Submission{{Spec: layout.Spec{Function: "go:f"}, Assigned: r.info.ID}})
	require.NoError(t, err)
	require.Len(t, answer, 1)
	require.True(t, missed(), "a future that is assigned counts as well")
}

// TestOneFutureWakesOneWorker submits one future, and then two, to a ring of
// workers that all fit.
func TestOneFutureWakesOneWorker(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	workers := make([]*Registration, 5)
	for i := range workers {
		workers[i] = w.register(9, "go:f")
		w.idle(workers[i])
	}
	idle := func() (n int) {
		for _, in := range w.inRing(workers...) {
			if in {
				n++
			}
		}
		return n
	}
	w.submit(layout.Spec{Function: "go:f"})
	require.Equal(t, 4, idle())
	w.submit(layout.Spec{Function: "go:f"}, layout.Spec{Function: "go:f"})
	require.Equal(t, 2, idle())
}

// TestManyOfAKindLookSeldom has workers of two kinds in the ring, and one with less free: those that can
// run the same share the polls.
func TestManyOfAKindLookSeldom(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	kinds := map[string][]*Registration{}
	register := func(kind, function string, labels map[string]string) {
		r, err := w.c.Register(w.ctx, layout.WorkerInfo{Functions: []string{function}, Labels: labels,
			Name: fmt.Sprint("worker-", len(kinds[kind])), Capacity: layout.Resources{Slots: 1, CPU: 9}})
		require.NoError(t, err)
		w.idle(r)
		kinds[kind] = append(kinds[kind], r)
	}
	for i := range 12 {
		kind := []string{"go:f", "go:f", "go:g"}[i%3]
		register(kind, kind, nil)
	}
	register("labelled", "go:f", map[string]string{"zone": "a"})
	small := w.register(1, "go:f")
	w.idle(small)
	for r, want := range map[*Registration]int{kinds["go:f"][0]: 9, kinds["go:g"][0]: 4, small: 10,
		kinds["labelled"][0]: 1} {
		require.Zero(t, r.Alike(), "nothing is known before the first poll")
		found, err := r.Poll(w.ctx, ClaimRequest{Free: r.info.Capacity})
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, want, r.Alike())
	}
	// What no hint told of is found by all of them together.
	require.NoError(t, w.submitSilently(layout.Spec{Function: "go:g"}))
	finders := 0
	for _, r := range kinds["go:g"] {
		for range pollsForAll {
			found, err := r.Poll(w.ctx, ClaimRequest{Free: r.info.Capacity})
			require.NoError(t, err)
			if found {
				finders++
				break
			}
		}
	}
	require.Len(t, kinds["go:g"], finders)
}

// submitSilently submits without a hint.
func (w *waker) submitSilently(spec layout.Spec) error {
	_, err := kv.Transact(w.ctx, w.db, kv.Retry{}, func(a kv.Attempt) error {
		_, err := w.c.SubmitTx(w.ctx, a, []Submission{{Spec: spec}})
		return err
	})
	return err
}

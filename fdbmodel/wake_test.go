package fdbmodel

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
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
	watch, err := r.GoIdle(w.ctx, ClaimRequest{Free: r.info.Capacity})
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
	hints := []*Idle{
		first.Idle(ClaimRequest{Free: first.info.Capacity}), second.Idle(ClaimRequest{Free: layout.Resources{CPU: 9}}),
	}
	w.submit(layout.Spec{Function: "go:g"})
	require.Empty(t, hints[1].C(), "it has no slot")
	hints[1] = second.Idle(ClaimRequest{Free: second.info.Capacity})
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

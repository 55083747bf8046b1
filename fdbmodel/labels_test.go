package fdbmodel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// labelled registers a worker with labels, given as pairs.
func (w *waker) labelled(pairs ...string) *Registration {
	w.Helper()
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	r, err := w.c.Register(w.ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Labels: labels, Capacity: layout.Resources{Slots: 20, CPU: 9},
	})
	require.NoError(w, err)
	return r
}

// requiring is a spec that requires labels, given as pairs.
func requiring(cpu int64, pairs ...string) layout.Spec {
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return layout.Spec{Function: "go:f", Requirements: layout.Requirements{CPU: cpu, Labels: labels}}
}

// TestLabelsAreRequired has workers with some labels claim futures that require
// some: each gets those whose labels it has, all of them.
func TestLabelsAreRequired(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	plain, a, both := w.labelled(), w.labelled("zone", "a"), w.labelled("zone", "a", "disk", "ssd")
	specs := []layout.Spec{
		requiring(0, "zone", "a"), requiring(0, "disk", "ssd", "zone", "a"), requiring(1, "zone", "b"), requiring(0),
	}
	for _, c := range []struct {
		worker *Registration
		want   []string
	}{{plain, []string{""}}, {a, []string{"", "zone=a"}}, {both, []string{"", "disk=ssd,zone=a", "zone=a"}}} {
		w.submit(specs...)
		answer, err := c.worker.Claim(w.ctx, ClaimRequest{Free: c.worker.info.Capacity, Max: 20})
		require.NoError(t, err)
		got := map[string]int{}
		for _, f := range answer.Futures {
			got[layout.LabelText(f.Spec.Requirements.Labels)]++
		}
		for _, text := range c.want {
			require.Positive(t, got[text], text)
		}
		require.Len(t, got, len(c.want))
		for _, f := range answer.Futures {
			_, err := c.worker.Finish(w.ctx, []Completion{{Future: &f, Result: &layout.Result{}}})
			require.NoError(t, err)
		}
	}
	answers, err := w.c.Submit(w.ctx, []Submission{{Spec: specs[0]}})
	require.NoError(t, err)
	_, err = w.c.Assign(w.ctx, Assignment{To: plain.info.ID}, []layout.ID{answers[0].ID})
	require.ErrorIs(t, err, layout.ErrUnfit)
	require.ErrorContains(t, err, "lacks some of the labels that it requires, zone=a")
	_, err = w.c.Assign(w.ctx, Assignment{To: a.info.ID}, []layout.ID{answers[0].ID})
	require.NoError(t, err)
	require.Equal(t, []layout.ID{answers[0].ID}, claimedBy(w, a, 1))
}

// TestWhoHasTheLabelsIsWoken has idle workers of this process and of others.
func TestWhoHasTheLabelsIsWoken(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	plain, a := w.labelled(), w.labelled("zone", "a")
	defer w.idle(plain).Cancel()
	watch := w.idle(a)
	w.submit(requiring(0, "zone", "a"), requiring(0, "zone", "b"))
	<-watch.Done()
	require.NoError(t, watch.Err())
	require.Equal(t, []bool{true, false}, w.inRing(plain, a))
	require.Len(t, claimedBy(w, a, 2), 1)
	hints := []*HintRequest{
		a.RequestHint(ClaimRequest{Free: a.info.Capacity}), plain.RequestHint(ClaimRequest{Free: a.info.Capacity}),
	}
	w.submit(requiring(0, "zone", "a"))
	<-hints[0].C()
	require.Empty(t, hints[1].C())
}

// TestCrowdsWithLabelsBlockNobody has a future behind many whose labels the worker
// lacks: of one kind, which it goes past with one read, or each of its own.
func TestCrowdsWithLabelsBlockNobody(t *testing.T) {
	t.Parallel()
	const crowd, each = 12_000, 1000
	for name, label := range map[string]func(i int) string{
		"one kind":   func(int) string { return "other" },
		"many kinds": func(i int) string { return fmt.Sprintf("%05d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := claimersOn(t, storetest.New(t), 1)
			for n := range crowd / each {
				specs := make([]layout.Spec, each)
				for i := range specs {
					specs[i] = requiring(0, "zone", label(n*each+i))
					specs[i].Queue, specs[i].Priority = "a", 255
				}
				w.submit(specs...)
			}
			w.submit(layout.Spec{Function: "go:f", Queue: "a"})
			r, err := w.c.Register(w.ctx, layout.WorkerInfo{
				Functions: []string{"go:f"}, Queues: []string{"a"}, Capacity: layout.Resources{Slots: 1},
			})
			require.NoError(t, err)
			claims, found := 0, 0
			for ; found == 0 && claims < 10; claims++ {
				found = len(claimedBy(w, r, 1))
			}
			require.Equal(t, 1, found, "after %d claims", claims)
			if name == "one kind" {
				require.Equal(t, 1, claims)
			}
		})
	}
}

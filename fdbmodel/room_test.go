package fdbmodel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// objectSpecs are n specs of futures whose results are to be objects, before all
// others, and one of another.
func objectSpecs(n int) []layout.Spec {
	specs := make([]layout.Spec, n, n+1)
	for i := range specs {
		specs[i] = layout.Spec{Function: "go:f", AsObject: true, Priority: 255}
	}
	return append(specs, layout.Spec{Function: "go:f"})
}

// claimObjects claims up to 20 futures, of which at most most are to have objects as
// results, and returns how many of each kind it got.
func claimObjects(w *waker, r *Registration, most int) (objects, others int) {
	w.Helper()
	answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 20, Objects: &most})
	require.NoError(w, err)
	for _, f := range answer.Futures {
		if f.Spec.AsObject {
			objects++
		} else {
			others++
		}
	}
	return objects, others
}

// TestAClaimTakesNoMoreObjectsThanItMay has a worker with room for few results take
// so many, and the future behind them all the same. What it leaves another takes.
func TestAClaimTakesNoMoreObjectsThanItMay(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	full, other := w.labelled(), w.labelled()
	w.submit(objectSpecs(60)...)
	objects, others := claimObjects(w, full, 0)
	require.Equal(t, []int{0, 1}, []int{objects, others})
	objects, others = claimObjects(w, full, 2)
	require.Equal(t, []int{2, 0}, []int{objects, others})
	require.Len(t, claimedBy(w, other, 20), 20)
}

// TestAssignedObjectsWaitForRoom has a full worker leave what was assigned to it.
func TestAssignedObjectsWaitForRoom(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	full := w.labelled()
	submitted, err := w.c.Submit(w.ctx, []Submission{{Spec: objectSpecs(1)[0], Assigned: full.info.ID}})
	require.NoError(t, err)
	for range 8 {
		objects, _ := claimObjects(w, full, 0)
		require.Zero(t, objects)
	}
	objects, _ := claimObjects(w, full, 1)
	require.Equal(t, 1, objects)
	row, err := w.c.Get(w.ctx, submitted[0].ID)
	require.NoError(t, err)
	require.Equal(t, layout.Claimed, row.State())
}

// TestWhoHasNoRoomIsNotWoken has idle workers of this process and of others, one of
// them full.
func TestWhoHasNoRoomIsNotWoken(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	full, other, none := w.labelled(), w.labelled(), 0
	request := ClaimRequest{Free: full.info.Capacity, Objects: &none}
	watch, err := full.EnterIdleRing(w.ctx, request)
	require.NoError(t, err)
	defer watch.Cancel()
	woken := w.idle(other)
	w.submit(objectSpecs(2)[:2]...)
	<-woken.Done()
	require.NoError(t, woken.Err())
	require.Equal(t, []bool{true, false}, w.inRing(full, other))
	found, err := full.Poll(w.ctx, request)
	require.NoError(t, err)
	require.False(t, found)
	require.Len(t, claimedBy(w, other, 2), 2)
	hints := []*HintRequest{other.RequestHint(ClaimRequest{Free: full.info.Capacity}), full.RequestHint(request)}
	w.submit(objectSpecs(1)[0])
	<-hints[0].C()
	require.Empty(t, hints[1].C())
}

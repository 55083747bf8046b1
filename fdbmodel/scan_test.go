package fdbmodel

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// TestNoClassOrQueueStarves has one future of another class, or many of another
// queue, behind more than the claims of the test take.
func TestNoClassOrQueueStarves(t *testing.T) {
	t.Parallel()
	const claims = 120
	for name, behind := range map[string]layout.Spec{
		"class": {Function: "go:f", Queue: "a", Requirements: layout.Requirements{CPU: 1}},
		"queue": {Function: "go:f", Queue: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := claimersOn(t, storetest.New(t), 1)
			specs := []layout.Spec{behind}
			for range claims {
				specs = append(specs, layout.Spec{Function: "go:f", Queue: "a"})
			}
			w.submit(specs...)
			r, err := w.c.Register(w.ctx, layout.WorkerInfo{
				Functions: []string{"go:f"}, Queues: []string{"a", "b"}, Capacity: layout.Resources{Slots: 1, CPU: 1},
			})
			require.NoError(t, err)
			found := 0
			for range claims {
				answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 1})
				require.NoError(t, err)
				require.Len(t, answer.Futures, 1)
				if spec := answer.Futures[0].Spec; spec.Queue == behind.Queue && spec.Requirements.CPU == behind.Requirements.CPU {
					found++
				}
			}
			require.Equal(t, 1, found)
		})
	}
}

// TestFuturesThatNobodyRunsBlockNobody has a future behind many of a function that
// the worker does not have, more than it reads at a time.
func TestFuturesThatNobodyRunsBlockNobody(t *testing.T) {
	t.Parallel()
	const crowd, each = 12_000, 1000
	w, _, _ := claimersOn(t, storetest.New(t), 1)
	for range crowd / each {
		w.submit(slices.Repeat([]layout.Spec{{Function: "go:nobody", Queue: "a"}}, each)...)
	}
	w.submit(layout.Spec{Function: "go:f", Queue: "a"})
	r, err := w.c.Register(w.ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Queues: []string{"a"}, Capacity: layout.Resources{Slots: 1},
	})
	require.NoError(t, err)
	claims, found := 0, 0
	for ; found == 0 && claims < 10*w.c.config.Shards; claims++ {
		answer, err := r.Claim(w.ctx, ClaimRequest{
			Free: r.info.Capacity, Max: 1, Runs: func(function string) bool { return function == "go:f" },
		})
		require.NoError(t, err)
		found = len(answer.Futures)
	}
	require.Equal(t, 1, found, "after %d claims", claims)
}

// TestALookSaysWhetherRoomWouldHelp passes over futures of a function that is not wanted: more room finds no more,
// unless some did not fit or the look gave up before the end.
func TestALookSaysWhetherRoomWouldHelp(t *testing.T) {
	t.Parallel()
	w, _, _ := claimersOn(t, storetest.New(t), 1)
	r, err := w.c.Register(w.ctx, layout.WorkerInfo{Functions: []string{"go:f", "go:other"}, Queues: []string{"a"},
		Capacity: layout.Resources{Slots: 1, CPU: 1}})
	require.NoError(t, err)
	onlyF := func(function string) bool { return function == "go:f" }
	look := func(free layout.Resources) (only bool) {
		answer, err := r.Claim(w.ctx, ClaimRequest{Free: free, Max: 1, Runs: onlyF})
		require.NoError(t, err)
		require.Empty(t, answer.Futures)
		return r.FoundOnlyOthers()
	}
	all := r.info.Capacity
	require.False(t, look(all), "nothing")
	other := layout.Spec{Function: "go:other", Queue: "a"}
	w.submit(other)
	require.True(t, look(all))
	require.True(t, r.LacksRoom())
	watch, err := r.EnterIdleRing(w.ctx, ClaimRequest{Free: all, Max: 1})
	require.NoError(t, err)
	require.Nil(t, watch)
	require.False(t, r.FoundOnlyOthers(), "it would take all")

	w.submit(layout.Spec{Function: "go:f", Queue: "a", Requirements: layout.Requirements{CPU: 1}})
	require.False(t, look(layout.Resources{Slots: 1}), "one has no room")
	answer, err := r.Claim(w.ctx, ClaimRequest{Free: all, Max: 1, Runs: onlyF})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	if storetest.OnServer {
		return // the rest would take it minutes
	}

	const crowd, each = 40_000, 1000
	for range crowd / each {
		w.submit(slices.Repeat([]layout.Spec{{Function: "go:other", Queue: "a"}}, each)...)
	}
	require.False(t, look(all), "behind what was read there may be more")
	for looks := 1; !look(all); looks++ {
		require.Less(t, looks, 10, "each look goes on behind the one before")
	}
}

// TestAClaimReportsWhetherMoreFit takes a part, and the rest.
func TestAClaimReportsWhetherMoreFit(t *testing.T) {
	t.Parallel()
	w, _, workers := claimersOn(t, storetest.New(t), 9)
	for _, more := range []bool{true, false} {
		answer, err := workers[0].Claim(w.ctx, ClaimRequest{Free: workers[0].info.Capacity, Max: 7})
		require.NoError(t, err)
		require.Equal(t, more, answer.More)
	}
}

// submitUnheard submits a future and wakes no worker.
func (w *waker) submitUnheard() {
	w.Helper()
	tx := w.db.Begin(kv.Options{})
	_, err := w.c.SubmitTx(w.ctx, tx, []Submission{{Spec: layout.Spec{Function: "go:f"}}})
	require.NoError(w, err)
	_, err = tx.Commit(w.ctx)
	require.NoError(w, err)
}

// TestARingHoldsOnlyTheIdle has a future come while a worker goes idle, and a
// worker in the ring claim one.
func TestARingHoldsOnlyTheIdle(t *testing.T) {
	t.Parallel()
	db := newHeldClaims(t, false)
	db.tag = "futura-idle"
	w, ids, workers := claimersOn(t, db, 1)
	require.Equal(t, ids, claimedBy(w, workers[1], 1))
	require.NoError(t, db.during(func() error {
		watch, err := workers[0].EnterIdleRing(w.ctx, ClaimRequest{Free: workers[0].info.Capacity})
		if watch != nil {
			watch.Cancel()
			return errors.New("it did not see the future")
		}
		return err
	}, w.submitUnheard, nil))
	require.Len(t, claimedBy(w, workers[0], 1), 1)
	w.idle(workers[0])
	w.submitUnheard()
	require.Len(t, claimedBy(w, workers[0], 1), 1)
	require.Equal(t, []bool{false}, w.inRing(workers[0]))
}

package workers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
)

// TestResourcesAreWaitedFor has a function use all of a resource, and another one wait for a part of it: no more is
// claimed than both leave, the end of the first starts the second, and the end of that one wakes the claimer.
func TestResourcesAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ all, part layout.Requirements }{
		"cpu": {layout.Requirements{CPU: 2}, layout.Requirements{CPU: 1}},
		"ram": {layout.Requirements{RAM: 2}, layout.Requirements{RAM: 1}},
		"gpu": {layout.Requirements{GPU: 2}, layout.Requirements{GPU: 1}},
	} {
		bubble.Test(t, func(t *testing.T) {
			s := newSlots(clock.Real{}, layout.Resources{Slots: 2, CPU: 2, RAM: 2, GPU: 2}, time.Second, 10)
			s.admit(&membership{values: t.Context()}, []fdbmodel.ClaimedFuture{
				{Spec: &layout.Spec{Requirements: c.all}}, {Spec: &layout.Spec{Requirements: c.part}},
			}, false)
			first, second := s.tryTake(), make(chan *job, 1)
			go func() { second <- s.take() }()
			synctest.Wait()
			require.Empty(t, second, name)
			free := s.request(nil).Free
			require.EqualValues(t, -1, min(free.CPU, free.RAM, free.GPU), name)
			s.giveBack(first, time.Second)
			synctest.Wait()
			require.Len(t, second, 1, name)
			clear := make(chan struct{}, 1)
			s.hungry = clear
			require.Equal(t, 1, s.request(nil).Max, name)
			s.giveBack(<-second, time.Second)
			require.Len(t, clear, 1, name)
		})
	}
}

// TestFuturesThatAreNotWantedAreNotQueued come from a claim after their cancel, with it, or to a membership that ends.
func TestFuturesThatAreNotWantedAreNotQueued(t *testing.T) {
	t.Parallel()
	s, id := newSlots(clock.Real{}, layout.Resources{Slots: 2}, time.Second, 10), layout.ID{1}
	one := func(m *membership, cancel *layout.CancelRequest) []*job {
		return s.admit(m, []fdbmodel.ClaimedFuture{{ID: id, Spec: &layout.Spec{}, Cancel: cancel}}, false)
	}
	ending := &membership{}
	ending.closing.Store(true)
	require.Len(t, one(ending, nil), 1)
	require.Len(t, one(&membership{}, &layout.CancelRequest{}), 1)
	require.Positive(t, s.request(nil).Max)
	require.Nil(t, s.cancel(id))
	require.Len(t, one(&membership{}, nil), 1)
	require.Empty(t, one(&membership{}, nil), "a cancel is for the claim that was under way")
	require.Len(t, s.queue, 1)
}

// TestWhatLeavesTheQueueCountsNoMore has a future of an owner be cancelled while it waits, and another one go back: the
// claimer is woken for their place.
func TestWhatLeavesTheQueueCountsNoMore(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(s *slots, id layout.ID) bool{
		"cancelled": func(s *slots, id layout.ID) bool { return s.cancel(id) != nil },
		"stale":     func(s *slots, _ layout.ID) bool { return len(s.stale(s.clock.Now().Add(time.Second))) == 1 },
	} {
		s, id := newSlots(clock.Real{}, layout.Resources{Slots: 1}, time.Second, 10), layout.ID{1}
		s.admit(&membership{}, []fdbmodel.ClaimedFuture{{ID: id, Spec: &layout.Spec{Owner: "o", Parallel: 1}}}, false)
		require.Zero(t, s.request(nil).Max, name)
		require.True(t, leave(s, id), name)
		require.Len(t, s.hungry, 1, name)
		require.Empty(t, s.owners, name)
	}
}

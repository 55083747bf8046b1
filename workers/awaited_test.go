package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestAHeartbeatNamesTheLongestWaits has more functions wait than a heartbeat names, and some that
// wait for no future, for futures twice, or for what is over.
func TestAHeartbeatNamesTheLongestWaits(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	s, m := newSlots(virtual, layout.Resources{Slots: 1}, time.Second, 1000), &membership{}
	start := func(n byte, of *membership) *job {
		j := &job{membership: of, future: fdbmodel.ClaimedFuture{ID: layout.ID{15: n}}}
		s.running[j] = struct{}{}
		return j
	}
	awaits := func(n byte, count int) func() (layout.ID, int) {
		return func() (layout.ID, int) { return layout.ID{0: 1, 15: n}, count }
	}
	s.await(t.Context(), start(201, m), nil, nil)
	s.await(t.Context(), start(202, m), awaits(202, 0), nil)
	s.await(t.Context(), start(203, &membership{}), awaits(203, 1), nil)
	began, twice := virtual.Now(), start(204, m)
	ended := s.await(t.Context(), twice, awaits(204, 1), nil)
	for n := range byte(layout.MaxAwaits) {
		virtual.Advance(time.Second)
		s.await(t.Context(), start(n, m), awaits(n, 1), nil)
	}
	virtual.Advance(time.Second)
	s.await(t.Context(), twice, awaits(205, 2), nil)
	all := s.awaited(m)
	require.Len(t, all, layout.MaxAwaits)
	require.Equal(t, layout.Await{ID: twice.future.ID, For: layout.ID{0: 1, 15: 204}, Count: 3,
		Since: layout.Millis(began)}, all[0])
	require.Equal(t, layout.ID{15: layout.MaxAwaits - 2}, all[layout.MaxAwaits-1].ID)
	ended()
	all = s.awaited(m)
	require.Equal(t, layout.ID{15: layout.MaxAwaits - 1}, all[layout.MaxAwaits-1].ID, "that wait is younger now")
}

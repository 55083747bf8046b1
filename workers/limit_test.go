package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestALimitedWorkerTakesLess has a worker get a limit while it runs as much as it can:
// what runs goes on, and then no more runs than the limit says, until it is lifted.
func TestALimitedWorkerTakesLess(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	block := newBlocker(true)
	w := b.start(Options{Slots: 4}, map[string]Function{"work": block.run})
	running := func(n int) func() bool { return func() bool { return w.Stats().Running == n } }
	b.many(20, "go:work")
	b.await("all slots", running(4))
	w.Limit(2, true)
	require.Zero(t, w.Stats().Free.Slots)
	require.Equal(t, 4, w.Stats().Running, "what runs goes on")
	for n := 3; n >= 2; n-- {
		block.end <- struct{}{}
		b.await("fewer", running(n))
	}
	block.end <- struct{}{}
	b.await("the next one", func() bool { return b.counts()[layout.Realized] == 3 && w.Stats().Running == 2 })
	w.Limit(0, true)
	for range 2 {
		block.end <- struct{}{}
	}
	b.await("none", running(0))
	require.Zero(t, w.Stats().Free.Slots)
	w.Limit(100, true)
	b.await("all slots again", running(4))
	close(block.end)
	b.await("all", func() bool { return b.counts()[layout.Realized] == 20 })
	b.await("free slots", func() bool { return w.Stats().Free.Slots == 4 })
}

// TestALimitBoundsWhatIsClaimedAhead is the model of what is claimed with a limit.
func TestALimitBoundsWhatIsClaimedAhead(t *testing.T) {
	t.Parallel()
	for limit, ahead := range map[int]int{0: 0, 1: 20, 2: 40, 4: 80, 9: 80} {
		s := newSlots(clock.NewVirtual(epoch), layout.Resources{Slots: 4}, time.Second, 10)
		s.pace = time.Millisecond
		s.limit(limit, true)
		require.Equal(t, ahead, s.ahead(), limit)
		require.Equal(t, min(limit, 4)+ahead, s.room(), limit)
		s.limit(limit, false)
		require.Equal(t, min(limit, 4), s.room(), limit)
	}
}

package workers

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// still waits until done without moving the clock.
func (b *bed) still(what string, done func() bool) {
	b.t.Helper()
	give := time.NewTimer(awaitBound)
	defer give.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-give.C:
			b.t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// TestALongCallHoldsNothingThatAnotherWorkerCouldRun: what a worker has claimed ahead,
// because its calls were short, goes to another one once a long call has all slots.
func TestALongCallHoldsNothingThatAnotherWorkerCouldRun(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{Shards: 1}, clock.NewVirtual(epoch)) // priority is strict
	long := newBlocker(false)
	functions := map[string]Function{"short": echo, "long": long.run}
	busy := b.start(Options{Slots: 1}, functions)
	b.awaitOver(b.many(200, "go:short")...) // it learns that calls are short
	other := b.start(Options{Slots: 1}, functions)
	other.Pause()
	busy.Pause()
	first := b.one("go:long", func(s *fdbmodel.Submission) { s.Spec.Priority = 1 })
	ids := b.many(100, "go:short")
	busy.Resume()
	b.begins(long)
	b.await("claims ahead", func() bool { return busy.Stats().Waiting > 0 || b.counts()[layout.Ready] == 100 })
	// A look that the machine delays counts as none, so that there may have to be more.
	give, tick := time.After(awaitBound), time.NewTicker(tickOfClock())
	defer tick.Stop()
	for b.counts()[layout.Ready] < 100 {
		select {
		case <-give:
			require.FailNow(t, "what waits behind the long call does not come back")
		case <-tick.C:
			b.clock.Advance(heldTime / heldLooks)
		}
	}
	other.Resume()
	b.still("the other worker", func() bool { return b.counts()[layout.Realized] == 300 })
	require.Equal(t, layout.Claimed, stateOf(b, first))
	for _, id := range ids {
		require.Equal(t, 1, ptrRow(b.row(id)).Attempt(), "to be given back counts as no attempt")
	}
	close(long.end)
	b.awaitOver(first)
}

func ptrRow(r layout.Row) *layout.Row { return &r }

// TestAheadOfShortCalls is the model of how much is claimed ahead: as much as starts
// within a moment, and nothing beside long calls.
func TestAheadOfShortCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		slots    int
		pace     time.Duration
		running  int
		quiet    time.Duration
		min, max int
	}{
		{"nothing known", 4, 0, 0, 0, 0, 0},
		{"short calls", 1, time.Millisecond, 1, time.Millisecond, 20, 20},
		{"very short calls", 4, time.Microsecond, 4, time.Microsecond, aheadMax, aheadMax},
		{"long calls", 4, 100 * time.Millisecond, 4, time.Millisecond, 0, 0},
		{"a long call among short ones", 1, time.Millisecond, 1, 5 * time.Millisecond, 4, 4},
		{"a long call", 1, time.Millisecond, 1, 21 * time.Millisecond, 0, 0},
		{"long calls in all slots", 4, time.Millisecond, 4, time.Second, 0, 0},
		{"a long call beside free slots", 4, time.Millisecond, 3, time.Second, 80, 80},
	} {
		clk := clock.NewVirtual(epoch)
		s := newSlots(clk, layout.Resources{Slots: c.slots}, time.Second, 10)
		s.pace, s.turned = c.pace, clk.Now()
		s.free.Slots -= c.running
		clk.Advance(c.quiet)
		require.GreaterOrEqual(t, s.ahead(), c.min, c.name)
		require.LessOrEqual(t, s.ahead(), c.max, c.name)
	}
}

// TestRandomCallsLeaveNothingBehindALongOne runs calls of all lengths on two workers of
// the model's slots: nothing waits for longer than the bound while a slot of the other
// one is free.
func TestRandomCallsLeaveNothingBehindALongOne(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	random := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex
	began := map[layout.ID]time.Time{}
	lengths := map[layout.ID]time.Duration{}
	var workers []*running
	call := func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := InfoFrom(ctx)
		mu.Lock()
		began[info.ID] = b.clock.Now()
		length := lengths[info.ID]
		mu.Unlock()
		return nil, clock.Sleep(ctx, b.clock, length)
	}
	for range 2 {
		workers = append(workers, b.start(Options{Slots: 2}, map[string]Function{"call": call}))
	}
	var all []layout.ID
	for range 20 {
		mu.Lock()
		ids := b.many(20, "go:call")
		for _, id := range ids {
			if lengths[id] = time.Duration(random.IntN(3)) * time.Millisecond; random.IntN(15) == 0 {
				lengths[id] = 300 * time.Millisecond
			}
		}
		mu.Unlock()
		all = append(all, ids...)
		for range 30 {
			b.clock.Advance(time.Duration(random.IntN(4)) * time.Millisecond)
			b.settles(workers)
		}
	}
	b.awaitOver(all...)
	require.Len(t, began, len(all))
}

// settles requires that no worker keeps what it has claimed ahead for longer than the
// bound while the other has a free slot.
func (b *bed) settles(workers []*running) {
	for i, w := range workers {
		free := workers[1-i].Stats().Free.Slots
		w.slots.mu.Lock()
		var oldest time.Time
		if len(w.slots.queue) > 0 && w.slots.free.Slots <= 0 {
			oldest = w.slots.queue[0].claimed
		}
		turned := w.slots.turned
		w.slots.mu.Unlock()
		if free == 0 || oldest.IsZero() || turned.IsZero() {
			continue
		}
		if turned.After(oldest) {
			oldest = turned
		}
		require.Less(b.t, b.clock.Now().Sub(oldest), 3*heldTime, "claimed futures wait behind long calls")
	}
}

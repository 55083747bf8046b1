package head

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// chosen is a head's choice of one worker for each of some batches of n items.
func chosen(t *testing.T, h *Head, n int, ids []string, workers ...Candidate) (names []string) {
	t.Helper()
	for _, id := range ids {
		d := newDriver(h, id)
		b := &batch.Batch{ID: id}
		picked := d.pick(b, append([]Candidate(nil), workers...), make([]batch.Item, n), 1)
		names = append(names, picked[0].Worker)
	}
	return names
}

func times(names []string) map[string]int {
	counts := map[string]int{}
	for _, name := range names {
		counts[name]++
	}
	return counts
}

func newLoaded() *Head { return New(Options{Dispatcher: called{}}) }

var eight = []string{"1", "2", "3", "4", "5", "6", "7", "8"}

// TestBatchesTakeWhatIsLeft gives out eight batches by one heartbeat.
func TestBatchesTakeWhatIsLeft(t *testing.T) {
	t.Parallel()
	two := func(name string, free int) Candidate { return Candidate{Worker: name, Free: free, Slots: 2} }
	for name, test := range map[string]struct {
		workers []Candidate
		items   int
		want    map[string]int
	}{
		"alike":           {[]Candidate{two("a", 2), two("b", 2)}, 1, map[string]int{"a": 4, "b": 4}},
		"items in turn":   {[]Candidate{two("a", 2), two("b", 2)}, 9, map[string]int{"a": 4, "b": 4}},
		"others take two": {[]Candidate{two("a", 0), two("b", 2)}, 1, map[string]int{"a": 3, "b": 5}},
		"larger": {[]Candidate{{Worker: "a", Free: 6, Slots: 6}, two("b", 2)}, 1,
			map[string]int{"a": 6, "b": 2}},
		"who answers first": {[]Candidate{{Worker: "b"}, {Worker: "a"}}, 1, map[string]int{"b": 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, times(chosen(t, newLoaded(), test.items, eight, test.workers...)))
		})
	}
}

// TestIdleWorkersTakeTurns has each batch be over before the next one: ids alone decide, alike for all heads.
func TestIdleWorkersTakeTurns(t *testing.T) {
	t.Parallel()
	workers := []Candidate{{Worker: "a", Free: 2, Slots: 2}, {Worker: "b", Free: 2, Slots: 2}}
	var one, other []string
	for _, id := range eight {
		one = append(one, chosen(t, newLoaded(), 1, []string{id}, workers...)...)
		other = append(other, chosen(t, newLoaded(), 1, []string{id}, workers[1], workers[0])...)
	}
	require.Equal(t, one, other)
	require.Len(t, times(one), 2)
}

// TestAHeartbeatCountsWhatTheHeadGave follows a worker of four slots from one heartbeat to the next.
func TestAHeartbeatCountsWhatTheHeadGave(t *testing.T) {
	t.Parallel()
	h := newLoaded()
	d := newDriver(h, "b")
	b := &batch.Batch{Template: batch.Template{Config: batch.Config{Concurrency: 9}}}
	room := func(beat int64, free int) int {
		c := []Candidate{{Worker: "w", Slots: 4, Free: free, Beat: beat}}
		h.ledger.rank(c, "b")
		return c[0].Free
	}
	has := func(items int) { d.count(b, loads("w", items)) }
	require.Equal(t, 4, room(1, 4))
	has(3)
	require.Equal(t, 1, room(1, 4), "given since")
	require.Equal(t, 1, room(2, 1), "the heartbeat counts the three")
	has(1)
	require.Equal(t, 3, room(2, 1), "two have ended since")
	require.Equal(t, 2, room(3, 0), "three may be of this head, one is of others")
	require.Equal(t, 0, room(4, 0), "one may be, and three are not")
	has(6)
	require.Equal(t, -5, room(4, 0), "some wait")
	has(0)
	require.Equal(t, 1, room(4, 0))
	require.Equal(t, 4, room(5, 0), "that may be what has just ended")
	require.Equal(t, 0, room(6, 0), "that is not")
	require.NotEmpty(t, h.ledger.workers)
	h.ledger.tidy()
	require.Empty(t, h.ledger.workers)
	require.Equal(t, 4, room(7, 4))
	require.Empty(t, h.ledger.workers, "one that is idle is not kept")
}

// TestWhatADriverHoldsEndsWithIt has a batch end while others have the same worker.
func TestWhatADriverHoldsEndsWithIt(t *testing.T) {
	t.Parallel()
	h := newLoaded()
	h.ctx = t.Context()
	one, other := newDriver(h, "1"), newDriver(h, "2")
	b := &batch.Batch{}
	one.count(b, loads("a", 5, "b", 1))
	other.count(b, loads("a", 1))
	open := func() map[string]int {
		found := map[string]int{}
		for name, t := range h.ledger.workers {
			found[name] = t.open
		}
		return found
	}
	require.Equal(t, map[string]int{"a": 2, "b": 1}, open(), "one item of a batch at a time")
	one.count(b, loads("c", 2))
	require.Equal(t, map[string]int{"a": 1, "b": 0, "c": 1}, open())
	require.False(t, h.forget(one))
	require.Equal(t, map[string]int{"a": 1, "b": 0, "c": 0}, open())
}

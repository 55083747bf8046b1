package head

import (
	"cmp"
	"hash/crc32"
	"maps"
	"slices"
	"sync"

	"github.com/futura-run/futura/batch"
)

// ledger counts the slots of workers that items of this head's batches take. A heartbeat is seconds
// old, and says only how many slots are free: not what was given out since, nor what waits.
type ledger struct {
	mu      sync.Mutex
	workers map[string]*tally
}

// tally is what one worker has of this head.
type tally struct {
	// open is how many slots items take now, or will once they begin.
	open int
	// beat is the heartbeat that was seen last, and ours what it may have counted as taken of open:
	// the most that was open since the one before was seen.
	beat       int64
	ours, peak int
}

func newLedger() *ledger { return &ledger{workers: map[string]*tally{}} }

func (l *ledger) of(worker string) *tally {
	t := l.workers[worker]
	if t == nil {
		t = &tally{beat: -1}
		l.workers[worker] = t
	}
	return t
}

// add changes how many slots of a worker are taken. It is called under mu.
func (l *ledger) add(worker string, slots int) {
	t := l.of(worker)
	t.open += slots
	t.peak = max(t.peak, t.open)
}

// free is how many more items a worker could begin at once: its slots without those that are open
// here, and those that others take by its last heartbeat. It is negative if items wait. It is called
// under mu.
func (l *ledger) free(c *Candidate) int {
	t := l.workers[c.Worker]
	if t == nil && c.Free >= c.Slots {
		return c.Free
	}
	t = l.of(c.Worker)
	if t.beat != c.Beat {
		t.beat, t.ours, t.peak = c.Beat, t.peak, t.open
	}
	if c.Slots < 1 {
		return c.Free - t.open
	}
	others := max(c.Slots-c.Free-t.ours, 0)
	return c.Slots - others - t.open
}

// sort sets how many items each worker could begin, and puts those with the most room first. Among equals
// the batch decides, so that they take turns, and all heads choose the same ones for it. Workers that a
// dispatcher returns without their slots stay in its order: they are those that answered first. It is called
// under mu.
func (l *ledger) sort(workers []Candidate, id string) {
	draws := make(map[string]uint32, len(workers))
	for i := range workers {
		w := &workers[i]
		w.Free = l.free(w)
		draws[w.Worker] = crc32.ChecksumIEEE([]byte(id + w.Worker))
	}
	if slices.ContainsFunc(workers, func(w Candidate) bool { return w.Slots < 1 }) {
		return
	}
	slices.SortStableFunc(workers, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(draws[a.Worker], draws[b.Worker]))
	})
}

// rank is sort, under mu.
func (l *ledger) rank(workers []Candidate, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort(workers, id)
}

// Choose returns n of the workers of a roll call for a run that is no batch's, such as one execution: those with
// the most room, as for a batch. It counts one slot of each as taken until release is called. n is at most how
// many workers there are; their order changes.
func (h *Head) Choose(workers []Candidate, n int, id string) (chosen []Candidate, release func()) {
	l := h.ledger
	take := func(slots int) {
		for i := range chosen {
			l.add(chosen[i].Worker, slots)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort(workers, id)
	chosen = workers[:n]
	take(1)
	return chosen, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		take(-1)
	})
}

// tidy forgets workers that have nothing of this head.
func (l *ledger) tidy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.workers, func(_ string, t *tally) bool { return t.open == 0 })
}

// slotsOf is how many slots of one worker items of a batch take at most.
func slotsOf(t *batch.Template, items int) int { return min(items, max(t.Config.Concurrency, 1)) }

// holds makes what the batch has of each worker known to others of this head.
func (d *driver) holds(slots map[string]int) {
	l := d.head.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for worker, n := range d.taken {
		if slots[worker] != n {
			l.add(worker, slots[worker]-n)
		}
	}
	for worker, n := range slots {
		if _, had := d.taken[worker]; !had {
			l.add(worker, n)
		}
	}
	d.taken = slots
}

// pick returns the n workers that get items: those that failed few of them first, then those with the
// most room, which the next batch finds taken.
func (d *driver) pick(b *batch.Batch, workers []Candidate, items []batch.Item, n int) []Candidate {
	failures := map[string]int{}
	for i := range items {
		for _, w := range items[i].FailedOn {
			failures[w]++
		}
	}
	l := d.head.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort(workers, d.id)
	slices.SortStableFunc(workers, func(a, b Candidate) int { return failures[a.Worker] - failures[b.Worker] })
	workers = workers[:n]
	for _, w := range workers {
		d.take(w.Worker, slotsOf(&b.Template, (len(items)+n-1)/n))
	}
	return workers
}

// take notes that a worker is about to get items of the batch. It is called under the ledger's mu.
func (d *driver) take(worker string, slots int) {
	if d.taken == nil {
		d.taken = map[string]int{}
	}
	d.taken[worker] += slots
	d.head.ledger.add(worker, slots)
}

// count looks at what the batch has of each worker now: loads, or its runs if this head runs them.
func (d *driver) count(b *batch.Batch, loads []batch.Load) {
	items := map[string]int{}
	for _, load := range loads {
		items[load.Worker] += load.Items
	}
	d.head.mu.Lock()
	for _, r := range d.runs {
		items[r.order.Chunk.Worker] += len(r.order.Items)
	}
	d.head.mu.Unlock()
	for worker, n := range items {
		items[worker] = slotsOf(&b.Template, n)
	}
	d.holds(items)
}

// moved is take of a worker that got items of others.
func (d *driver) moved(worker string, slots int) {
	d.head.ledger.mu.Lock()
	defer d.head.ledger.mu.Unlock()
	d.take(worker, slots)
}

package workers

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// How a worker treats futures whose results are to be objects while its store has no
// room for more of them.
const (
	// fullPatience is how long it takes none of them. After that it takes one at a
	// time: a result that still has no room goes to the store of the cluster.
	fullPatience = 30 * time.Second
	// sweepFullEvery is how often it looks for objects to drop meanwhile.
	sweepFullEvery = time.Second
	// firstExpected is how large it expects a result to be before it has had any.
	firstExpected = 64 << 10
)

// room keeps room in an object store for the results of what a worker has claimed.
// How large they will be is a guess: as large as the largest of late.
type room struct {
	mu       sync.Mutex
	expected int64
	lack     bool      // the last claim was to take no more of them than fit
	full     bool      // the store had no room for one
	since    time.Time // of full
}

// expect learns from the size of a result. What an empty store could not hold goes to
// the store of the cluster.
func (k *keeper) expect(size int64) {
	if size > k.store.Largest() {
		return
	}
	r := &k.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if size >= r.expected {
		r.expected = size
		return
	}
	r.expected -= (r.expected - size) / 8
}

// lacking reports whether the claimer waits for room.
func (r *room) lacking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lack
}

// allow returns how many more futures to claim whose results are to be objects, at
// most most. underWay is how many are claimed and not over.
func (k *keeper) allow(underWay, most int, now time.Time) int {
	r := &k.room
	r.mu.Lock()
	defer r.mu.Unlock()
	expected := r.expected
	if expected == 0 {
		expected = min(firstExpected, k.store.Largest()/2)
	}
	fit := k.store.Fits(expected)
	full := fit == 0
	if full && !r.full {
		r.since = now
	}
	r.lack, r.full = fit-underWay < most, full
	if full && underWay == 0 && now.Sub(r.since) >= fullPatience {
		return 1
	}
	return max(0, min(fit-underWay, most))
}

// fitStore has a claim take no more than the object store has room for. Results
// that are in memory take it from functions.
func (m *membership) fitStore(request *fdbmodel.ClaimRequest) {
	slots := m.worker.slots
	underWay := slots.countObjects()
	request.Free.RAM = max(0, request.Free.RAM-m.kept.store.Stats().MemoryUsed)
	if n := m.kept.allow(underWay, request.Max, m.worker.cluster.Now()); n < request.Max {
		request.Objects = &n
		slots.awaitMore()
	}
}

// tell completes a heartbeat.
func (k *keeper) tell(beat *layout.Heartbeat) {
	stats := k.store.Stats()
	beat.Stored, beat.Room = stats.MemoryUsed+stats.DiskUsed-stats.Reserved, stats.Free
	beat.Free.RAM = max(0, beat.Free.RAM-stats.MemoryUsed)
	k.room.mu.Lock()
	defer k.room.mu.Unlock()
	beat.NoRoom = k.room.full
}

// countObjects returns how many claimed futures are to have objects as results.
func (s *slots) countObjects() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := func(j *job) {
		if j.future.Spec != nil && j.future.Spec.AsObject {
			n++
		}
	}
	for _, j := range s.queue {
		count(j)
	}
	for j := range s.running {
		count(j)
	}
	return n
}

// awaitMore has the claimer woken when a function returns.
func (s *slots) awaitMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = true
}

package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// maxQueues is the maximum number of queues that are counted one by one, and of
	// owners of futures.
	maxQueues = 100
	// otherQueues is the name of all other queues. No queue has this name.
	otherQueues = "(other)"
	// slowCount is how long a reading takes after which the next one rests, and
	// countRest for how long, in times of it: slow readings take a tenth of the time.
	slowCount = 50 * time.Millisecond
	countRest = 10
)

// counts are the counters of one reading.
type counts struct {
	// all are those of each queue and owner, queues those of each queue.
	all, queues []Count
}

// sharedCounts reads the counters for all who ask at a time. Its counts are those
// of the moment as long as readings are fast.
type sharedCounts struct {
	from func(ctx context.Context) (layout.Counts, error)

	mu      sync.Mutex
	running *reading // nil while there is none
	last    *reading // the last that succeeded, nil before
}

// reading is one look at the counters.
type reading struct {
	done   chan struct{}
	counts counts
	err    error
	ended  time.Time
	took   time.Duration
}

// read returns the counters.
func (s *sharedCounts) read(ctx context.Context) (counts, error) {
	for first := true; ; first = false {
		s.mu.Lock()
		slow := s.last != nil && s.last.took >= slowCount
		if slow && time.Since(s.last.ended) < countRest*s.last.took {
			defer s.mu.Unlock()
			return s.last.counts, nil
		}
		// What runs already may have begun before something that the caller knows of.
		joins := s.running != nil && first && !slow
		if s.running == nil {
			s.running = &reading{done: make(chan struct{})}
			go s.look(context.WithoutCancel(ctx), s.running)
		}
		r := s.running
		s.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return counts{}, ctx.Err()
		}
		if !joins {
			return r.counts, r.err
		}
	}
}

// look reads the counters, whoever waits for them.
func (s *sharedCounts) look(ctx context.Context, r *reading) {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	start := time.Now()
	found, err := s.from(ctx)
	if err == nil {
		r.counts = countsOf(found)
	}
	r.err, r.ended, r.took = err, time.Now(), time.Since(start)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running = nil; err == nil {
		s.last = r
	}
	close(r.done)
}

// countsOf returns the counters that are not 0, in a fixed order. All but the
// queues with the most futures are added up as one, and so are owners.
func countsOf(found layout.Counts) counts {
	byQueue := layout.Counts{}
	for k, n := range found {
		byQueue[layout.CountKey{Queue: k.Queue, State: k.State}] += n
	}
	return counts{all: largest(found), queues: largest(byQueue)}
}

// largest returns the counters of the queues and owners with the most futures.
func largest(found layout.Counts) []Count {
	type group struct{ queue, owner string }
	totals := map[group]int64{}
	for k, n := range found {
		totals[group{k.Queue, k.Owner}] += n
	}
	groups := make([]group, 0, len(totals))
	for g := range totals {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), strings.Compare(a.queue, b.queue),
			strings.Compare(a.owner, b.owner))
	})
	shown := map[group]bool{}
	for _, g := range groups[:min(len(groups), maxQueues)] {
		shown[g] = true
	}
	sums := layout.Counts{}
	for k, n := range found {
		if !shown[group{k.Queue, k.Owner}] {
			k.Queue, k.Owner = otherQueues, ""
		}
		sums[k] += n
	}
	list := []Count{}
	for k, n := range sums {
		if n != 0 {
			list = append(list, Count{Queue: k.Queue, Owner: k.Owner, State: k.State.String(), Futures: n})
		}
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Owner, b.Owner), strings.Compare(a.State, b.State))
	})
	return list
}

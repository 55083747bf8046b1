package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

const (
	// slowReading is how long a reading takes after which the next one rests, and
	// readingRest for how long, in times of it: slow readings take a tenth of the time.
	slowReading = 50 * time.Millisecond
	readingRest = 10
)

// shared reads something of the store for all who ask at a time. What it returns is that of the
// moment as long as readings are fast.
type shared[T any] struct {
	from func(ctx context.Context) (T, error)

	mu      sync.Mutex
	running *reading[T] // nil while there is none
	last    *reading[T] // the last that succeeded, nil before
}

// reading is one look at the store.
type reading[T any] struct {
	done  chan struct{}
	found T
	err   error
	ended time.Time
	took  time.Duration
}

// read returns what there is. It is shared, and not to be changed.
func (s *shared[T]) read(ctx context.Context) (found T, err error) {
	for first := true; ; first = false {
		s.mu.Lock()
		slow := s.last != nil && s.last.took >= slowReading
		if slow && time.Since(s.last.ended) < readingRest*s.last.took {
			defer s.mu.Unlock()
			return s.last.found, nil
		}
		// What runs already may have begun before something that the caller knows of.
		joins := s.running != nil && first && !slow
		if s.running == nil {
			s.running = &reading[T]{done: make(chan struct{})}
			go s.look(context.WithoutCancel(ctx), s.running)
		}
		r := s.running
		s.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return found, ctx.Err()
		}
		if !joins {
			return r.found, r.err
		}
	}
}

// look reads, whoever waits for it.
func (s *shared[T]) look(ctx context.Context, r *reading[T]) {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	start := time.Now()
	r.found, r.err = s.from(ctx)
	if r.err != nil && ctx.Err() != nil {
		r.err = stack.Unanswered(r.err, collectTime, false)
	}
	r.ended, r.took = time.Now(), time.Since(start)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running = nil; r.err == nil {
		s.last = r
	}
	close(r.done)
}

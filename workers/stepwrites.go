package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// maxStepBytes is about how many bytes of values one transaction with steps has.
const maxStepBytes = 500_000

// stepWrites are steps on their way to the store. One transaction takes all that have gathered
// while the one before it was under way.
type stepWrites struct {
	membership *membership

	mu    sync.Mutex
	queue []*stepWrite
	busy  bool
}

// stepWrite is a step on its way. What comes after done is set before that is closed.
type stepWrite struct {
	entry    steps.Entry
	done     chan struct{}
	recorded bool
	version  kv.Version
	err      error
}

// write records a step, with others that come meanwhile. It returns once that is durable, with the version of
// the commit, with steps.ErrLost if the claim is lost, and the cause of ctx if that ends first: the step may
// be recorded then.
func (s *stepWrites) write(ctx context.Context, e steps.Entry) (kv.Version, error) {
	w := &stepWrite{entry: e, done: make(chan struct{})}
	if s.membership.worker.manual() {
		s.commit(ctx, []*stepWrite{w})
	} else {
		s.put(w)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return kv.NoVersion, lost(context.Cause(ctx))
	case <-s.membership.store.Done():
		return kv.NoVersion, steps.ErrLost
	}
	if w.err == nil && !w.recorded {
		return kv.NoVersion, steps.ErrLost
	}
	return w.version, lost(w.err)
}

// lost has the error of a worker that was declared dead say that the step is not recorded.
func lost(err error) error {
	if errors.Is(err, fdbmodel.ErrReaped) {
		return fmt.Errorf("%w: %w", steps.ErrLost, err)
	}
	return err
}

func (s *stepWrites) put(w *stepWrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, w)
	if !s.busy {
		s.busy = true
		s.membership.others.start(s.loop)
	}
}

// loop writes steps until there are no more.
func (s *stepWrites) loop() {
	ctx := s.membership.store
	for batch := s.next(); batch != nil; batch = s.next() {
		if err := s.membership.worker.freeze.wait(ctx); err != nil {
			end(batch, nil, kv.NoVersion, err)
			continue
		}
		s.commit(ctx, batch)
	}
}

// next returns one transaction's worth of steps, nil for none.
func (s *stepWrites) next() []*stepWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < min(len(s.queue), steps.MaxWrite) && size < maxStepBytes {
		size += len(s.queue[n].entry.Record.Value)
		n++
	}
	batch := s.queue[:n:n]
	s.queue = s.queue[n:]
	if n == 0 {
		s.queue, s.busy = nil, false
		return nil
	}
	return batch
}

// commit writes steps in the caller.
func (s *stepWrites) commit(ctx context.Context, batch []*stepWrite) {
	entries := make([]steps.Entry, len(batch))
	for i, w := range batch {
		entries[i] = w.entry
	}
	recorded, version, err := steps.Of(s.membership.worker.cluster).Write(ctx, s.membership.reg, entries)
	end(batch, recorded, version, err)
}

func end(batch []*stepWrite, recorded []bool, version kv.Version, err error) {
	for i, w := range batch {
		w.version = version
		if w.err = err; err == nil {
			w.recorded = recorded[i]
		}
		close(w.done)
	}
}

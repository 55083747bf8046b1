package workers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// Bounds of what ends futures.
const (
	finishers   = 2                      // transactions under way at most
	secondBatch = fdbmodel.MaxFinish / 2 // what starts a second one beside the first
	maxEnded    = 4 * fdbmodel.MaxClaim  // what has ended and is not written: no claims beyond it
)

// endings are completions on their way to the store. One transaction takes all
// that have gathered while the one before it was under way.
type endings struct {
	mu         sync.Mutex
	ended      []fdbmodel.Completion
	inFlight   int
	settling   atomic.Int64 // jobs that decide how they end, and may be about to put it
	closed     bool
	candidates map[*fdbmodel.ClaimedFuture]chan struct{} // whose starts are recorded; closed when they are no more
	lazy       bool                                      // what writes them is started when there are some
	news       *sync.Cond
	written    chan struct{} // a transaction ended
}

func newEndings() *endings {
	e := &endings{written: make(chan struct{}, 1)}
	e.news = sync.NewCond(&e.mu)
	return e
}

// put queues a completion for the store.
func (m *membership) put(c fdbmodel.Completion) {
	e := m.endings
	e.mu.Lock()
	e.ended = append(e.ended, c)
	wake := e.due()
	e.mu.Unlock()
	switch {
	case !wake:
	case e.lazy:
		m.others.start(func() { m.fail(m.finishLoop(m.store)) })
	default:
		e.news.Signal()
	}
}

// due reports whether a transaction should begin now. It is called under mu.
func (e *endings) due() bool {
	return len(e.ended) > 0 && (e.inFlight == 0 || e.inFlight < finishers && len(e.ended) >= secondBatch)
}

// await returns the next batch, and nil when the endings are closed. Lazy ones are not
// waited for.
func (e *endings) await() []fdbmodel.Completion {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.closed && !e.due() && !e.lazy {
		e.news.Wait()
	}
	if e.closed || !e.due() {
		return nil
	}
	return e.batch()
}

// batch takes one transaction's worth. It is called under mu.
func (e *endings) batch() []fdbmodel.Completion {
	n := min(len(e.ended), fdbmodel.MaxFinish)
	batch := e.ended[:n:n]
	if e.ended = e.ended[n:]; len(e.ended) == 0 {
		e.ended = nil
	}
	if n > 0 {
		e.inFlight++
	}
	return batch
}

// done requeues completions that could not be written.
func (e *endings) done(rest []fdbmodel.Completion) {
	e.mu.Lock()
	if len(rest) > 0 {
		e.ended = append(rest, e.ended...)
	}
	e.inFlight--
	wake := e.due()
	e.mu.Unlock()
	if wake {
		e.news.Signal()
	}
	signal.Send(e.written)
}

// backlog is how many completions are neither written nor on their way.
func (e *endings) backlog() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.ended)
}

// open is how many completions and transactions there are, or may come of jobs that are
// settled.
func (e *endings) open() int {
	settling := int(e.settling.Load()) // first: what it no longer counts is put
	e.mu.Lock()
	defer e.mu.Unlock()
	return settling + len(e.ended) + e.inFlight
}

func (e *endings) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.news.Broadcast()
}

// finishLoop writes completions as they come, until the endings are closed.
func (m *membership) finishLoop(ctx context.Context) error {
	for {
		batch := m.endings.await()
		if batch == nil {
			return nil
		}
		err := m.worker.freeze.wait(ctx)
		rest := batch
		if err == nil {
			rest, err = m.finishAndClaim(ctx, batch)
		}
		m.worker.acknowledge(batch[:len(batch)-len(rest)])
		m.endings.done(rest)
		if len(rest) == 0 && m.backlogged.Load() {
			signal.Send(m.worker.slots.hungry)
		}
		m.worker.cluster.ResolveMarked(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && kv.Retryable(err) && !isFatal(err): // an unknown result, and then one that is none to repeat
			m.worker.options.Logger.Warn("outcomes of futures are not written yet", "error", err)
			_ = clock.Sleep(ctx, m.worker.cluster.Clock(), finishPause) // the end of ctx ends the loop
		case err != nil:
			return err
		}
	}
}

// finishPause is how long outcomes wait that could not be written.
const finishPause = time.Second

// finish writes completions and returns those that could not be written. A
// record that can't be written costs its own future only.
func (m *membership) finish(ctx context.Context, batch []fdbmodel.Completion) ([]fdbmodel.Completion, error) {
	outcomes, err := m.reg.End(ctx, batch)
	return m.ended(ctx, batch, outcomes, err)
}

// ended counts what an End has written, and returns what it could not write.
func (m *membership) ended(ctx context.Context, batch []fdbmodel.Completion, outcomes []fdbmodel.Outcome, err error,
) ([]fdbmodel.Completion, error) {
	m.count(batch[:len(outcomes)], outcomes)
	m.endings.forget(batch[:len(outcomes)])
	batch = batch[len(outcomes):]
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil || isFatal(err) || kv.Retryable(err):
		return batch, err
	case len(batch) == 1:
		m.worker.options.Logger.Error("the outcome of a future can't be written", "future", batch[0].Future.ID, "error", err)
		if err := m.endOtherwise(ctx, batch[0], err); err != nil {
			return batch, err
		}
		m.endings.forget(batch)
		return nil, nil
	}
	half := len(batch) / 2
	rest, err := m.finish(ctx, batch[:half])
	if err != nil {
		return append(rest, batch[half:]...), err
	}
	return m.finish(ctx, batch[half:])
}

// endOtherwise ends a future whose outcome can't be written: a result or a failure as a failed attempt, and what that
// does not help is given back after a while. It would be claimed for as long as the worker lives.
func (m *membership) endOtherwise(ctx context.Context, c fdbmodel.Completion, cause error) error {
	if c.Beside != nil && c.Beside.Done != nil {
		c.Beside.Done(kv.NoVersion) // nothing of it is written
	}
	others := []fdbmodel.Completion{{Future: c.Future, Reject: true}}
	if c.Result != nil || c.Exception != nil {
		others = slices.Insert(others, 0, fdbmodel.Completion{Future: c.Future, Started: c.Started,
			Exception: &layout.Exception{Kind: layout.KindError, Message: "the outcome can't be written: " + cause.Error()}})
	}
	for _, other := range others {
		outcomes, err := m.reg.End(ctx, []fdbmodel.Completion{other})
		switch {
		case err == nil:
			m.count([]fdbmodel.Completion{other}, outcomes)
			return nil
		case ctx.Err() != nil || isFatal(err) || kv.Retryable(err):
			return err
		}
		m.worker.options.Logger.Error("a future can't be ended", "future", c.Future.ID, "error", err)
	}
	return nil
}

// flush writes everything in the caller.
func (m *membership) flush(ctx context.Context) error {
	for {
		m.endings.mu.Lock()
		batch := m.endings.batch()
		m.endings.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		rest, err := m.finishAndClaim(ctx, batch)
		m.worker.acknowledge(batch[:len(batch)-len(rest)])
		m.endings.done(rest)
		m.worker.cluster.ResolveMarked(ctx)
		if err != nil {
			return err
		}
	}
}

// isFatal reports whether the store will not come back within this process.
func isFatal(err error) bool {
	return errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed)
}

func (m *membership) count(batch []fdbmodel.Completion, outcomes []fdbmodel.Outcome) {
	s := &m.worker.stats
	for i, o := range outcomes {
		switch c := &batch[i]; {
		case o == fdbmodel.Lost:
			s.lost.Add(1)
			m.worker.options.Logger.Warn("a future's claim was lost; its outcome is discarded", "future", c.Future.ID)
		case c.After.Cancelled:
			s.cancelled.Add(1)
		case c.Result != nil && c.After.State == layout.Ready: // what it depends on had changed
			s.relinquished.Add(1)
		case c.Result != nil:
			s.ran.Add(1)
			m.worker.tallies.of(c.Future.Spec).realized.Inc()
		case c.Exception != nil:
			s.failed.Add(1)
			m.worker.tallies.of(c.Future.Spec).failed.Inc()
			if o == fdbmodel.Applied {
				m.worker.report(c)
			}
		case c.Reject:
			s.rejected.Add(1)
		case c.Snooze != nil:
		case c.Expire && c.After.State == layout.Failed:
			s.failed.Add(1)
			m.worker.tallies.of(c.Future.Spec).failed.Inc()
			m.worker.reportLate(c)
		default:
			s.relinquished.Add(1)
		}
	}
}

package workers

import (
	"context"
	"io"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/signal"
)

// Source gives a worker futures that no store has, beside those that it claims: the source
// keeps them, and how they ended. Their slots, resources, owners, timeouts and policies are
// those of every future. They can have no inputs, lane, pace or deadline, and what a function
// reports of its progress is dropped. Its methods are called from several goroutines.
type Source interface {
	// Attach is called once, when the worker is made. news has the worker take again. cancel
	// stops a future that the worker has taken, and does nothing for others. Neither blocks.
	Attach(news func(), cancel func(layout.ID))
	// Take returns futures with their arguments that fit into a claim, and whether it has
	// more. It must not block.
	Take(fdbmodel.ClaimRequest) (futures []fdbmodel.ClaimedFuture, more bool)
	// Writer returns where the value of a future goes that is written piece by piece and is
	// large. It is asked again for a value that is written anew, as after a failure. Of a value
	// that went there, End is told the size alone.
	Writer(layout.ID) (io.Writer, error)
	// End is told how each future ended, once. Values are as long as the function returned
	// them, up to layout.MaxPut. Relinquish says that it did not run, or was stopped: it may be
	// taken again.
	End(fdbmodel.Completion)
}

// maxFromSource is how often in a row a worker takes from its source before it asks the
// store for futures.
const maxFromSource = 8

func (w *Worker) attachSource() {
	if w.options.Source == nil {
		return
	}
	w.options.Source.Attach(func() { signal.Send(w.slots.hungry) }, func(id layout.ID) {
		if j := w.slots.cancel(id); j != nil {
			j.relinquish()
		}
	})
}

// takeNext takes from the source, or claims, and returns how many futures.
func (m *membership) takeNext(ctx context.Context, request fdbmodel.ClaimRequest) (int, error) {
	if m.worker.options.Source == nil {
		return m.claimNow(ctx, request)
	}
	if m.fromSource++; m.fromSource >= maxFromSource {
		m.fromSource = 0
		n, err := m.claimNow(ctx, request)
		if n > 0 || err != nil {
			return n, err
		}
		var ok bool
		if request, ok = m.request(); !ok {
			return 0, nil
		}
	}
	if n := m.takeFromSource(request); n > 0 {
		return n, nil
	}
	m.fromSource = 0
	return m.claimNow(ctx, request)
}

func (m *membership) takeFromSource(request fdbmodel.ClaimRequest) int {
	futures, more := m.worker.options.Source.Take(request)
	if len(futures) == 0 {
		return 0
	}
	for i := range futures {
		futures[i].Token.Worker = m.reg.ID()
	}
	for _, j := range m.worker.slots.admit(m, futures, true) {
		j.relinquish()
	}
	m.worker.slots.watchHeld()
	m.more = more
	return len(futures)
}

// endAtSource tells the source how one of its futures has ended.
func (w *Worker) endAtSource(c *fdbmodel.Completion) {
	switch {
	case c.Result != nil:
		w.stats.ran.Add(1)
		w.tallies.of(c.Future.Spec).realized.Inc()
	case c.Exception != nil:
		w.stats.failed.Add(1)
		w.tallies.of(c.Future.Spec).failed.Inc()
		if c.Permanent {
			c.After.State = layout.Failed
		}
		w.report(c)
	case c.Reject:
		w.stats.rejected.Add(1)
	case c.Snooze != nil:
	default:
		w.stats.relinquished.Add(1)
	}
	w.options.Source.End(*c)
}

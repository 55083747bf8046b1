package workers

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

// maxDirects is how often in a row a worker takes what is direct before it asks the store
// for futures.
const maxDirects = 8

// direct is what the worker runs beside what it claims, nil for nothing; see seam.Direct.
func (w *Worker) direct() *seam.Direct {
	if w.options.Seam == nil {
		return nil
	}
	return w.options.Seam.Direct
}

func (w *Worker) offerDirect() {
	if d := w.direct(); d != nil {
		d.News = func() { signal(w.slots.hungry) }
		d.Cancel = func(id layout.ID) {
			if j := w.slots.cancel(id); j != nil {
				j.relinquish()
			}
		}
	}
}

// takeNext takes what is direct, or claims, and returns how many futures.
func (l *life) takeNext(ctx context.Context, request fdbmodel.ClaimRequest) (int, error) {
	d := l.worker.direct()
	if d == nil {
		return l.claimNow(ctx, request)
	}
	if l.directs++; l.directs >= maxDirects {
		l.directs = 0
		n, err := l.claimNow(ctx, request)
		if n > 0 || err != nil {
			return n, err
		}
		var ok bool
		if request, ok = l.request(); !ok {
			return 0, nil
		}
	}
	if n := l.takeDirect(d, request); n > 0 {
		return n, nil
	}
	l.directs = 0
	return l.claimNow(ctx, request)
}

func (l *life) takeDirect(d *seam.Direct, request fdbmodel.ClaimRequest) int {
	futures, more := d.Take(request)
	if len(futures) == 0 {
		return 0
	}
	for i := range futures {
		futures[i].Token.Worker = l.reg.ID()
	}
	for _, j := range l.worker.slots.admit(l, futures, true) {
		j.relinquish()
	}
	l.worker.slots.watchHeld()
	l.more = more
	return len(futures)
}

// endDirect tells how a direct future has ended.
func (w *Worker) endDirect(c *fdbmodel.Completion) {
	switch {
	case c.Result != nil:
		w.stats.ran.Add(1)
	case c.Exception != nil:
		w.stats.failed.Add(1)
		if c.Permanent {
			c.After.State = layout.Failed
		}
		w.report(c)
	case c.PutBack:
		w.stats.putBack.Add(1)
	case c.Snooze != nil:
	default:
		w.stats.relinquished.Add(1)
	}
	w.direct().End(*c)
}

package head

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/signal"
)

// maxBackoff bounds the wait between two attempts of an item.
const maxBackoff = 5 * time.Minute

// resumeRuns runs the chunks that are in progress in the store and that this
// head does not run: those of a head that has gone, or of itself before a
// restart. It asks for what their workers have done; nothing runs again.
func (d *driver) resumeRuns(ctx context.Context, b *batch.Batch) error {
	recorder, ok := d.head.options.Store.(batch.Recorder)
	d.head.mu.Lock()
	ok, d.resume = ok && d.resume, false
	d.head.mu.Unlock()
	if !ok {
		return nil
	}
	err := d.resumeOpen(ctx, recorder, b)
	if err != nil {
		d.head.mu.Lock()
		d.resume = true
		d.head.mu.Unlock()
	}
	return err
}

func (d *driver) resumeOpen(ctx context.Context, recorder batch.Recorder, b *batch.Batch) error {
	chunks, err := recorder.Chunks(ctx, d.id)
	if err != nil {
		return err
	}
	var open []batch.Chunk
	for _, c := range chunks {
		d.head.mu.Lock()
		_, running := d.runs[c.ID]
		d.head.mu.Unlock()
		if c.Status == batch.InProgress && !running {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return nil
	}
	items := map[string][]batch.Item{}
	for from := 0; ; {
		page, err := recorder.Outline(ctx, d.id, from, comparePage, 0, batch.InProgress)
		if err != nil {
			return err
		}
		for i := range page {
			items[page[i].Chunk] = append(items[page[i].Chunk], page[i])
		}
		if len(page) < comparePage {
			break
		}
		from = page[len(page)-1].Index + 1
	}
	for _, c := range open {
		if len(items[c.ID]) > 0 {
			d.start(ctx, recorder, b, c, items[c.ID])
		}
	}
	return nil
}

// start runs a chunk until its items have ended or its worker is lost.
func (d *driver) start(ctx context.Context, store batch.Recorder, b *batch.Batch, c batch.Chunk, items []batch.Item) {
	order := Order{Batch: *b, Chunk: c, Items: items, Template: &b.Template, Trace: d.trace}
	r := &chunkRun{driver: d, store: store, order: &order, open: map[int]int{}}
	for i := range items {
		r.open[items[i].Index] = items[i].Attempts
	}
	d.head.mu.Lock()
	d.runs[c.ID] = r
	d.head.mu.Unlock()
	d.head.wg.Go(func() {
		err := d.head.options.Dispatcher.Run(ctx, order, r.deliver)
		again := r.finish(ctx, err)
		if again {
			_ = pause(ctx, d.head.options.Look) // its caller looks at ctx
		}
		d.head.mu.Lock()
		d.resume = d.resume || again
		delete(d.runs, c.ID)
		d.head.mu.Unlock()
		signal.Send(d.ended)
	})
}

// stopRuns asks the workers of a batch that was cancelled to stop, each until it was asked once.
func (d *driver) stopRuns(ctx context.Context, reason string) error {
	d.head.mu.Lock()
	var running []*chunkRun
	for _, r := range d.runs {
		if !r.stopped {
			r.stopped = true
			running = append(running, r)
		}
	}
	d.head.mu.Unlock()
	var errs []error
	for _, r := range running {
		if err := d.head.options.Dispatcher.Cancel(ctx, *r.order, reason); err != nil {
			d.head.mu.Lock()
			r.stopped = false
			d.head.mu.Unlock()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// chunkRun is a chunk that a worker runs.
type chunkRun struct {
	stopped bool // under the head's mu
	driver  *driver
	store   batch.Recorder
	order   *Order
	// open are the items that have not ended, with their failed attempts.
	open map[int]int
}

// deliver records how attempts ended. Results of other chunks are dropped.
func (r *chunkRun) deliver(ctx context.Context, ended []batch.Completion) error {
	o := &r.driver.head.options
	var mine []batch.Completion
	for _, c := range ended {
		attempts, open := r.open[c.Index]
		if !open {
			o.Logger.Warn("discarding the result of an item that is not in progress",
				"batch", r.order.Batch.ID, "chunk", r.order.Chunk.ID, "item", c.Index)
			continue
		}
		if c.At.IsZero() {
			c.At = time.Now()
		}
		if c.Failed && c.DueAt.IsZero() {
			c.DueAt = c.At.Add(backoff(o.Backoff, attempts))
		}
		mine = append(mine, c)
	}
	if len(mine) == 0 {
		return nil
	}
	if _, err := r.store.Complete(ctx, r.order.Batch.ID, r.order.Chunk.ID, mine); err != nil {
		return err
	}
	for _, c := range mine {
		delete(r.open, c.Index)
	}
	signal.Send(r.driver.ended)
	return nil
}

// backoff is the wait after a failed attempt, n of which came before it.
func backoff(base time.Duration, n int) time.Duration {
	if n > 20 || base<<n > maxBackoff || base<<n <= 0 {
		return maxBackoff
	}
	return base << n
}

// finish gives back what a lost worker has not done, and reports whether the chunk
// must be asked for again.
func (r *chunkRun) finish(ctx context.Context, err error) (again bool) {
	log := r.driver.head.options.Logger
	switch {
	case ctx.Err() != nil:
		return false // its worker goes on; the head that resumes the batch asks for it
	case errors.Is(err, ErrWorkerLost), err == nil && len(r.open) > 0:
	case err != nil:
		log.Warn("running a chunk failed; retrying", "batch", r.order.Batch.ID, "chunk", r.order.Chunk.ID, "error", err)
		return true
	default:
		return false
	}
	n, err := r.store.Release(ctx, r.order.Batch.ID, r.order.Chunk.ID)
	log.Info("a worker was lost; its items wait for another", "batch", r.order.Batch.ID, "chunk", r.order.Chunk.ID,
		"worker", r.order.Chunk.Worker, "items", n, "error", err)
	return err != nil && ctx.Err() == nil && !errors.Is(err, batch.ErrNotFound)
}

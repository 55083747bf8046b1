package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// Bounds of a driver.
const (
	// roundPage is how many items are looked for at a time.
	roundPage = 2000
	// pauseMin lets what changes together be seen together.
	pauseMin = 10 * time.Millisecond
)

// driver drives one batch until it is over.
type driver struct {
	head  *Head
	id    string
	poked chan struct{}
	// ended is sent a value when the run of a chunk has.
	ended chan struct{}
	// runs are the chunks that this head runs, for a batch.Recorder; resume says
	// that there may be others. Both are under the head's mu.
	runs   map[string]*chunkRun
	resume bool
	// fresh are the items of a batch that was just made.
	fresh []batch.Item
	// found says that the batch was in the store before this head drove it.
	found bool
	trace map[string]string // that its items are part of, nil for none
	// at is when its next step is due, in a simulation.
	at time.Time
	// unwatched is set once it was said that changes are not reported.
	unwatched bool
	// moves is for the items that may go to other workers.
	moves balance
	// taken is how many slots of each worker the batch has, under the ledger's mu.
	taken map[string]int
	// since is when the batch began to wait for workers.
	since time.Time
}

func newDriver(h *Head, id string) *driver {
	return &driver{
		head: h, id: id, poked: make(chan struct{}, 1), ended: make(chan struct{}, 1), runs: map[string]*chunkRun{},
		resume: true,
	}
}

// poke makes the driver look, also for chunks of others. It is called under the
// head's mu.
func (d *driver) poke() {
	d.resume = true
	signal.Send(d.poked)
}

// busy reports whether chunks of the batch run by this head.
func (d *driver) busy() bool {
	d.head.mu.Lock()
	defer d.head.mu.Unlock()
	return len(d.runs) > 0
}

// run drives the batch until it is over or ctx ends.
func (d *driver) run(ctx context.Context) {
	for {
		d.watch(ctx)
		if !d.head.forget(d) {
			return
		}
	}
}

// watch looks at the batch whenever something changes.
func (d *driver) watch(ctx context.Context) {
	log := d.head.options.Logger
	var changed <-chan struct{}
	stop, watches := func() {}, false
	defer func() { stop() }()
	for {
		if !watches {
			changed, stop, watches = d.changes(ctx)
		}
		next, over, err := d.step(ctx)
		switch {
		case ctx.Err() != nil || over:
			return
		case err != nil:
			log.Warn("a batch could not be driven; retrying", "batch", d.id, "error", err)
		}
		if pause(ctx, pauseMin) != nil {
			return
		}
		look := time.NewTimer(time.Until(next))
		select {
		case <-changed:
		case <-d.ended:
		case <-d.poked:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
}

// changes is Watch of the store. done is false if the store has not answered: then the batch is looked at no earlier
// than the head would look anyway.
func (d *driver) changes(ctx context.Context) (changed <-chan struct{}, stop func(), done bool) {
	changed, stop, ok, err := d.head.options.Store.Watch(ctx, d.id)
	switch {
	case err == nil && ok:
		d.unwatched = false
		return changed, stop, true
	case err != nil && ctx.Err() == nil && !errors.Is(err, batch.ErrNotFound) && !d.unwatched:
		d.unwatched = true
		d.head.options.Logger.Warn("changes of a batch are not reported; trying again with each look", "batch", d.id,
			"error", err)
	}
	return nil, func() {}, err == nil
}

// step does what there is to do for the batch, and returns when to look again at
// the latest, and whether the batch is over.
func (d *driver) step(ctx context.Context) (next time.Time, over bool, err error) {
	o := &d.head.options
	now := d.head.now()
	next = now.Add(o.Look)
	b, loads, err := d.settle(ctx, now)
	if errors.Is(err, batch.ErrNotFound) {
		return next, true, nil
	}
	if err != nil {
		return next, false, err
	}
	d.count(&b, loads)
	if b.Status.Over() {
		if b.Status == batch.PermanentlyFailed {
			err = d.stopRuns(ctx, b.Reason)
		}
		if err != nil || d.busy() {
			return next, false, err
		}
		over, err = d.chunksOver(ctx)
		return next, over, err
	}
	if err := d.resumeRuns(ctx, &b); err != nil {
		return next, false, err
	}
	items := d.fresh
	if items == nil {
		var due time.Time
		if items, due, err = o.Store.Waiting(ctx, d.id, now, roundPage); err != nil {
			return next, false, err
		}
		if !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	if len(items) == 0 {
		d.since = time.Time{}
		if mover, ok := o.Store.(batch.Mover); ok {
			at, failed := d.balance(ctx, mover, &b, loads)
			if err = failed; !at.IsZero() {
				next = clock.Earlier(next, at)
			}
		}
		return next, false, err
	}
	workers, err := d.choose(ctx, &b, items)
	if len(items) > roundPage {
		d.fresh = nil // they are in the store, and batches may wait for workers for any time
	}
	if err != nil || len(workers) == 0 {
		return next, false, err
	}
	d.fresh, d.moves.begun = nil, nil
	return next, false, d.round(ctx, &b, workers, items)
}

// settle is Settle of the store, with the workers that have items in progress if the store can move them.
func (d *driver) settle(ctx context.Context, now time.Time) (batch.Batch, []batch.Load, error) {
	if mover, ok := d.head.options.Store.(batch.Mover); ok {
		return mover.SettleOpen(ctx, d.id, now)
	}
	b, err := d.head.options.Store.Settle(ctx, d.id, now)
	return b, nil, err
}

// chunksOver reports whether no chunk has items in progress that end without a run
// of this head, as those of a batch that was cancelled may.
func (d *driver) chunksOver(ctx context.Context) (bool, error) {
	if _, runs := d.head.options.Store.(batch.Recorder); runs {
		return true, nil
	}
	chunks, err := d.head.options.Store.Chunks(ctx, d.id)
	if errors.Is(err, batch.ErrNotFound) {
		return true, nil
	}
	open := slices.ContainsFunc(chunks, func(c batch.Chunk) bool { return c.Status == batch.InProgress })
	return err == nil && !open, err
}

// choose holds a roll call for items. It returns no workers while the batch waits for more.
func (d *driver) choose(ctx context.Context, b *batch.Batch, items []batch.Item) ([]Candidate, error) {
	o := &d.head.options
	workers, err := o.Dispatcher.RollCall(ctx, &b.Template)
	if err != nil {
		return nil, err
	}
	want := b.Template.Config.Nodes
	switch {
	case want == 0:
		want = 1
	case want < 0:
		want = max(len(workers), 1)
	}
	want = min(want, len(items))
	// All that come are wanted, and more may until the head is settled. They get items later where items move.
	_, moves := o.Store.(batch.Mover)
	early := d.found && b.Template.Config.Nodes < 0 && d.head.now().Before(d.head.settled) && (!moves || o.MoveAfter < 0)
	if len(workers) >= want && !early {
		d.since = time.Time{}
		return d.pick(b, workers, items, want), d.setReason(ctx, b, "")
	}
	now := d.head.now()
	if d.since.IsZero() {
		d.since = now
	}
	wait, until := o.WorkerWait, d.since.Add(o.WorkerWait)
	if b.Status == batch.InProgress {
		until = now
	}
	if d.found && until.Before(d.head.settled) {
		wait, until = o.BootDelay, d.head.settled
	}
	if !now.Before(until) && len(workers) > 0 {
		return d.pick(b, workers, items, len(workers)), d.setReason(ctx, b, "")
	}
	reason := fmt.Sprintf("%d of %d workers that can run %s are running; start more", len(workers), want,
		b.Template.Invocation())
	if len(workers) > 0 {
		reason += fmt.Sprintf(", or it starts with these after %v", wait)
	}
	return nil, d.setReason(ctx, b, reason)
}

// setReason has the batch say why it waits, unless it does: another head, or this one before a restart, may have
// said something else.
func (d *driver) setReason(ctx context.Context, b *batch.Batch, reason string) error {
	if b.Reason == reason {
		return nil
	}
	err := d.head.options.Store.SetReason(ctx, d.id, reason)
	if errors.Is(err, batch.ErrState) {
		return nil
	}
	return err
}

// round gives all items that wait to workers, in one chunk for each.
func (d *driver) round(ctx context.Context, b *batch.Batch, workers []Candidate, items []batch.Item) error {
	o := &d.head.options
	now := d.head.now().UTC().Truncate(time.Millisecond)
	chunks := make([]batch.Chunk, len(workers))
	for i, w := range workers {
		chunks[i] = batch.Chunk{
			ID: d.head.newID(), Batch: b.ID, Worker: w.Worker, Peer: w.Peer, Status: batch.InProgress, CreatedAt: now,
		}
	}
	given := make([][]batch.Item, len(workers))
	turn := 0
	for len(items) > 0 {
		n, err := d.assign(ctx, chunks, deal(items, workers, &turn), given)
		if err != nil {
			return d.after(ctx, b, chunks, given, err)
		}
		if n == 0 {
			break // others were faster
		}
		if items, _, err = o.Store.Waiting(ctx, d.id, now, roundPage); err != nil {
			return d.after(ctx, b, chunks, given, err)
		}
	}
	return d.after(ctx, b, chunks, given, nil)
}

// assign gives each chunk its part, all at a time, and returns how many items
// were given out.
func (d *driver) assign(ctx context.Context, chunks []batch.Chunk, parts, given [][]batch.Item) (int, error) {
	var wg sync.WaitGroup
	errs := make([]error, len(chunks))
	counts := make([]int, len(chunks))
	for i, part := range parts {
		if len(part) == 0 {
			continue
		}
		assign := func() {
			assigned, err := d.head.options.Store.Assign(ctx, &chunks[i], indexesOf(part))
			given[i] = append(given[i], only(part, assigned)...)
			counts[i], errs[i] = len(assigned), err
		}
		if d.head.options.Seam != nil {
			assign()
		} else {
			wg.Go(assign)
		}
	}
	wg.Wait()
	n := 0
	for _, count := range counts {
		n += count
	}
	return n, errors.Join(errs...)
}

// after starts what was given out, whatever kept the rest from it.
func (d *driver) after(ctx context.Context, b *batch.Batch, chunks []batch.Chunk, given [][]batch.Item, err error,
) error {
	if recorder, ok := d.head.options.Store.(batch.Recorder); ok {
		for i := range chunks {
			if len(given[i]) > 0 {
				d.start(ctx, recorder, b, chunks[i], given[i])
			}
		}
	}
	return err
}

func indexesOf(items []batch.Item) []int {
	indexes := make([]int, len(items))
	for i := range items {
		indexes[i] = items[i].Index
	}
	return indexes
}

// only returns the items with these indexes, which are in ascending order.
func only(items []batch.Item, indexes []int) []batch.Item {
	var kept []batch.Item
	for i := range items {
		if _, found := slices.BinarySearch(indexes, items[i].Index); found {
			kept = append(kept, items[i])
		}
	}
	return kept
}

// deal hands items out round robin, from turn on. An item that a worker has
// failed goes to the next one that has not, if there is one.
func deal(items []batch.Item, workers []Candidate, turn *int) [][]batch.Item {
	parts := make([][]batch.Item, len(workers))
	for i := range items {
		to := *turn
		for n := range workers {
			if at := (*turn + n) % len(workers); !slices.Contains(items[i].FailedOn, workers[at].Worker) {
				to = at
				break
			}
		}
		parts[to] = append(parts[to], items[i])
		*turn = (*turn + 1) % len(workers)
	}
	return parts
}

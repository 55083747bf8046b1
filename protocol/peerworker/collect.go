package peerworker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// How futures are looked at.
const (
	// futuresOwner owns the futures of items without a limit, so that they wait to be
	// assigned.
	futuresOwner = "peer"
	// gather is how long after an item has ended others are waited for.
	gather = 2 * time.Millisecond
	// lookAgain is how often those are looked at whose functions have ended, and lookAll
	// how often all are, whatever was told.
	lookAgain = time.Second
	lookAll   = 10 * time.Second
	// lookTogether is how many futures are read at a time.
	lookTogether = 500
	// discardItems and discardBytes are how much of a chunk its head has acknowledged
	// before that is removed while the chunk goes on.
	discardItems = 500
	discardBytes = 16 << 20
)

// collectLoop looks at futures as they end, and forgets chunks that are over, until
// ctx ends.
func (w *Worker) collectLoop(ctx context.Context) {
	if err := w.collectUntil(ctx); err != nil && ctx.Err() == nil {
		w.fail(err)
	}
}

func (w *Worker) collectUntil(ctx context.Context) error {
	all := time.NewTicker(lookAll)
	defer all.Stop()
	member := w.node.worker.ID()
	for full := true; ; {
		if err := w.collect(ctx, full); err != nil {
			return err
		}
		w.giveUpAsked(ctx)
		if err := w.tidy(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(lookAgain)
		full = false
		var err error
		select {
		case <-w.news:
			err = clock.Sleep(ctx, clock.Real{}, gather)
		case <-timer.C:
		case <-all.C:
			full = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return err
		}
		// What was assigned to an earlier membership is assigned to none.
		if now := w.node.worker.ID(); now != member {
			member, full = now, true
		}
		full = w.lookNow.Swap(false) || full
	}
}

// landed is told of futures whose ends are in the store.
func (w *Worker) landed(ids []layout.ID) {
	w.mu.Lock()
	for _, id := range ids {
		if at, found := w.places[id]; found && !at.chunk.isDirect() {
			w.maybe = append(w.maybe, at)
		}
	}
	w.mu.Unlock()
	signal.Send(w.news)
}

// lookAt has items looked at with the next collect.
func (w *Worker) lookAt(c *chunk, indexes ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range indexes {
		w.maybe = append(w.maybe, place{c, i})
	}
}

// takeMaybe returns the items to look at.
func (w *Worker) takeMaybe() []place {
	w.mu.Lock()
	places := w.maybe
	w.maybe = nil
	w.mu.Unlock()
	seen := make(map[place]bool, len(places))
	return slices.DeleteFunc(places, func(p place) bool {
		twice := seen[p]
		seen[p] = true
		return twice || !p.chunk.isOpen(p.index)
	})
}

// ready divides items by whether the futures of their chunks are made.
func ready(places []place) (made, unmade []place) {
	for _, p := range places {
		p.chunk.mu.Lock()
		begun := p.chunk.begun
		p.chunk.mu.Unlock()
		if begun {
			made = append(made, p)
		} else {
			unmade = append(unmade, p)
		}
	}
	return made, unmade
}

// collect queues the outcomes of items that have ended. It looks at those that may
// have, and at all if full is set.
func (w *Worker) collect(ctx context.Context, full bool) error {
	maybe, unmade := ready(w.takeMaybe())
	left, idle, err := w.collectPlaces(ctx, maybe)
	if err != nil {
		left = maybe
	}
	// Their ends are on their way to the store.
	w.mu.Lock()
	w.maybe = append(append(w.maybe, left...), unmade...)
	w.mu.Unlock()
	if err == nil && full {
		var open []place
		for _, c := range w.all() {
			if c.isDirect() {
				continue
			}
			for _, i := range c.openItems() {
				open = append(open, place{c, i})
			}
		}
		open, _ = ready(open)
		_, idle, err = w.collectPlaces(ctx, open)
	}
	if err != nil {
		return err
	}
	return w.assign(ctx, idle)
}

// collectPlaces returns those that have not ended and don't run, and futures that wait
// for nobody.
func (w *Worker) collectPlaces(ctx context.Context, places []place) (left []place, idle []layout.ID, err error) {
	chunks := map[*chunk]bool{}
	for part := range slices.Chunk(places, lookTogether) {
		again, waiting, err := w.collectPart(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		left, idle = append(left, again...), append(idle, waiting...)
	}
	for _, p := range places {
		chunks[p.chunk] = true
	}
	for c := range chunks {
		signal.Send(c.ring)
	}
	return left, idle, nil
}

// collectPart does so for some that are read together.
func (w *Worker) collectPart(ctx context.Context, places []place) (again []place, idle []layout.ID, err error) {
	ids := make([]layout.ID, len(places))
	for i, p := range places {
		ids[i] = p.chunk.ids[p.index]
	}
	rows, err := w.node.cluster.GetMany(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	found := make(map[layout.ID]*layout.Row, len(rows))
	for i := range rows {
		found[rows[i].ID] = &rows[i]
	}
	for i, p := range places {
		row := found[ids[i]]
		if row == nil {
			p.chunk.endMissing(p.index)
			continue
		}
		if what := endOf(row); what != endNone {
			if err := p.chunk.endRow(ctx, p.index, row, what); err != nil {
				return nil, nil, err
			}
			continue
		}
		if isIdle(row) && p.chunk.isReleased() {
			idle = append(idle, row.ID)
		}
		if !p.chunk.runs(p.index) {
			again = append(again, p)
		}
	}
	return again, idle, nil
}

// isIdle reports whether a future waits to be assigned.
func isIdle(row *layout.Row) bool {
	return row.State() == layout.Ready && row.Attempts.Assigned == ""
}

// assign gives futures that wait for nobody to the worker. They were left by an
// earlier membership of it.
func (w *Worker) assign(ctx context.Context, ids []layout.ID) error {
	if len(ids) == 0 || w.stopping.Load() {
		return nil
	}
	_, err := w.node.cluster.Assign(ctx, w.node.worker.ID(), "", ids)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrUnfit) {
		return nil // the worker is about to register again; the next look assigns them
	}
	return err
}

// endMissing ends an item without a future.
func (c *chunk) endMissing(index int) {
	c.mu.Lock()
	acked := c.record.Acked
	if acked {
		c.settleItem(index, 0)
	}
	c.mu.Unlock()
	if !acked {
		c.end(ended{index: index, outcome: returned(index, "it was not begun before the worker stopped")})
	}
}

// endRow queues the outcome of a future.
func (c *chunk) endRow(ctx context.Context, index int, row *layout.Row, what endKind) error {
	if again, err := c.runAgain(ctx, index, row); again || err != nil {
		return err
	}
	if !row.State().Terminal() {
		c.mu.Lock()
		c.waiting[row.ID] = true
		c.mu.Unlock()
	}
	e := row.Ending()
	size := e.Size()
	if c.order != nil && c.order.output+size > keptOutput {
		c.endUnsaid(index, size)
		return nil
	}
	if c.order != nil {
		c.order.output += size
	}
	if c.order != nil || !c.worker.mayCache(size) {
		c.end(ended{index: index, size: size})
		return nil
	}
	outcome, err := c.outcome(ctx, index, row, what)
	if err != nil {
		c.worker.uncache(size)
	}
	if errors.Is(err, fdbmodel.ErrNotFound) {
		c.endMissing(index)
		return nil
	}
	if err != nil {
		return err
	}
	c.end(ended{index: index, size: size, outcome: outcome})
	return nil
}

// endUnsaid ends an item of b7s's whose output has no room in the reply, and keeps none of
// it.
func (c *chunk) endUnsaid(index int, size int64) {
	c.mu.Lock()
	c.done = append(c.done, c.ids[index])
	c.doneBytes += size
	c.bytes += size
	c.charge(size)
	c.mu.Unlock()
	c.end(ended{index: index, outcome: &protocol.Outcome{
		Index: index, Code: protocol.CodeError, Message: noRoomInReply(size, replyOutputs[0]),
	}})
}

// tidy removes the futures that heads have the results of, and chunks that are over.
func (w *Worker) tidy(ctx context.Context) error {
	var over, partly []*chunk
	kept, crowded := map[string]int64{}, w.isCrowded()
	for _, c := range w.all() {
		c.mu.Lock()
		if c.unsent == 0 && c.flights == 0 && c.begun {
			over = append(over, c)
		} else if len(c.done) >= discardItems || c.doneBytes >= discardBytes || crowded && c.doneBytes > 0 {
			partly = append(partly, c)
		}
		if c.order == nil { // those of b7s get nothing before all has run
			kept[c.name.head] += c.bytes - c.doneBytes
		}
		c.mu.Unlock()
	}
	w.restrain(kept)
	for _, c := range partly {
		if err := w.discardPart(ctx, c); err != nil {
			return err
		}
	}
	return w.forget(ctx, over)
}

// discardPart removes some futures of a chunk that goes on.
func (w *Worker) discardPart(ctx context.Context, c *chunk) error {
	c.mu.Lock()
	c.record.Acked = true
	r := c.record
	c.mu.Unlock()
	if w.options.State != "" {
		if err := w.node.writeRecord(ctx, c.owner, &r, nil); err != nil {
			return err
		}
	}
	size, err := w.discard(ctx, c)
	c.uncharge(size)
	return err
}

// discard removes the futures of chunks that are settled, and returns the size of their
// results.
func (w *Worker) discard(ctx context.Context, chunks ...*chunk) (size int64, err error) {
	if w.options.State != "" {
		w.cancelling.Lock()
		defer w.cancelling.Unlock()
	}
	var done, waiting []layout.ID
	for _, c := range chunks {
		c.mu.Lock()
		own := w.own(c, c.done)
		var direct []layout.ID
		if c.isDirect() {
			direct, own = own, nil
		}
		for _, id := range own {
			if c.waiting[id] {
				waiting = append(waiting, id)
				delete(c.waiting, id)
			}
		}
		done = append(done, own...)
		size += c.doneBytes
		c.done, c.doneBytes = nil, 0
		c.mu.Unlock()
		if len(direct) > 0 {
			w.runner.forget(c, direct)
		}
	}
	if len(done) == 0 {
		return size, nil
	}
	// These wait for an attempt that never comes.
	if _, err := w.node.cluster.CancelMany(ctx, waiting, "its attempt is over"); err != nil {
		return 0, err
	}
	_, err = w.node.cluster.DiscardMany(ctx, done)
	return size, err
}

func (c *chunk) uncharge(size int64) {
	c.mu.Lock()
	size = min(size, c.bytes)
	c.bytes -= size
	c.mu.Unlock()
	c.charge(-size)
}

// forget removes chunks that are over, their records first: what a crash then leaves
// behind is removed by the retention of the cluster.
func (w *Worker) forget(ctx context.Context, chunks []*chunk) error {
	if len(chunks) == 0 {
		return nil
	}
	if w.options.State != "" {
		if err := w.node.dropRecords(ctx, chunks); err != nil {
			return err
		}
	}
	if _, err := w.discard(ctx, chunks...); err != nil {
		return err
	}
	if err := w.dropOwners(ctx, chunks); err != nil {
		return err
	}
	for _, c := range chunks {
		w.remove(c)
	}
	return nil
}

// dropOwners removes what the store counts of owners that no chunk has any more.
func (w *Worker) dropOwners(ctx context.Context, gone []*chunk) error {
	dropped := map[string]bool{}
	for _, c := range gone {
		if c.record.Owner != "" && !c.isDirect() {
			dropped[c.record.Owner] = true
		}
	}
	if len(dropped) == 0 {
		return nil
	}
	for _, c := range w.all() {
		if !slices.Contains(gone, c) {
			delete(dropped, c.record.Owner)
		}
	}
	for owner := range dropped {
		err := owners.Of(w.node.cluster).Drop(ctx, layout.DefaultQueue, owner)
		if err != nil && !errors.Is(err, fdbmodel.ErrTransition) { // another chunk has begun
			return err
		}
	}
	return nil
}

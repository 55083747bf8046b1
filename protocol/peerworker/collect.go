package peerworker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// How a chunk's futures are looked at.
const (
	// gather is how long after a future has ended others are waited for.
	gather = 2 * time.Millisecond
	// lookAgain is how often all of a chunk is looked at, whatever was told.
	lookAgain = time.Second
	// lookTogether is how many futures are read at a time.
	lookTogether = 500
	// discardItems and discardBytes are how much the head has acknowledged before it is
	// removed while the chunk goes on.
	discardItems = 500
	discardBytes = 16 << 20
)

// run sees a chunk to its end, and forgets it then.
func (c *chunk) run(ctx context.Context) {
	err := c.watch(ctx)
	for err == nil && !c.isOver() {
		select {
		case <-c.news:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err == nil {
			err = c.discard(ctx, false)
		}
	}
	if err == nil {
		err = c.forget(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.worker.fail(err)
	}
}

// watch looks at the futures until none is open.
func (c *chunk) watch(ctx context.Context) error {
	full := true
	for {
		bell, err := c.worker.node.cluster.WatchOwner(ctx, c.owner)
		if err != nil {
			return err
		}
		err = c.collect(ctx, full)
		if err == nil {
			err = c.discard(ctx, false)
		}
		c.mu.Lock()
		open := c.open
		c.mu.Unlock()
		if err != nil || open == 0 {
			bell.Cancel()
			return err
		}
		full = false
		timer := time.NewTimer(lookAgain)
		select {
		case <-bell.Done():
			err = wait(ctx, gather)
		case <-c.news:
		case <-timer.C:
			full = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		bell.Cancel()
		if err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// collect queues the outcomes of items that have ended. It looks at those that may
// have, or at all.
func (c *chunk) collect(ctx context.Context, full bool) error {
	indexes := c.takeMaybe()
	if full {
		indexes = c.openItems()
	}
	var idle []layout.ID
	for part := range slices.Chunk(indexes, lookTogether) {
		waiting, err := c.collectPart(ctx, part)
		if err != nil {
			c.mayHaveEnded(indexes...)
			return err
		}
		idle = append(idle, waiting...)
	}
	signal(c.ring)
	return c.assign(ctx, idle)
}

// collectPart does so for some items, and returns the futures that wait for nobody.
func (c *chunk) collectPart(ctx context.Context, indexes []int) (idle []layout.ID, err error) {
	ids := make([]layout.ID, len(indexes))
	for i, index := range indexes {
		ids[i] = c.ids[index]
	}
	rows, err := c.worker.node.cluster.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[layout.ID]*layout.Row, len(rows))
	for i := range rows {
		found[rows[i].ID] = &rows[i]
	}
	var again []int
	for _, index := range indexes {
		row := found[c.ids[index]]
		if row == nil {
			c.endMissing(index)
			continue
		}
		switch what := endOf(row); what {
		case endNone:
			if isIdle(row) {
				idle = append(idle, row.ID)
			}
			again = append(again, index)
		default:
			if !row.State().Terminal() {
				c.mu.Lock()
				c.waiting[row.ID] = true
				c.mu.Unlock()
			}
			if err := c.endRow(ctx, index, row, what); err != nil {
				return nil, err
			}
		}
	}
	c.keepLooking(again)
	return idle, nil
}

// keepLooking has items that functions were called for looked at again.
func (c *chunk) keepLooking(indexes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range indexes {
		if _, runs := c.running[i]; !runs && c.states[i] == itemOpen {
			c.maybe = append(c.maybe, i)
		}
	}
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
	e := row.Ending()
	size := e.Size()
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

// isIdle reports whether a future waits to be assigned.
func isIdle(row *layout.Row) bool {
	return row.State() == layout.Ready && row.Attempts.Assigned == ""
}

// assign gives futures that wait for nobody to the worker. They were left by an
// earlier membership of it.
func (c *chunk) assign(ctx context.Context, ids []layout.ID) error {
	if len(ids) == 0 {
		return nil
	}
	select {
	case <-c.released:
	default:
		return nil
	}
	if c.worker.stopping.Load() {
		return nil
	}
	_, err := c.worker.node.cluster.Assign(ctx, c.worker.node.worker.ID(), "", ids)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrUnfit) {
		return nil // the worker is about to register again; the next look assigns them
	}
	return err
}

// discard removes futures that the head has the results of, once there are many or
// if all are to go.
func (c *chunk) discard(ctx context.Context, all bool) error {
	c.mu.Lock()
	if len(c.done) == 0 || !all && len(c.done) < discardItems && c.doneBytes < discardBytes {
		c.mu.Unlock()
		return nil
	}
	done, size := c.done, c.doneBytes
	c.done, c.doneBytes = nil, 0
	var waiting []layout.ID
	for _, id := range done {
		if c.waiting[id] {
			waiting = append(waiting, id)
			delete(c.waiting, id)
		}
	}
	mark := !all && !c.record.Acked
	c.record.Acked = c.record.Acked || mark
	r := c.record
	c.mu.Unlock()
	if mark {
		if err := c.worker.node.writeRecord(ctx, c.owner, &r, nil); err != nil {
			return err
		}
	}
	done, waiting = c.worker.own(c, done), c.worker.own(c, waiting)
	if _, err := c.worker.node.cluster.CancelMany(ctx, waiting, "its attempt is over"); err != nil {
		return err
	}
	if _, err := c.worker.node.cluster.DiscardMany(ctx, done); err != nil {
		return err
	}
	c.uncharge(size)
	return nil
}

func (c *chunk) uncharge(size int64) {
	c.mu.Lock()
	size = min(size, c.bytes)
	c.bytes -= size
	c.mu.Unlock()
	c.worker.charge(-size)
}

// forget removes a chunk that is over, its record first: what a crash then leaves
// behind is removed by the retention of the cluster.
func (c *chunk) forget(ctx context.Context) error {
	if err := c.worker.node.dropRecord(ctx, c.owner); err != nil {
		return err
	}
	if err := c.discard(ctx, true); err != nil {
		return err
	}
	err := c.worker.node.cluster.DropOwner(ctx, layout.DefaultQueue, c.owner)
	if err != nil && !errors.Is(err, fdbmodel.ErrTransition) {
		return err
	}
	c.worker.remove(c)
	return nil
}

package peerworker

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// An attempt that is ordered again runs once: the new order is answered with how it ended. But
// a cancel is that of the order, and so is the wish of a function to be run later, which the
// head has heeded. Neither is an answer to a new order: the attempt is run once more, after
// what was cancelled has stopped. A result that came in spite of a cancel answers both.

// takeOver has a chunk take over those items whose futures exist: they may have ended for
// another chunk. What counted for that one alone is made again, at once or once it stops.
func (c *chunk) takeOver(ctx context.Context, subs []fdbmodel.Submission, existed []int) error {
	if len(existed) == 0 {
		return nil
	}
	cluster := c.worker.node.cluster
	ids := make([]layout.ID, len(existed))
	for n, i := range existed {
		ids[n] = c.ids[i]
	}
	rows, err := cluster.GetMany(ctx, ids)
	if err != nil {
		return err
	}
	by := make(map[layout.ID]*layout.Row, len(rows))
	for i := range rows {
		by[rows[i].ID] = &rows[i]
	}
	var over []fdbmodel.Submission
	for _, i := range existed {
		switch row := by[c.ids[i]]; {
		case row == nil, isVoid(row):
			over = append(over, subs[i])
		case row.Cancel != nil && !row.State().Terminal():
			c.mu.Lock()
			c.anew[i] = subs[i]
			c.record.Anew = append(c.record.Anew, i)
			c.mu.Unlock()
		}
	}
	if len(c.record.Anew) > 0 {
		if err := c.worker.node.writeRecord(ctx, c.owner, &c.record, nil); err != nil {
			return err
		}
	}
	c.worker.lookAt(c, existed...)
	return c.worker.makeAnew(ctx, over)
}

// wasCancelled reports whether a future ended by a cancel.
func wasCancelled(row *layout.Row) bool {
	return row.State() == layout.Failed && row.Exception.Kind == layout.KindCancelled
}

// isVoid reports whether how a future ended is no answer to another order.
func isVoid(row *layout.Row) bool {
	end := endOf(row)
	return wasCancelled(row) || end == endSnoozed || end == endReturned
}

// makeAnew makes futures in the place of those that were here, which may be gone.
func (w *Worker) makeAnew(ctx context.Context, subs []fdbmodel.Submission) error {
	if len(subs) == 0 {
		return nil
	}
	ids := make([]layout.ID, len(subs))
	for i := range subs {
		ids[i], subs[i].Assigned = subs[i].ID, w.node.worker.ID()
	}
	if _, err := w.node.cluster.CancelMany(ctx, ids, "it is ordered again"); err != nil {
		return err
	}
	if _, err := w.node.cluster.DiscardMany(ctx, ids); err != nil {
		return err
	}
	_, err := w.node.cluster.Submit(ctx, subs)
	return err
}

// runAgain makes the future of an item anew if it has ended by the cancel of an earlier order,
// and reports whether it has; else how it ended counts. What the worker ran before its restart
// is given back instead: it does not remember the arguments.
func (c *chunk) runAgain(ctx context.Context, index int, row *layout.Row) (again bool, err error) {
	c.mu.Lock()
	_, found := c.anew[index]
	c.mu.Unlock()
	if !found {
		return false, nil
	}
	c.worker.cancelling.Lock()
	defer c.worker.cancelling.Unlock()
	c.mu.Lock()
	sub, found := c.anew[index]
	delete(c.anew, index)
	c.mu.Unlock()
	switch {
	case !found || !wasCancelled(row):
		return false, nil
	case sub.ID == (layout.ID{}):
		c.end(ended{index: index, outcome: returned(index, "an earlier order of it was cancelled")})
		return true, nil
	}
	err = c.worker.makeAnew(ctx, []fdbmodel.Submission{sub})
	if err != nil {
		c.mu.Lock()
		c.anew[index] = sub
		c.mu.Unlock()
	}
	return true, err
}

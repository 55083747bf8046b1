package peerworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/protocol"
)

// recalled is a chunk that the journal has.
type recalled struct {
	*stored
	order  *order
	number uint64
}

// recall takes up the chunks that the journal has. What has not ended begins once its head says
// that it still wants it.
func (w *Worker) recall(ctx context.Context) error {
	all, foreign, err := w.journal.read(ctx)
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		w.log.Warn("orders of an earlier version are not taken up: their heads give them to others. What the disk has of "+
			"them is free once the directory is made anew", "orders", len(foreign), "directory", w.options.State)
		if err := w.journal.removeForeign(ctx, foreign); err != nil {
			return err
		}
	}
	var found []recalled
	var gone []*chunk
	for owner, s := range all {
		r, err := s.recall(owner)
		switch {
		case err != nil:
			w.log.Error("an order can't be read, and is forgotten: its head gives it to others", "owner", owner,
				"error", err)
			fallthrough
		case r.order == nil:
			gone = append(gone, &chunk{owner: owner})
		case !w.mayOrder(r.order.name.head):
			w.log.Warn("an order of a head that this worker does not serve waits for a start with that head",
				"head", r.order.name.head, "chunk", r.order.name.chunk)
		default:
			found = append(found, r)
		}
	}
	if err := w.journal.forget(ctx, gone); err != nil {
		return err
	}
	// An item that several have is the newest one's.
	slices.SortFunc(found, func(a, b recalled) int { return cmp.Compare(a.number, b.number) })
	for _, r := range found {
		w.recallChunk(r)
	}
	return nil
}

// recall reads the order of a chunk, which has none if a crash came before it was whole.
func (s *stored) recall(owner string) (r recalled, err error) {
	if s.order == nil {
		return r, nil
	}
	var row orderRow
	if err := json.Unmarshal(s.order, &row); err != nil {
		return r, err
	}
	m, err := protocol.Decode(row.Message)
	if err != nil {
		return r, err
	}
	batch, ok := m.(*protocol.WorkOrderBatch)
	if !ok {
		return r, fmt.Errorf("it has %s for an order", m.Type())
	}
	o := &order{WorkOrderBatch: batch, name: chunkName{row.Head, batch.ChunkID}}
	if o.name.owner() != owner || len(batch.Items) != len(batch.Arguments) {
		return r, errors.New("it is no order of this chunk")
	}
	if refused := o.readItems(); refused != nil {
		return r, refused
	}
	o.size = max(o.size, sizeKept(row.Message))
	s.order = nil // it is in memory once
	return recalled{s, o, row.Number}, nil
}

// recallChunk takes up a chunk after the earlier ones.
func (w *Worker) recallChunk(r recalled) {
	c := newChunk(w, r.order.name, r.order.WorkOrderBatch, len(r.order.items), r.order.items)
	c.number, c.kept = r.number, true
	w.admit(c, r.order.size)
	for i, id := range c.ids {
		row, err := r.item(i)
		if err != nil {
			w.log.Error("the end of an item can't be read; it runs again", "chunk", c.name.chunk, c.named([]int{i}),
				"error", err)
		}
		if row != nil && err == nil {
			w.runner.discard(id)
			w.recallItem(c, i, row, r.values)
		}
	}
	refused := w.nameFunction(r.order)
	subs := w.submissions(r.order, c)
	if err := w.runner.checkAll(subs); err != nil && refused == nil {
		refused = refusalOf(err)
	}
	w.runner.hold(c, subs) // what has ended counts all the same
	if refused != nil {
		c.giveBack(c.openItems(), refused)
	}
	w.runChunk(c)
	w.spawn(func() {
		select {
		case <-c.released:
			w.startLater(c)
		case <-w.ctx.Done():
		}
	})
}

// recallItem ends an item as it had ended before.
func (w *Worker) recallItem(c *chunk, index int, row *itemRow, values map[int]*spool) {
	x := &attempt{id: c.ids[index], head: c.name.head, chunk: c, state: runOver, size: row.Size, discarded: row.Discarded}
	switch {
	case row.Cancel != nil:
		x.outcome, x.discarded = cancelledOutcome(*row.Cancel), true
	case row.Outcome == nil:
		c.mu.Lock()
		c.settleItem(index, 0)
		c.mu.Unlock()
		return
	default:
		x.outcome = *row.Outcome
	}
	if x.outcome.Blob != nil {
		value := values[index]
		if value == nil {
			return // it runs again
		}
		delete(values, index)
		x.outcome.Blob = w.blobs.hold(x.head, x.id, nil, value)
		if *x.outcome.Blob != *row.Outcome.Blob {
			w.log.Error("a large result is damaged; its item runs again", "chunk", c.name.chunk, c.named([]int{index}))
			w.blobs.drop(blobName{x.head, x.outcome.Blob.ID}, x.id)
			return
		}
	}
	w.runner.recall(x)
	c.queueEnd(x.endedAt(index))
}

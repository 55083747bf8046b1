package peerworker

import (
	"cmp"
	"context"
	"encoding/json"
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
	all, err := w.journal.read(ctx)
	if err != nil {
		return err
	}
	var found []recalled
	for owner, s := range all {
		r, err := s.recall()
		switch {
		case err != nil:
			w.log.Error("a chunk can't be read; its results are lost", "chunk", owner, "error", err)
			s.close()
		case r.order == nil:
			s.close()
			if err := w.journal.forget(ctx, []*chunk{{owner: owner}}); err != nil {
				return err
			}
		default:
			found = append(found, r)
		}
	}
	// An item that several have is the newest one's.
	slices.SortFunc(found, func(a, b recalled) int { return cmp.Compare(a.number, b.number) })
	for _, r := range found {
		w.recallChunk(r)
		r.close()
	}
	return nil
}

// recall reads the order of a chunk, which has none if a crash came before it was whole.
func (s *stored) recall() (r recalled, err error) {
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
	if refused := o.readItems(); refused != nil {
		return r, refused
	}
	return recalled{s, o, row.Number}, nil
}

// recallChunk takes up a chunk after the earlier ones.
func (w *Worker) recallChunk(r recalled) {
	c := newChunk(w, r.order.name, r.order.WorkOrderBatch, len(r.order.items), r.order.items)
	c.number = r.number
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
	if refused := w.nameFunction(r.order); refused != nil {
		c.giveBack(c.openItems(), refused)
	} else if err := w.runner.hold(c, w.submissions(r.order, c)); err != nil {
		c.giveBack(c.openItems(), err)
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
	x := &attempt{id: c.ids[index], head: c.name.head, chunk: c, state: runOver, size: row.Size, void: row.Void}
	switch {
	case row.Cancel != nil:
		x.outcome, x.void = cancelledOutcome(*row.Cancel), true
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
	}
	w.runner.recall(x)
	c.queueEnd(x.endedAt(index))
}

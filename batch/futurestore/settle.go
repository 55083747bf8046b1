package futurestore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
)

// Settle implements batch.Store.
func (s *Store) Settle(ctx context.Context, id string, now time.Time) (batch.Batch, error) {
	b, _, err := s.SettleOpen(ctx, id, now)
	return b, err
}

// SettleOpen implements batch.Mover. It counts what is over before it looks at the chunks: so no chunk of a batch that
// it makes Done stays in progress, also if it is killed in between.
func (s *Store) SettleOpen(ctx context.Context, id string, now time.Time) (batch.Batch, []batch.Load, error) {
	b, err := s.settled(ctx, id)
	if err != nil {
		return b, nil, err
	}
	over := false
	if !b.Status.Over() {
		counts, err := owners.Of(s.cluster).Counts(ctx, Queue(&b.Template), b.ID)
		if err != nil {
			return b, nil, err
		}
		over = int(counts[layout.Realized]+counts[layout.Failed]) >= b.Items
	}
	open, err := s.settleChunks(ctx, id, now)
	if err != nil || !over {
		return b, open, err
	}
	// Items may have started over since they were counted.
	r, err := s.batches.End(ctx, b.ID, func(r *layout.BatchRecord) (bool, error) {
		if !isOpen(r) {
			return false, nil
		}
		r.Status, r.Reason, r.FinishedAt = int(batch.Done), "", now.UnixMilli()
		return true, nil
	})
	if err != nil {
		return b, open, translate(err)
	}
	b, err = batchOf(&r)
	return b, open, err
}

// settleChunks ends the chunks that have no item in progress, and returns the workers with items of the others.
func (s *Store) settleChunks(ctx context.Context, id string, now time.Time) ([]batch.Load, error) {
	chunks, err := s.batches.Chunks(ctx, id)
	if err != nil {
		return nil, err
	}
	counts, err := owners.Of(s.cluster).Open(ctx, id)
	if err != nil {
		return nil, err
	}
	loads := map[string]int{}
	for i := range chunks {
		c := &chunks[i]
		if n := counts[c.ID]; n > 0 {
			loads[string(c.Worker)] += int(n)
			continue
		}
		if batch.Status(c.Status) != batch.InProgress {
			continue
		}
		_, err := s.batches.UpdateChunk(ctx, id, c.ID, func(c *layout.BatchChunk) (bool, error) {
			write := batch.Status(c.Status) == batch.InProgress
			if c.Status = int(batch.Done); c.Lost > 0 {
				c.Status = int(batch.Failed)
			}
			c.FinishedAt = now.UnixMilli()
			return write, nil
		})
		if err != nil && !errors.Is(err, fdbmodel.ErrNotFound) {
			return nil, err
		}
	}
	open := make([]batch.Load, 0, len(loads))
	for _, worker := range slices.Sorted(maps.Keys(loads)) {
		open = append(open, batch.Load{Worker: worker, Items: loads[worker]})
	}
	return open, nil
}

// Move implements batch.Mover.
func (s *Store) Move(ctx context.Context, from string, to *batch.Chunk, most int) (int, error) {
	b, err := s.Get(ctx, to.Batch)
	if err != nil {
		return 0, err
	}
	worker := layout.WorkerID(from)
	waiting, err := s.batches.Waiting(ctx, b.ID, Queue(&b.Template), worker, 2*most)
	if err != nil {
		return 0, err
	}
	chunk := recordOf(to)
	moved := 0
	for ids := range slices.Chunk(waiting[:(len(waiting)+1)/2], fdbmodel.MaxAssign) {
		n, err := s.batches.Move(ctx, b.ID, worker, chunk, ids, isOpen)
		if moved += n; err != nil {
			return moved, translate(err)
		}
	}
	return moved, nil
}

// recordOf is the record of a new chunk.
func recordOf(c *batch.Chunk) layout.BatchChunk {
	return layout.BatchChunk{
		ID: c.ID, Worker: layout.WorkerID(c.Worker), Status: int(batch.InProgress), CreatedAt: c.CreatedAt.UnixMilli(),
		Peer: c.Peer,
	}
}

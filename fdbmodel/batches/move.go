package batches

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Waiting returns up to limit items of a batch that wait for a worker alone, the one
// that it takes last first, from a snapshot.
func (s *Batches) Waiting(ctx context.Context, batch, queue string, worker layout.WorkerID, limit int,
) ([]layout.ID, error) {
	var ids []layout.ID
	prefix := s.keys.AssignedTo(worker)
	own := s.keys.AssignedOf(worker, queue, batch)
	err := s.cluster.View(ctx, func(tx kv.Attempt) error {
		ids = nil
		page, err := tx.Snapshot().GetRange(kv.Prefix(own), kv.RangeOptions{Limit: limit, Reverse: true}).Wait(ctx)
		for _, item := range page.Items {
			e, err := layout.ParseAssigned(item, prefix)
			if err != nil {
				continue // an audit reports it
			}
			ids = append(ids, e.ID)
		}
		return err
	})
	return ids, err
}

// Move moves up to fdbmodel.MaxAssign items of a batch that wait for one worker to the worker
// of a chunk in one transaction, so that no other worker can take them in between, and writes the
// chunk's record if it has none. It and those of the chunks that they were in say how many
// items they have then. Items that the first worker has begun, or has no longer, stay, as do
// those that the second can't run, or has failed before. It returns how many are with the
// chunk then. It returns fdbmodel.ErrNotFound if the batch or the second worker does not exist, and
// fdbmodel.ErrTransition unless may returns true for the batch. An unknown commit is retried, and counts
// nothing twice.
func (s *Batches) Move(ctx context.Context, batch string, from layout.WorkerID, to layout.BatchChunk,
	items []layout.ID, may func(*layout.BatchRecord) bool,
) (there int, err error) {
	if len(items) > fdbmodel.MaxAssign {
		return 0, fmt.Errorf("%w: %d items to move: at most %d at a time", layout.ErrBadSpec, len(items), fdbmodel.MaxAssign)
	}
	_, err = s.cluster.Change(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		b, err := s.read(ctx, tx, batch)
		if err != nil {
			return err
		}
		if !may(&b) {
			return fmt.Errorf("batch %s: %w", batch, fdbmodel.ErrTransition)
		}
		was := map[layout.ID]string{}
		assigned, err := w.Assign(ctx, fdbmodel.Assignment{
			From: from, To: to.Worker, Reason: to.ID,
			May: func(row *layout.Row, info *layout.WorkerInfo) bool {
				was[row.ID] = row.Attempts.Reason
				return row.Spec.Owner == batch && mayMove(row, info)
			},
		}, items)
		if err != nil {
			return err
		}
		moved := map[string]int{}
		there = 0
		for i, o := range assigned.Outcomes {
			if o == fdbmodel.Applied {
				moved[was[items[i]]]++
			}
			if o != fdbmodel.Refused {
				there++
			}
		}
		return moveCounts(ctx, tx, s.keys, batch, to, moved)
	})
	if err != nil {
		return 0, err
	}
	return there, nil
}

// mayMove reports whether another worker may get an item that it would have been given.
func mayMove(row *layout.Row, to *layout.WorkerInfo) bool {
	failed := row.Exception != nil && slices.Contains(row.Exception.FailedOn, to.ID)
	return !failed && to.CanRun(row.Needs()) == nil
}

// moveCounts counts items that move to a chunk, by the chunks that they were in.
func moveCounts(ctx context.Context, tx kv.Tx, keys layout.Keyspace, batch string, to layout.BatchChunk,
	moved map[string]int,
) error {
	if len(moved) == 0 {
		return nil
	}
	from := slices.Sorted(maps.Keys(moved))
	asked, total := askChunks(tx, keys, batch, append(from, to.ID)...), 0
	for i, id := range from {
		total += moved[id]
		chunk, err := asked[i].wait(ctx)
		if layout.IsUnreadable(err) || err == nil && chunk == nil {
			continue
		}
		if err != nil {
			return err
		}
		chunk.Items, chunk.Moved = max(chunk.Items-moved[id], 0), chunk.Moved+moved[id]
		tx.Set(asked[i].key, layout.Encode(chunk))
	}
	last := &asked[len(from)]
	chunk, err := last.wait(ctx)
	if err != nil {
		return err
	}
	if chunk == nil {
		chunk, to.Items = &to, 0
	}
	chunk.Items, chunk.Status, chunk.FinishedAt = chunk.Items+total, to.Status, 0
	tx.Set(last.key, layout.Encode(chunk))
	return nil
}

// askedChunk is a chunk's record on its way.
type askedChunk struct {
	id      string
	key     []byte
	pending kv.Pending[[]byte]
}

func askChunks(tx kv.Reader, keys layout.Keyspace, batch string, ids ...string) []askedChunk {
	asked := make([]askedChunk, len(ids))
	for i, id := range ids {
		key := keys.BatchChunk(batch, id)
		asked[i] = askedChunk{id, key, tx.Get(key)}
	}
	return asked
}

// wait returns the record, nil if there is none.
func (a *askedChunk) wait(ctx context.Context) (*layout.BatchChunk, error) {
	value, err := a.pending.Wait(ctx)
	if err != nil || value == nil {
		return nil, err
	}
	chunk := &layout.BatchChunk{ID: a.id}
	return chunk, layout.Decode(a.key, value, chunk)
}

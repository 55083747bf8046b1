package fdbmodel

import (
	"bytes"
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// CreateBatch writes the record of a batch. It returns ErrIDInUse if a batch
// with its id exists, unless that one is not made yet and has the same Digest:
// then the new one takes its place. An unknown commit is resolved by looking
// for the record.
func (c *Cluster) CreateBatch(ctx context.Context, b *layout.BatchRecord) error {
	value := layout.Encode(b)
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		old, err := tx.Get(c.keys.BatchRecord(b.ID)).Wait(ctx)
		if err != nil {
			return err
		}
		if old != nil && !(tx.MaybeCommitted && bytes.Equal(old, value)) {
			was := layout.BatchRecord{ID: b.ID}
			if err := layout.Decode(c.keys.BatchRecord(b.ID), old, &was); err != nil {
				return err
			}
			if was.Made || len(was.Digest) == 0 || !bytes.Equal(was.Digest, b.Digest) {
				return fmt.Errorf("batch %s: %w", b.ID, ErrIDInUse)
			}
			tx.Clear(c.keys.BatchAt(was.CreatedAt, b.ID))
		}
		tx.Set(c.keys.BatchRecord(b.ID), value)
		tx.Set(c.keys.BatchAt(b.CreatedAt, b.ID), nil)
		return nil
	})
	return err
}

// FinishBatch records that all items of a batch exist. It returns ErrIDInUse if
// another maker has taken the batch over, and ErrNotFound if it no longer
// exists. An unknown commit is retried; a batch that is made by then stays
// made.
func (c *Cluster) FinishBatch(ctx context.Context, id, maker string) error {
	_, err := c.UpdateBatch(ctx, id, func(b *layout.BatchRecord) (bool, error) {
		if b.Maker != maker {
			return false, fmt.Errorf("batch %s was created by another request meanwhile: %w", id, ErrIDInUse)
		}
		write := !b.Made
		b.Made, b.Digest = true, nil
		return write, nil
	})
	return err
}

// Batch returns the record of a batch, made or not. It returns ErrNotFound.
func (c *Cluster) Batch(ctx context.Context, id string) (layout.BatchRecord, error) {
	var b layout.BatchRecord
	err := c.View(ctx, func(tx kv.Attempt) (err error) {
		b, err = c.readBatch(ctx, tx.Snapshot(), id)
		return err
	})
	return b, err
}

func (c *Cluster) readBatch(ctx context.Context, tx kv.Reader, id string) (layout.BatchRecord, error) {
	b := layout.BatchRecord{ID: id}
	key := c.keys.BatchRecord(id)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value == nil {
		err = fmt.Errorf("batch %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return b, err
	}
	return b, layout.Decode(key, value, &b)
}

// UpdateBatch changes the record of a batch: change receives the record, may be
// called more than once, and reports whether to write it. Watches on the
// batch's owner fire. It returns the resulting record and the result of change,
// or ErrNotFound. An unknown commit is retried.
func (c *Cluster) UpdateBatch(ctx context.Context, id string, change func(*layout.BatchRecord) (bool, error),
) (layout.BatchRecord, error) {
	var b layout.BatchRecord
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		var err error
		if b, err = c.readBatch(ctx, tx, id); err != nil {
			return err
		}
		write, err := change(&b)
		if err != nil || !write {
			return err
		}
		value := layout.Encode(&b)
		tx.Set(c.keys.BatchRecord(id), value)
		bell := layout.EncodeBell()
		tx.SetVersionstampedValue(c.keys.OwnerBell(id), bell, layout.StampOffset)
		return nil
	})
	return b, err
}

// Batches returns up to limit batches in the order of their creation, starting
// after the batch named by after, or with the first. It returns ErrNotFound if
// that batch does not exist. Records that can't be read are left out.
func (c *Cluster) Batches(ctx context.Context, after string, limit int) ([]layout.BatchRecord, error) {
	var list []layout.BatchRecord
	err := c.View(ctx, func(tx kv.Attempt) error {
		list = nil
		r := kv.Prefix(c.keys.BatchesByTime())
		if after != "" {
			b, err := c.readBatch(ctx, tx.Snapshot(), after)
			if err != nil {
				return err
			}
			r.Begin = kv.After(c.keys.BatchAt(b.CreatedAt, after))
		}
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil {
			return err
		}
		skip := len(c.keys.BatchesByTime())
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[skip:])
			rest.Int()
			id := rest.Text()
			if rest.Done() != nil {
				continue // a check names it
			}
			b, err := c.readBatch(ctx, tx.Snapshot(), id)
			if layout.IsUnreadable(err) {
				continue
			}
			if err != nil {
				return err
			}
			list = append(list, b)
		}
		return nil
	})
	return list, err
}

// AssignChunk assigns up to MaxAssign items of a batch to the chunk's worker,
// and writes the chunk's record in the same transaction if it has none. It
// returns, for each item, whether it is then with the worker for this chunk,
// and how many were not with it before. If no item is with the worker, no chunk
// is written. It returns the errors of Assign, ErrNotFound if the batch does
// not exist, and ErrTransition unless may returns true for the batch.
func (c *Cluster) AssignChunk(ctx context.Context, batch string, chunk layout.BatchChunk, items []layout.ID,
	may func(*layout.BatchRecord) bool,
) (there []bool, added int, err error) {
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) error {
		key := c.keys.BatchChunk(batch, chunk.ID)
		asked := tx.Get(key)
		b, err := c.readBatch(ctx, tx, batch)
		if err != nil {
			return err
		}
		if !may(&b) {
			return fmt.Errorf("batch %s: %w", batch, ErrTransition)
		}
		var outcomes []Outcome
		if outcomes, there, err = c.assignIn(ctx, tx, chunk.Worker, chunk.ID, items); err != nil {
			return err
		}
		added = 0
		for _, o := range outcomes {
			if o == Applied {
				added++
			}
		}
		value, err := asked.Wait(ctx)
		if err != nil || value != nil || added == 0 {
			return err
		}
		value = layout.Encode(&chunk)
		tx.Set(key, value)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if added > 0 {
		c.hub.wakeWorker(chunk.Worker)
	}
	return there, added, nil
}

// UpdateChunk changes the record of a chunk in the way UpdateBatch changes a
// batch.
func (c *Cluster) UpdateChunk(ctx context.Context, batch, id string, change func(*layout.BatchChunk) (bool, error),
) (layout.BatchChunk, error) {
	chunk := layout.BatchChunk{ID: id}
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		key := c.keys.BatchChunk(batch, id)
		value, err := tx.Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("chunk %s of batch %s: %w", id, batch, ErrNotFound)
		}
		if err != nil {
			return err
		}
		chunk = layout.BatchChunk{ID: id}
		if err := layout.Decode(key, value, &chunk); err != nil {
			return err
		}
		write, err := change(&chunk)
		if err != nil || !write {
			return err
		}
		value = layout.Encode(&chunk)
		tx.Set(key, value)
		return nil
	})
	return chunk, err
}

// BatchChunks returns the chunks of a batch, sorted by id.
func (c *Cluster) BatchChunks(ctx context.Context, batch string) ([]layout.BatchChunk, error) {
	var chunks []layout.BatchChunk
	prefix := c.keys.BatchChunksOf(batch)
	err := c.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		rest := tuple.NewReader(item.Key[len(prefix):])
		chunk := layout.BatchChunk{ID: rest.Text()}
		if err := rest.Done(); err != nil {
			return fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
		}
		if err := layout.Decode(item.Key, item.Value, &chunk); err != nil {
			return err
		}
		chunks = append(chunks, chunk)
		return nil
	})
	return chunks, err
}

// BatchItems returns the rows of count items of a batch, starting at an index
// and in their order, as GetMany does.
func (c *Cluster) BatchItems(ctx context.Context, batch string, from, count int) ([]layout.Row, error) {
	ids := make([]layout.ID, count)
	for i := range ids {
		ids[i] = layout.BatchItemID(batch, from+i)
	}
	return c.GetMany(ctx, ids)
}

// DropBatch removes the record and the chunks of a batch whose items no longer
// exist. An unknown commit is retried and harmless.
func (c *Cluster) DropBatch(ctx context.Context, id string) error {
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		b, err := c.readBatch(ctx, tx, id)
		if err != nil {
			return err
		}
		tx.ClearRange(kv.Prefix(c.keys.Batch(id)))
		tx.Clear(c.keys.BatchAt(b.CreatedAt, id))
		return nil
	})
	return err
}

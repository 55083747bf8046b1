// Package batches stores the records of batches and of their chunks. A batch is the owner of
// held futures, its items; a chunk is those of them that one worker was given together.
package batches

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Batches are the batches of one cluster. Its methods may be called from many goroutines.
type Batches struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
}

// Of returns the batches of a cluster.
func Of(c *fdbmodel.Cluster) *Batches { return &Batches{cluster: c, keys: c.Keys()} }

// Create writes the record of a batch. It returns fdbmodel.ErrIDInUse if a batch
// with its id exists, unless that one is not made yet and has the same Digest:
// then the new one takes its place. An unknown commit is resolved by looking
// for the record.
func (s *Batches) Create(ctx context.Context, b *layout.BatchRecord) error {
	value := layout.Encode(b)
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		old, err := tx.Get(s.keys.BatchRecord(b.ID)).Wait(ctx)
		if err != nil {
			return err
		}
		if old != nil && !(tx.MaybeCommitted && bytes.Equal(old, value)) {
			was := layout.BatchRecord{ID: b.ID}
			if err := layout.Decode(s.keys.BatchRecord(b.ID), old, &was); err != nil {
				return err
			}
			if was.Made || len(was.Digest) == 0 || !bytes.Equal(was.Digest, b.Digest) {
				return fmt.Errorf("batch %s: %w", b.ID, fdbmodel.ErrIDInUse)
			}
			tx.Clear(s.keys.BatchAt(was.CreatedAt, b.ID))
		}
		tx.Set(s.keys.BatchRecord(b.ID), value)
		tx.Set(s.keys.BatchAt(b.CreatedAt, b.ID), nil)
		return nil
	})
	return err
}

// Finish records that all items of a batch exist. It returns fdbmodel.ErrIDInUse if
// another maker has taken the batch over, and fdbmodel.ErrNotFound if it no longer
// exists. An unknown commit is retried; a batch that is made by then stays
// made.
func (s *Batches) Finish(ctx context.Context, id, maker string) error {
	_, err := s.Update(ctx, id, func(b *layout.BatchRecord) (bool, error) {
		if b.Maker != maker {
			return false, fmt.Errorf("batch %s was created by another request meanwhile: %w", id, fdbmodel.ErrIDInUse)
		}
		write := !b.Made
		b.Made, b.Digest = true, nil
		return write, nil
	})
	return err
}

// Get returns the record of a batch, made or not. It returns fdbmodel.ErrNotFound.
func (s *Batches) Get(ctx context.Context, id string) (layout.BatchRecord, error) {
	var b layout.BatchRecord
	err := s.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		b, err = s.read(ctx, tx.Snapshot(), id)
		return err
	})
	return b, err
}

func (s *Batches) read(ctx context.Context, tx kv.Reader, id string) (layout.BatchRecord, error) {
	b := layout.BatchRecord{ID: id}
	key := s.keys.BatchRecord(id)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value == nil {
		err = fmt.Errorf("batch %s: %w", id, fdbmodel.ErrNotFound)
	}
	if err != nil {
		return b, err
	}
	return b, layout.Decode(key, value, &b)
}

// Update changes the record of a batch: change receives the record, may be
// called more than once, and reports whether to write it. Watches on the
// batch's owner fire. It returns the resulting record and the result of change,
// or fdbmodel.ErrNotFound. An unknown commit is retried.
func (s *Batches) Update(ctx context.Context, id string, change func(*layout.BatchRecord) (bool, error),
) (layout.BatchRecord, error) {
	return s.update(ctx, id, func(_ kv.Reader, b *layout.BatchRecord) (bool, error) { return change(b) })
}

func (s *Batches) update(ctx context.Context, id string, change func(kv.Reader, *layout.BatchRecord) (bool, error),
) (layout.BatchRecord, error) {
	var b layout.BatchRecord
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		var err error
		if b, err = s.read(ctx, tx, id); err != nil {
			return err
		}
		write, err := change(tx, &b)
		if err != nil || !write {
			return err
		}
		s.write(tx, &b)
		return nil
	})
	return b, err
}

func (s *Batches) write(tx kv.Tx, b *layout.BatchRecord) {
	tx.Set(s.keys.BatchRecord(b.ID), layout.Encode(b))
	tx.SetVersionstampedValue(s.keys.OwnerWake(b.ID), layout.EncodeWake(), layout.StampOffset)
}

// List returns up to limit batches in the order of their creation, starting
// after the batch named by after, or with the first: fewer at the end alone. It returns
// fdbmodel.ErrNotFound if that batch does not exist. Records that can't be read are left out.
func (s *Batches) List(ctx context.Context, after string, limit int) ([]layout.BatchRecord, error) {
	if after == "" {
		return s.Behind(ctx, nil, limit)
	}
	b, err := s.Get(ctx, after)
	if err != nil {
		return nil, err
	}
	return s.Behind(ctx, &b, limit)
}

// Behind is List behind a batch that may have gone since it was read, or from the first one on for nil.
func (s *Batches) Behind(ctx context.Context, last *layout.BatchRecord, limit int) ([]layout.BatchRecord, error) {
	var list []layout.BatchRecord
	err := s.cluster.View(ctx, func(tx kv.Attempt) error {
		list = nil
		r := kv.Prefix(s.keys.BatchesByTime())
		if last != nil {
			r.Begin = kv.After(s.keys.BatchAt(last.CreatedAt, last.ID))
		}
		for more := true; more && len(list) < limit; {
			page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit - len(list)}).Wait(ctx)
			if err != nil {
				return err
			}
			if list, err = s.appendRead(ctx, tx.Snapshot(), list, page.Items); err != nil {
				return err
			}
			if more = page.More; more {
				r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
			}
		}
		return nil
	})
	return list, err
}

// appendRead adds the batches of some keys by time, but for those that can't be read.
func (s *Batches) appendRead(ctx context.Context, tx kv.Reader, list []layout.BatchRecord, items []kv.KeyValue,
) ([]layout.BatchRecord, error) {
	skip := len(s.keys.BatchesByTime())
	for _, item := range items {
		rest := tuple.NewReader(item.Key[skip:])
		rest.Int()
		id := rest.Text()
		if rest.Done() != nil {
			continue // a check names it
		}
		b, err := s.read(ctx, tx, id)
		if layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// AssignChunk assigns up to fdbmodel.MaxAssign items of a batch to the chunk's worker,
// and writes the chunk's record in the same transaction if it has none. It
// returns, for each item, whether it is then with the worker for this chunk,
// and how many were not with it before. If no item is with the worker, no chunk
// is written. It returns the errors of Assign, fdbmodel.ErrNotFound if the batch does
// not exist, and fdbmodel.ErrTransition unless may returns true for the batch. An unknown commit
// is retried: items that it has brought count as not there before.
func (s *Batches) AssignChunk(ctx context.Context, batch string, chunk layout.BatchChunk, items []layout.ID,
	may func(*layout.BatchRecord) bool,
) (there []bool, added int, err error) {
	came := make([]bool, len(items)) // by this call
	_, err = s.cluster.Change(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		key := s.keys.BatchChunk(batch, chunk.ID)
		asked := tx.Get(key)
		b, err := s.read(ctx, tx, batch)
		if err != nil {
			return err
		}
		if !may(&b) {
			return fmt.Errorf("batch %s: %w", batch, fdbmodel.ErrTransition)
		}
		assigned, err := w.Assign(ctx, fdbmodel.Assignment{To: chunk.Worker, Reason: chunk.ID}, items)
		if err != nil {
			return err
		}
		there = assigned.There
		added = 0
		for i, o := range assigned.Outcomes {
			came[i] = o == fdbmodel.Applied || tx.MaybeCommitted && came[i] && there[i]
			if came[i] {
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
	return there, added, nil
}

// UpdateChunk changes the record of a chunk in the way Update changes a
// batch. A change that an unknown commit has made is not made again.
func (s *Batches) UpdateChunk(ctx context.Context, batch, id string, change func(*layout.BatchChunk) (bool, error),
) (layout.BatchChunk, error) {
	chunk := layout.BatchChunk{ID: id}
	var written []byte
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		key := s.keys.BatchChunk(batch, id)
		value, err := tx.Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("chunk %s of batch %s: %w", id, batch, fdbmodel.ErrNotFound)
		}
		if err != nil {
			return err
		}
		chunk = layout.BatchChunk{ID: id}
		if err := layout.Decode(key, value, &chunk); err != nil {
			return err
		}
		if tx.MaybeCommitted && bytes.Equal(value, written) {
			return nil
		}
		write, err := change(&chunk)
		if err != nil || !write {
			return err
		}
		written = layout.Encode(&chunk)
		tx.Set(key, written)
		return nil
	})
	return chunk, err
}

// Chunks returns the chunks of a batch, sorted by id. Those that can't be read are left out.
func (s *Batches) Chunks(ctx context.Context, batch string) ([]layout.BatchChunk, error) {
	var chunks []layout.BatchChunk
	prefix := s.keys.BatchChunksOf(batch)
	err := s.cluster.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		rest := tuple.NewReader(item.Key[len(prefix):])
		chunk := layout.BatchChunk{ID: rest.Text()}
		if rest.Done() == nil && layout.Decode(item.Key, item.Value, &chunk) == nil { // or else a check names it
			chunks = append(chunks, chunk)
		}
		return nil
	})
	return chunks, err
}

// Items returns the rows of count items of a batch, starting at an index
// and in their order, as GetMany does.
func (s *Batches) Items(ctx context.Context, batch string, from, count int) ([]layout.Row, error) {
	ids := make([]layout.ID, count)
	for i := range ids {
		ids[i] = layout.BatchItemID(batch, from+i)
	}
	return s.cluster.GetMany(ctx, ids)
}

// Drop removes the record and the chunks of a batch whose items no longer
// exist. It returns fdbmodel.ErrNotFound. An unknown commit is retried; a batch that is gone by then
// was removed.
func (s *Batches) Drop(ctx context.Context, id string) error {
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		b, err := s.read(ctx, tx, id)
		if errors.Is(err, fdbmodel.ErrNotFound) && tx.MaybeCommitted {
			return nil
		}
		if err != nil {
			return err
		}
		tx.ClearRange(kv.Prefix(s.keys.Batch(id)))
		tx.Clear(s.keys.BatchAt(b.CreatedAt, id))
		return nil
	})
	return err
}

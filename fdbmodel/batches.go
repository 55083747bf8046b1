package fdbmodel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// BatchRecord is a batch whose items are held futures of the group with its id.
// What the template and the status mean is up to whoever makes batches.
type BatchRecord struct {
	ID          string `msgpack:"-" json:"id"`
	Template    []byte `msgpack:"t" json:"template"`
	Queue       string `msgpack:"q" json:"queue"`
	MaxAttempts int    `msgpack:"m" json:"max_attempts"`
	Items       int    `msgpack:"n" json:"items"`
	Status      int    `msgpack:"s,omitempty" json:"status"`
	Reason      string `msgpack:"r,omitempty" json:"reason,omitempty"`
	// Made is set once all items exist. Until then Maker is who makes them, and
	// Digest says of what: who makes the same may go on in its place.
	Made       bool   `msgpack:"d,omitempty" json:"made"`
	Maker      string `msgpack:"k,omitempty" json:"maker,omitempty"`
	Digest     []byte `msgpack:"h,omitempty" json:"digest,omitempty"`
	CreatedAt  int64  `msgpack:"c" json:"created_at_ms"`
	FinishedAt int64  `msgpack:"f,omitempty" json:"finished_at_ms,omitempty"`
}

// BatchChunk is what a worker was given of a batch at one time. Its items say its
// id as the reason of their assignment.
type BatchChunk struct {
	ID        string   `msgpack:"-" json:"id"`
	Worker    WorkerID `msgpack:"w" json:"worker"`
	Items     int      `msgpack:"n" json:"items"`
	Status    int      `msgpack:"s,omitempty" json:"status"`
	CreatedAt int64    `msgpack:"c" json:"created_at_ms"`
}

// itemBlock is how many neighbouring items of a batch share a shard.
const itemBlock = MaxSubmit

// BatchItemID is the id of the future that is an item of a batch, made of the
// batch's id and the item's index: a version 8 UUID in which the index can be
// read. Neighbours share a shard, so that they are written and read together.
func BatchItemID(batch string, index int) ID {
	var id ID
	sum := sha256.Sum256([]byte("batch item " + batch))
	copy(id[:], sum[:neighbourPrefix])
	id[6], id[8] = 0x80|id[6]&0x0f, 0x80|id[8]&0x3f
	binary.BigEndian.PutUint32(id[neighbourPrefix:], uint32(index))
	spread := sha256.Sum256(binary.BigEndian.AppendUint64(sum[:], uint64(index/itemBlock)))
	id[15] = spread[0]
	return id
}

// BatchItemIndex returns the index in an id of BatchItemID.
func BatchItemIndex(id ID) int { return int(binary.BigEndian.Uint32(id[neighbourPrefix:])) }

// CreateBatch writes the record of a batch. It returns ErrIDInUse if there is
// one with its id, unless that is not made and has the same Digest: then the new
// one takes its place. An unknown commit is resolved by looking for it.
func (c *Cluster) CreateBatch(ctx context.Context, b *BatchRecord) error {
	value, err := encodeRecord(b)
	if err != nil {
		return err
	}
	_, err = c.transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		old, err := tx.Get(c.keys.batchRecord(b.ID)).Wait(ctx)
		if err != nil {
			return err
		}
		if old != nil && !(tx.MaybeCommitted && bytes.Equal(old, value)) {
			was := BatchRecord{ID: b.ID}
			if err := decodeRecord(c.keys.batchRecord(b.ID), old, &was); err != nil {
				return err
			}
			if was.Made || len(was.Digest) == 0 || !bytes.Equal(was.Digest, b.Digest) {
				return fmt.Errorf("batch %s: %w", b.ID, ErrIDInUse)
			}
			tx.Clear(c.keys.batchAt(was.CreatedAt, b.ID))
		}
		tx.Set(c.keys.batchRecord(b.ID), value)
		tx.Set(c.keys.batchAt(b.CreatedAt, b.ID), nil)
		return nil
	})
	return err
}

// FinishBatch says that all items of a batch exist. It returns ErrIDInUse if
// another maker has taken the batch over, and ErrNotFound if it is gone. An
// unknown commit is retried; a batch that is made by then stays so.
func (c *Cluster) FinishBatch(ctx context.Context, id, maker string) error {
	_, err := c.UpdateBatch(ctx, id, func(b *BatchRecord) (bool, error) {
		if b.Maker != maker {
			return false, fmt.Errorf("batch %s: another has made it meanwhile: %w", id, ErrIDInUse)
		}
		write := !b.Made
		b.Made, b.Digest = true, nil
		return write, nil
	})
	return err
}

// Batch returns the record of a batch, made or not. It returns ErrNotFound.
func (c *Cluster) Batch(ctx context.Context, id string) (BatchRecord, error) {
	var b BatchRecord
	err := c.view(ctx, func(tx kv.Attempt) (err error) {
		b, err = c.readBatch(ctx, tx.Snapshot(), id)
		return err
	})
	return b, err
}

func (c *Cluster) readBatch(ctx context.Context, tx kv.Reader, id string) (BatchRecord, error) {
	b := BatchRecord{ID: id}
	key := c.keys.batchRecord(id)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value == nil {
		err = fmt.Errorf("batch %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return b, err
	}
	return b, decodeRecord(key, value, &b)
}

// UpdateBatch changes the record of a batch: change is given the record, may be
// called more than once, and tells whether to write. Who watches the batch's group
// is told. It returns the record as it is then, what change returns, and
// ErrNotFound. An unknown commit is retried.
func (c *Cluster) UpdateBatch(ctx context.Context, id string, change func(*BatchRecord) (bool, error),
) (BatchRecord, error) {
	var b BatchRecord
	_, err := c.transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		var err error
		if b, err = c.readBatch(ctx, tx, id); err != nil {
			return err
		}
		write, err := change(&b)
		if err != nil || !write {
			return err
		}
		value, err := encodeRecord(&b)
		if err != nil {
			return err
		}
		tx.Set(c.keys.batchRecord(id), value)
		bell, err := encodeStamped(struct{}{})
		if err == nil {
			tx.SetVersionstampedValue(c.keys.groupBell(id), bell, stampOffset)
		}
		return err
	})
	return b, err
}

// Batches returns up to limit batches in the order of their creation, behind the
// one named after, or from the first. It returns ErrNotFound if there is no
// such batch. Records that can't be read are left out.
func (c *Cluster) Batches(ctx context.Context, after string, limit int) ([]BatchRecord, error) {
	var list []BatchRecord
	err := c.view(ctx, func(tx kv.Attempt) error {
		list = nil
		r := kv.Prefix(c.keys.batchesByTime())
		if after != "" {
			b, err := c.readBatch(ctx, tx.Snapshot(), after)
			if err != nil {
				return err
			}
			r.Begin = kv.After(c.keys.batchAt(b.CreatedAt, after))
		}
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil {
			return err
		}
		skip := len(c.keys.batchesByTime())
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[skip:])
			rest.Int()
			id := rest.Text()
			if rest.Done() != nil {
				continue // a check names it
			}
			b, err := c.readBatch(ctx, tx.Snapshot(), id)
			if isUnreadable(err) {
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

// AssignChunk is Assign of items of a batch, at most MaxAssign, to the chunk's
// worker for the chunk, whose record it writes in the same transaction if there
// is none. It tells of each item whether it is with the worker for this chunk
// then, and how many were not before. Without any there is no chunk. It returns
// what Assign returns, ErrNotFound if there is no such batch, and ErrTransition
// unless may is true of the batch.
func (c *Cluster) AssignChunk(ctx context.Context, batch string, chunk BatchChunk, items []ID,
	may func(*BatchRecord) bool,
) (there []bool, added int, err error) {
	_, err = c.transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) error {
		key := c.keys.batchChunk(batch, chunk.ID)
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
		if value, err = encodeRecord(&chunk); err != nil {
			return err
		}
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

// UpdateChunk changes the record of a chunk as UpdateBatch does that of a batch.
func (c *Cluster) UpdateChunk(ctx context.Context, batch, id string, change func(*BatchChunk) (bool, error),
) (BatchChunk, error) {
	chunk := BatchChunk{ID: id}
	_, err := c.transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		key := c.keys.batchChunk(batch, id)
		value, err := tx.Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("chunk %s of batch %s: %w", id, batch, ErrNotFound)
		}
		if err != nil {
			return err
		}
		chunk = BatchChunk{ID: id}
		if err := decodeRecord(key, value, &chunk); err != nil {
			return err
		}
		write, err := change(&chunk)
		if err != nil || !write {
			return err
		}
		if value, err = encodeRecord(&chunk); err != nil {
			return err
		}
		tx.Set(key, value)
		return nil
	})
	return chunk, err
}

// BatchChunks returns the chunks of a batch, sorted by id.
func (c *Cluster) BatchChunks(ctx context.Context, batch string) ([]BatchChunk, error) {
	var chunks []BatchChunk
	prefix := c.keys.batchChunksOf(batch)
	err := c.eachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		rest := tuple.NewReader(item.Key[len(prefix):])
		chunk := BatchChunk{ID: rest.Text()}
		if err := rest.Done(); err != nil {
			return fmt.Errorf("%s: %w: %w", tuple.String(item.Key), ErrBadRecord, err)
		}
		if err := decodeRecord(item.Key, item.Value, &chunk); err != nil {
			return err
		}
		chunks = append(chunks, chunk)
		return nil
	})
	return chunks, err
}

// BatchItems returns the rows of count items of a batch from one index on, in
// their order, as GetMany does.
func (c *Cluster) BatchItems(ctx context.Context, batch string, from, count int) ([]Row, error) {
	ids := make([]ID, count)
	for i := range ids {
		ids[i] = BatchItemID(batch, from+i)
	}
	return c.GetMany(ctx, ids)
}

// DropBatch removes the record and the chunks of a batch whose items are gone. An
// unknown commit is retried and harmless.
func (c *Cluster) DropBatch(ctx context.Context, id string) error {
	_, err := c.transact(ctx, kv.Options{Tag: "futura-batch"}, func(tx kv.Attempt) error {
		b, err := c.readBatch(ctx, tx, id)
		if err != nil {
			return err
		}
		tx.ClearRange(kv.Prefix(c.keys.batch(id)))
		tx.Clear(c.keys.batchAt(b.CreatedAt, id))
		return nil
	})
	return err
}

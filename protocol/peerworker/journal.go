package peerworker

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/protocol"
)

// journal keeps orders of Futura's, and how their items ended, in the worker's own store, for
// the next start. A nil journal keeps nothing. Every write may be repeated, and is after an
// unknown commit.
type journal struct {
	worker *Worker
	// failing is set while the store takes no writes.
	failing atomic.Bool

	mu   sync.Mutex
	ends []keptEnd // to be written
	// flushing is held while ends are written, over all that it takes.
	flushing sync.Mutex
	// writing is held while rows of a chunk are written or removed that has begun, so that none
	// is left of one that is gone.
	writing sync.Mutex
}

// keptEnd is the end of an item of a chunk.
type keptEnd struct {
	chunk *chunk
	ended
}

// orderRow is an order, with all that its message does not say.
type orderRow struct {
	Head string `json:"head"`
	// Number says which of two orders came later.
	Number  uint64          `json:"number"`
	Message json.RawMessage `json:"message"`
}

// itemRow is what became of an item. Without an outcome and a cancel nothing more is to be done
// about it.
type itemRow struct {
	Outcome   *protocol.Outcome `json:"outcome,omitempty"`
	Size      int64             `json:"size,omitempty"`
	Discarded bool              `json:"void,omitempty"`
	// Cancel is why an item was to stop that had not ended.
	Cancel *string `json:"cancel,omitempty"`
}

// The worker's own keys in the store, beside those of the cluster. A chunk has rows of three
// kinds, each in parts: its order, what became of each item, and the value of a blob.
const (
	recordSpace  = "futura-peerworker"
	recordChunks = "chunks"
	rowOrder     = "order"
	rowItem      = "item"
	rowValue     = "value"
	// maxPart is how many bytes a part has, and maxWrite about what a transaction writes.
	maxPart  = 64 << 10
	maxWrite = 2 << 20
	// maxRanges is how many items or chunks a transaction removes.
	maxRanges = 1000
	// oldIDs is where earlier versions had the ids of items.
	oldIDs = "ids"
)

func chunkKeys() []byte {
	return tuple.AppendString(tuple.AppendString(nil, recordSpace), recordChunks)
}

func chunkKey(c *chunk) []byte { return tuple.AppendString(chunkKeys(), c.owner) }

func rowKey(c *chunk, kind string, index int) []byte {
	return tuple.AppendInt(tuple.AppendString(chunkKey(c), kind), int64(index))
}

// parts are the rows of a value, the first one last: a value whose first part is there is whole.
func parts(key []byte, value []byte) (rows []kv.KeyValue) {
	for part := 0; part == 0 || part*maxPart < len(value); part++ {
		rows = append(rows, kv.KeyValue{
			Key: tuple.AppendInt(slices.Clip(key), int64(part)), Value: value[part*maxPart : min((part+1)*maxPart, len(value))],
		})
	}
	slices.Reverse(rows)
	return rows
}

// write sets rows in their order, in as many transactions as they need.
func (j *journal) write(ctx context.Context, rows []kv.KeyValue) error {
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && size < maxWrite {
			size += len(rows[n].Value)
			n++
		}
		err := j.worker.node.transact(ctx, func(tx kv.Attempt) error {
			for _, row := range rows[:n] {
				tx.Set(row.Key, row.Value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// begin stores an order. What a crash leaves of one is no order.
func (j *journal) begin(ctx context.Context, c *chunk, message []byte) error {
	if j == nil {
		return nil
	}
	value, err := json.Marshal(&orderRow{Head: c.name.head, Number: c.number, Message: message})
	if err != nil {
		return err
	}
	return j.write(ctx, parts(rowKey(c, rowOrder, 0), value))
}

// add has an end be written with the next flush, which then queues it for the head.
func (j *journal) add(e keptEnd) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ends = append(j.ends, e)
}

// eachEnd calls fn with the ends that the next flush writes.
func (j *journal) eachEnd(fn func(keptEnd)) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.ends {
		fn(e)
	}
}

// flush writes ends, and queues them for their heads.
func (j *journal) flush(ctx context.Context) error {
	if j == nil {
		return nil
	}
	j.flushing.Lock()
	defer j.flushing.Unlock()
	for {
		ends := j.next()
		if len(ends) == 0 {
			return nil
		}
		if err := j.writeAll(ctx, ends); err != nil {
			j.spill(ends)
			return err
		}
	}
}

// writeAll writes ends, and queues them for their heads.
func (j *journal) writeAll(ctx context.Context, ends []keptEnd) error {
	for _, e := range ends {
		if e.outcome.Blob == nil {
			continue
		}
		if err := j.writeValue(ctx, e); err != nil {
			return err
		}
	}
	return j.writeEnds(ctx, ends)
}

// next are the ends that are written next: about as many as a transaction takes, and large ones
// one by one after the others.
func (j *journal) next() (next []keptEnd) {
	j.mu.Lock()
	defer j.mu.Unlock()
	size, rest := int64(0), j.ends[:0:0]
	for _, e := range j.ends {
		if e.outcome.Blob == nil && size < maxWrite {
			size += e.size
			next = append(next, e)
		} else {
			rest = append(rest, e)
		}
	}
	if len(next) == 0 && len(rest) > 0 {
		next, rest = rest[:1:1], rest[1:]
	}
	j.ends = rest
	return next
}

// writeEnds writes ends, and queues them for their heads. Of an item that ends twice the first end counts.
func (j *journal) writeEnds(ctx context.Context, ends []keptEnd) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	var rows []kv.KeyValue
	written := make(map[place]bool, len(ends))
	for _, e := range ends {
		at := place{e.chunk, e.index}
		if written[at] || !e.chunk.wants(e.index) {
			continue
		}
		written[at] = true
		value, err := json.Marshal(&itemRow{Outcome: e.outcome, Size: e.size, Discarded: e.discarded})
		if err != nil {
			return err
		}
		rows = append(rows, parts(rowKey(e.chunk, rowItem, e.index), value)...)
	}
	if err := j.write(ctx, rows); err != nil {
		return err
	}
	for _, e := range ends {
		e.chunk.queueEnd(e.ended)
	}
	return nil
}

// writeValue stores the content of a blob before the outcome that names it. Others may write
// between its pieces. Of one that can't be read no more is stored: the item runs again after a
// restart.
func (j *journal) writeValue(ctx context.Context, e keptEnd) error {
	c := e.chunk
	from := j.worker.blobs.find(blobName{c.name.head, e.outcome.Blob.ID}, c.ids[e.index])
	if from == nil {
		return nil // another chunk has the item, and its head the result
	}
	content, key := from.content(), rowKey(c, rowValue, e.index)
	err := j.writeWanted(ctx, e, func() error {
		return j.worker.node.transact(ctx, func(tx kv.Attempt) error {
			tx.ClearRange(kv.Prefix(key))
			return nil
		})
	})
	for part := int64(0); err == nil && part*maxPart < content.Size(); {
		var rows []kv.KeyValue
		for ; len(rows)*maxPart < maxWrite && part*maxPart < content.Size(); part++ {
			value := make([]byte, min(maxPart, content.Size()-part*maxPart))
			if _, err := content.ReadAt(value, part*maxPart); err != nil {
				j.worker.log.Warn("a large result can't be read, and is not remembered", "chunk", c.name.chunk,
					c.named([]int{e.index}), "error", err)
				return nil
			}
			rows = append(rows, kv.KeyValue{Key: tuple.AppendInt(slices.Clip(key), part), Value: value})
		}
		err = j.writeWanted(ctx, e, func() error { return j.write(ctx, rows) })
	}
	return err
}

// writeWanted has something written of an item that its chunk still wants.
func (j *journal) writeWanted(ctx context.Context, e keptEnd, write func() error) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if !e.chunk.wants(e.index) {
		return nil
	}
	return write()
}

// cancel remembers that those of some items are to stop that have not ended.
func (j *journal) cancel(ctx context.Context, c *chunk, indexes []int, reason string) error {
	if j == nil {
		return nil
	}
	value, err := json.Marshal(&itemRow{Cancel: &reason})
	if err != nil {
		return err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	var rows []kv.KeyValue
	for _, i := range indexes {
		if c.wants(i) && c.order == nil {
			rows = append(rows, parts(rowKey(c, rowItem, i), value)...)
		}
	}
	return j.write(ctx, rows)
}

// settle says that nothing more is to be done about some items.
func (j *journal) settle(ctx context.Context, places []place) error {
	if j == nil || len(places) == 0 {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.settleIn(ctx, places)
}

// settleIn is called under writing.
func (j *journal) settleIn(ctx context.Context, places []place) error {
	for some := range slices.Chunk(places, maxRanges) {
		err := j.worker.node.transact(ctx, func(tx kv.Attempt) error {
			for _, p := range some {
				if p.chunk.order != nil {
					continue
				}
				item := rowKey(p.chunk, rowItem, p.index)
				tx.ClearRange(kv.Prefix(item))
				tx.ClearRange(kv.Prefix(rowKey(p.chunk, rowValue, p.index)))
				tx.Set(tuple.AppendInt(item, 0), []byte("{}"))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forget removes chunks. Items that they had taken over from chunks that stay are settled.
func (j *journal) forget(ctx context.Context, chunks []*chunk) error {
	if j == nil || len(chunks) == 0 {
		return nil
	}
	var moved []place
	for _, c := range chunks {
		for _, p := range c.moved {
			if j.worker.chunk(p.chunk.name) == p.chunk && !slices.Contains(chunks, p.chunk) {
				moved = append(moved, p)
			}
		}
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.settleIn(ctx, moved); err != nil {
		return err
	}
	for some := range slices.Chunk(chunks, maxRanges) {
		err := j.worker.node.transact(ctx, func(tx kv.Attempt) error {
			for _, c := range some {
				if c.order == nil {
					tx.ClearRange(kv.Prefix(chunkKey(c)))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stored is what the journal has of a chunk, by the indexes of its items.
type stored struct {
	order  []byte
	items  map[int][]byte
	values map[int]*spool
}

// read returns all chunks by their owners, and the keys that this version does not write. The caller closes the
// chunks, with an error too.
func (j *journal) read(ctx context.Context) (all map[string]*stored, foreign [][]byte, err error) {
	all, prefix := map[string]*stored{}, chunkKeys()
	err = j.worker.node.cluster.EachKey(ctx, kv.Prefix(prefix), func(found kv.KeyValue) error {
		key := tuple.NewReader(found.Key[len(prefix):])
		owner, kind, index, part := key.Text(), key.Text(), int(key.Int()), key.Int()
		if key.Done() != nil {
			foreign = append(foreign, found.Key)
			return nil
		}
		s := all[owner]
		if s == nil {
			s = &stored{items: map[int][]byte{}, values: map[int]*spool{}}
			all[owner] = s
		}
		return s.add(kind, index, part == 0, found.Value)
	})
	return all, foreign, err
}

// removeForeign removes what earlier versions wrote, which kept orders as futures of the cluster.
func (j *journal) removeForeign(ctx context.Context, keys [][]byte) error {
	for some := range slices.Chunk(keys, maxRanges) {
		err := j.worker.node.transact(ctx, func(tx kv.Attempt) error {
			for _, key := range some {
				tx.Clear(key)
			}
			tx.ClearRange(kv.Prefix(tuple.AppendString(tuple.AppendString(nil, recordSpace), oldIDs)))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stored) add(kind string, index int, first bool, value []byte) (err error) {
	switch {
	case kind == rowOrder && (first || s.order != nil):
		s.order = append(s.order, value...)
	case kind == rowItem && (first || s.items[index] != nil):
		s.items[index] = append(s.items[index], value...)
	case kind == rowValue:
		at := s.values[index]
		if at == nil {
			if at, err = newSpool(); err != nil {
				return err
			}
			s.values[index] = at
		}
		_, err = at.Write(value)
	}
	return err
}

// item is the row of an item, nil without one. Parts of a later row may be behind it.
func (s *stored) item(index int) (*itemRow, error) {
	value, found := s.items[index]
	if !found {
		return nil, nil
	}
	var row itemRow
	err := json.NewDecoder(bytes.NewReader(value)).Decode(&row)
	return &row, err
}

// close ends the use of values that were not taken.
func (s *stored) close() {
	for _, v := range s.values {
		v.close()
	}
	clear(s.values)
}

package peerworker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// record is what the store remembers of a chunk, beside the futures of its items.
type record struct {
	Head    string `json:"head"`
	Chunk   string `json:"chunk"`
	Request string `json:"request,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	Module  string `json:"module,omitempty"`
	// Owner owns the futures of items of which so many may run at a time, empty for those
	// without a limit.
	Owner string `json:"owner,omitempty"`
	Items int    `json:"items"`
	// Number says which of two chunks came later.
	Number uint64 `json:"number,omitempty"`
	// B7S is set for an order of b7s's, which no head asks for after a restart. Its items
	// have no ids of their own.
	B7S bool `json:"b7s,omitempty"`
	// Acked says that futures of items may be gone because the head has their results
	// or took them back. Else one that is not there was never made.
	Acked bool `json:"acked,omitempty"`
	// Anew are the places of items whose futures were being stopped for an earlier order when
	// this one came.
	Anew []int `json:"anew,omitempty"`
}

// The worker's own keys in the store, beside those of the cluster.
const (
	recordSpace  = "futura-peerworker"
	recordChunks = "chunks"
	recordIDs    = "ids"
	// itemsInPart is how many items are in one value, and itemSize what each takes.
	itemsInPart = 3000
	itemSize    = 20
)

// item is what the head calls an item: an attempt of a future.
type item struct {
	future  layout.ID
	attempt uint32
}

// localID is the id of an item's future here. Neighbours there are neighbours here.
func (i item) localID(head string) layout.ID {
	id := layout.KeyedID(head, fmt.Sprintf("%s %d", i.future, i.attempt))
	id[len(id)-1] = i.future[len(id)-1]
	return id
}

func (i item) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, i.future[:]...), i.attempt)
}

func chunkKeys() []byte {
	return tuple.AppendString(tuple.AppendString(nil, recordSpace), recordChunks)
}

func chunkKey(owner string) []byte { return tuple.AppendString(chunkKeys(), owner) }

func idKeys(owner string) []byte {
	return tuple.AppendString(tuple.AppendString(tuple.AppendString(nil, recordSpace), recordIDs), owner)
}

// writeRecord stores a chunk with its items; nil items stay as they are. An unknown
// commit is retried and harmless.
func (n *node) writeRecord(ctx context.Context, owner string, r *record, items []item) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return n.transact(ctx, func(tx kv.Attempt) error {
		tx.Set(chunkKey(owner), value)
		for part := 0; part*itemsInPart < len(items); part++ {
			from := part * itemsInPart
			var packed []byte
			for _, i := range items[from:min(from+itemsInPart, len(items))] {
				packed = i.append(packed)
			}
			tx.Set(tuple.AppendInt(idKeys(owner), int64(part)), packed)
		}
		return nil
	})
}

// dropRecords forgets chunks. An unknown commit is retried and harmless.
func (n *node) dropRecords(ctx context.Context, chunks []*chunk) error {
	return n.transact(ctx, func(tx kv.Attempt) error {
		for _, c := range chunks {
			tx.Clear(chunkKey(c.owner))
			tx.ClearRange(kv.Prefix(idKeys(c.owner)))
		}
		return nil
	})
}

func (n *node) transact(ctx context.Context, fn func(kv.Attempt) error) error {
	_, err := n.cluster.Transact(ctx, kv.Options{Tag: "futura-peer"}, fn)
	return err
}

// stored is a chunk as it was found in the store.
type stored struct {
	owner string
	record
	items []item
}

// readRecords returns all chunks. One that can't be read is passed over.
func (n *node) readRecords(ctx context.Context) (all []stored, unreadable []error, err error) {
	prefix := chunkKeys()
	err = n.cluster.EachKey(ctx, kv.Prefix(prefix), func(found kv.KeyValue) error {
		key := tuple.NewReader(found.Key[len(prefix):])
		s := stored{owner: key.Text()}
		if err := key.Done(); err != nil {
			return err
		}
		err := json.Unmarshal(found.Value, &s.record)
		if err == nil && !s.B7S {
			s.items, err = n.readItems(ctx, s.owner)
		}
		if err == nil && !s.B7S && len(s.items) != s.Items {
			err = fmt.Errorf("it has %d items, and the ids of %d", s.Items, len(s.items))
		}
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("chunk %s: %w", s.owner, err))
			return ctx.Err()
		}
		all = append(all, s)
		return nil
	})
	return all, unreadable, err
}

func (n *node) readItems(ctx context.Context, owner string) (items []item, err error) {
	err = n.cluster.EachKey(ctx, kv.Prefix(idKeys(owner)), func(found kv.KeyValue) error {
		for b := found.Value; len(b) >= itemSize; b = b[itemSize:] {
			items = append(items, item{layout.ID(b[:16]), binary.BigEndian.Uint32(b[16:])})
		}
		return nil
	})
	return items, err
}

package inspect

import (
	"cmp"
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Limits of Objects.
const (
	objectCopies  = 20_000 // how many are read
	largestShown  = 100
	objectsAtOnce = 1000
)

// Object is a result that workers hold.
type Object struct {
	ID      layout.ID
	Size    int64             // in bytes, of one copy
	Workers []layout.WorkerID // that hold a copy, dead ones too until that is found out
}

// Holdings are the objects of a cluster.
type Holdings struct {
	Largest  []Object // up to 100, the largest first
	Copies   int
	Bytes    int64 // of all copies
	Complete bool  // all were read
}

// Objects returns the largest results that workers hold as objects, and sums: of up to 20,000
// copies, in the order of shards and ids. Unreadable records are skipped.
func Objects(ctx context.Context, c *fdbmodel.Cluster) (Holdings, error) {
	found, read := Holdings{Complete: true}, 0
	var last Object
	for shard := range c.Config().Shards {
		r := kv.Prefix(c.Keys().Shard(shard, layout.SubResults))
		for more := true; more; {
			if read >= objectCopies {
				found.Complete = false
				break
			}
			var items []kv.KeyValue
			var err error
			if items, more, err = readSome(ctx, c, r, kv.RangeOptions{Limit: objectsAtOnce}); err != nil {
				return found, err
			}
			for _, item := range items {
				found.add(item, &last)
			}
			if read += len(items); more {
				r.Begin = kv.After(items[len(items)-1].Key)
			}
		}
	}
	found.take(last)
	found.trim()
	return found, nil
}

// add adds a copy to the last object, if it is one of that. Those of one future come one after
// the other.
func (h *Holdings) add(item kv.KeyValue, last *Object) {
	var copied layout.CopyRecord
	if layout.Decode(item.Key, item.Value, &copied) != nil {
		return
	}
	h.Copies, h.Bytes = h.Copies+1, h.Bytes+copied.Size
	if id := keyspace.Table().Parse(item.Key).ID; id != last.ID {
		h.take(*last)
		*last = Object{ID: id, Size: copied.Size}
	}
	last.Workers = append(last.Workers, copied.Worker)
}

// take takes an object whose copies are all known.
func (h *Holdings) take(o Object) {
	if len(o.Workers) == 0 {
		return
	}
	if h.Largest = append(h.Largest, o); len(h.Largest) >= 10*largestShown {
		h.trim()
	}
}

// trim keeps the largest objects.
func (h *Holdings) trim() {
	slices.SortStableFunc(h.Largest, func(a, b Object) int { return cmp.Compare(b.Size, a.Size) })
	h.Largest = h.Largest[:min(largestShown, len(h.Largest))]
}

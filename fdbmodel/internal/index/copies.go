package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Copies name the workers that have results which are objects.
type Copies struct{ *Set }

// Update implements Index.
func (c *Copies) Update(before, after *layout.Row) {
	had, has := before != nil && before.Object() != "", after != nil && after.Object() != ""
	if had && !has {
		c.Tx.ClearRange(kv.Prefix(c.Keys.CopiesOf(before.ID)))
	}
	if has && (before == nil || before.Result != after.Result) {
		c.Add(after, after.Result.Worker)
	}
}

// Add says that a worker has a copy of the result of a future.
func (c *Copies) Add(row *layout.Row, worker layout.WorkerID) {
	record := &layout.CopyRecord{Worker: worker, Object: row.Result.Object, Size: row.Result.Size, At: c.Now}
	key, offset := tuple.AppendIncompleteStamp(c.Keys.CopiesOf(row.ID), c.nextOrder())
	c.Tx.SetVersionstampedKey(key, offset, layout.Encode(record))
}

// Flush implements Index.
func (c *Copies) Flush(context.Context) error { return nil }

package index

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// maxEnds is how many futures one entry lists: what stays when its time comes is listed again with what was in others,
// so that an entry would outgrow a value.
const maxEnds = 2048

// Ends list the futures that have ended, for the janitor that removes them once their
// retention has passed.
type Ends struct {
	*Set
	ids []layout.ID
}

// Update implements Index. Held futures are not listed, unless they lapse: the process that drives their
// owner discards them.
func (e *Ends) Update(before, after *layout.Row) {
	if !ends(before, after) {
		return
	}
	if !after.Spec.IsKept() {
		e.Add(after.ID)
	}
	e.Now = max(e.Now, after.FinishedAt())
}

// Add lists a future as one that has ended with the transaction.
func (e *Ends) Add(id layout.ID) { e.ids = append(e.ids, id) }

// Flush implements Index.
func (e *Ends) Flush(context.Context) error {
	for ids := range slices.Chunk(e.ids, maxEnds) {
		value := layout.Encode(&layout.DoneEntry{At: e.Now, IDs: layout.PackIDs(ids)})
		key, offset := tuple.AppendIncompleteStamp(e.Keys.DoneOf(ids[0].Shard(e.Keys.Shards)), e.nextOrder())
		e.Tx.SetVersionstampedKey(key, offset, value)
	}
	return nil
}

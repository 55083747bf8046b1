package unique

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// maxHolders is how many futures with one name a transaction looks at: there is one,
// and those that have given it up since.
const maxHolders = 16

// Holder is a future that has a name.
type Holder struct {
	ID     layout.ID
	Record layout.UniqueRecord
	Row    *layout.Row // nil if it was removed, even if another one has its id now
}

// Refusal is the error for another future that is to have the name now, on a conflict as it says.
func (h *Holder) Refusal(name layout.UniqueName, on Conflict, now int64) *TakenError {
	e := &TakenError{notReplaced: on == ConflictReplace, ID: h.ID, Name: name, Key: h.Record.Key, Until: h.Record.Until,
		period: h.Record.FreeAt > now}
	if h.Record.FreeAt > 0 {
		e.FreeAt = time.UnixMilli(h.Record.FreeAt)
	}
	if h.Row != nil {
		e.State, e.begun = h.Row.State(), h.Row.HasBegun()
	}
	return e
}

// Waits reports whether the future waits to begin.
func (h *Holder) Waits() bool {
	return h.Row != nil && !h.Row.HasBegun() &&
		slices.Contains([]layout.State{layout.Blocked, layout.Ready, layout.Delayed}, h.Row.State())
}

// Holds reports whether the future has not given up its name.
func (h *Holder) Holds(now int64) bool {
	switch {
	case h.Record.Until == layout.UntilEver || h.Record.FreeAt > now:
		return true
	case h.Row == nil || h.Row.State().Terminal():
		return false
	default:
		return h.Record.Until != layout.UntilClaim || !h.Row.HasBegun()
	}
}

// Ask requests the futures that have a name. The transaction conflicts with
// others that take the name, or give it up, meanwhile.
func Ask(tx kv.Reader, keys layout.Keyspace, name layout.UniqueName) kv.Pending[kv.Page] {
	return tx.GetRange(kv.Prefix(keys.UniqueNamed(name)), kv.RangeOptions{Limit: maxHolders})
}

// Find returns the future other than self that has a name, nil for none, and
// those that have a key for it and have given it up. It does not read the futures that are known.
func Find(ctx context.Context, tx kv.Reader, keys layout.Keyspace, asked kv.Pending[kv.Page], self layout.ID,
	now int64, known map[layout.ID]*layout.Row,
) (holder *Holder, former []Holder, err error) {
	page, err := asked.Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, item := range page.Items {
		key := layout.ParseKey(item.Key)
		h := Holder{ID: key.ID}
		if h.ID == self {
			continue
		}
		if err := layout.Decode(item.Key, item.Value, &h.Record); err != nil {
			return nil, nil, err
		}
		row := known[h.ID]
		if row == nil {
			one, _, err := read.Record(tx, keys, h.ID).Wait(ctx)
			if err != nil {
				return nil, nil, fmt.Errorf("future %s, which has the unique key %.80q: %w", h.ID, h.Record.Key, err)
			}
			row = &one
		}
		if h.Record.IsOf(row, layout.UniqueName(key.Text("name"))) {
			h.Row = row
		}
		if h.Holds(now) {
			return &h, former, nil
		}
		former = append(former, h)
	}
	return nil, former, nil
}

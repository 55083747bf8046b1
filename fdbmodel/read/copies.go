package read

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// MaxCopies is the maximum number of copies of one result.
const MaxCopies = 64

// Copy is a copy of a result as an object in the store of a worker.
type Copy struct {
	layout.CopyRecord
	// Alive says that the worker is registered. Leaving, Objects and Secret are then those of
	// layout.WorkerInfo.
	Alive   bool
	Leaving bool
	Objects string
	Secret  layout.Secret
	// Key is that of the record.
	Key []byte
}

// Copies returns the copies of a future's result, the latest first, and none if it
// is not an object. A worker that is alive may have lost its copy. With an error for which layout.IsUnreadable
// holds it returns those that can be read: what removes copies, or tells that there are no more, has to end then.
func Copies(ctx context.Context, tx kv.Reader, k layout.Keyspace, id layout.ID) ([]Copy, error) {
	page, err := tx.GetRange(kv.Prefix(k.CopiesOf(id)), kv.RangeOptions{Limit: MaxCopies, Reverse: true}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	var unreadable error
	copies := make([]Copy, 0, len(page.Items))
	fences := make([]kv.Pending[[]byte], 0, len(page.Items))
	for _, item := range page.Items {
		found := Copy{Key: item.Key}
		if err := layout.Decode(item.Key, item.Value, &found.CopyRecord); err != nil {
			unreadable = err
			continue
		}
		copies = append(copies, found)
		fences = append(fences, tx.Get(k.Worker(found.Worker, layout.WorkerAlive)))
	}
	known := copies[:0]
	for i, found := range copies {
		value, err := fences[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		var info layout.WorkerInfo
		if value != nil {
			if err := layout.Decode(k.Worker(found.Worker, layout.WorkerAlive), value, &info); err != nil {
				unreadable = err
				continue
			}
		}
		found.Alive, found.Leaving, found.Objects, found.Secret = value != nil, info.Leaving, info.Objects, info.Secret
		known = append(known, found)
	}
	return known, unreadable
}

// Awaited is for how long a worker that has left may come back with a copy.
func (c *Copy) Awaited(now time.Time) time.Duration {
	if c.Alive {
		return 0
	}
	return max(0, time.UnixMilli(c.Away).Sub(now))
}

// Pins returns the pins of a future without those whose session has ended. They are
// the caller's. A damaged record of them pins without sessions.
func Pins(ctx context.Context, tx kv.Reader, k layout.Keyspace, row *layout.Row) (*layout.PinsRecord, error) {
	live := &layout.PinsRecord{}
	if row.Pins == nil {
		return live, nil
	}
	for i, holder := range row.Pins.Holders {
		session := layout.SessionID("")
		if len(row.Pins.Sessions) == len(row.Pins.Holders) {
			session = layout.SessionID(row.Pins.Sessions[i])
		}
		if session != "" {
			value, err := tx.Get(k.Session(session)).Wait(ctx)
			if err != nil {
				return nil, err
			}
			if value == nil {
				continue
			}
		}
		live.Holders, live.Sessions = append(live.Holders, holder), append(live.Sessions, string(session))
	}
	return live, nil
}

package fdbmodel

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// EndOverdue fails futures that wait and whose time to begin, or to be over, has
// passed, at most a batch. It returns how many, and when to call it again: at once if
// there may be more, else when the next one's time is; the zero time if there is none.
// Those that run stay: their workers end them. It looks at all shards in one
// transaction, so an error of the store changes nothing in any of them. Unreadable
// futures stay. A wrong clock ends them early or late. An unknown commit is retried and
// harmless.
func (c *Cluster) EndOverdue(ctx context.Context) (ended int, next time.Time, err error) {
	now := c.clock.Now()
	var over []layout.Row
	_, err = c.Change(ctx, kv.Options{Tag: "futura-overdue"}, func(tx kv.Attempt, w *WriteSet) (err error) {
		over, next, err = w.endOverdue(ctx, tx, now)
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	c.lost.tell(over)
	return len(over), next, nil
}

// endOverdue fails a batch of futures whose time is over. It goes on behind those that it
// leaves as they are.
func (w *WriteSet) endOverdue(ctx context.Context, tx kv.Tx, now time.Time,
) (over []layout.Row, next time.Time, err error) {
	scan := shards.Read(tx.Snapshot(), w.Keys.Shards, w.Keys.LimitsOf, janitorBatch)
	for changed, full := 0, true; full && changed == 0; {
		due, later, err := w.cluster.overdue(ctx, tx, scan, now)
		if err != nil {
			return nil, next, err
		}
		for _, d := range due {
			row, found, err := d.row.Wait(ctx)
			if layout.IsUnreadable(err) || err == nil && w.Avoids(&row) {
				continue
			}
			if err != nil {
				return nil, next, err
			}
			changed++
			after, outcome := Next(row, Event{Kind: EventExpire, Now: now})
			if !found || row.Spec == nil || outcome != Applied {
				tx.Clear(d.key) // it runs, or is over, or was asked for again
				continue
			}
			w.Apply(&row, &after)
			over = append(over, after)
		}
		if full = len(due) == janitorBatch; full && changed > 0 {
			later = now
		}
		next = clock.Earlier(next, later)
	}
	return over, next, nil
}

// overdueEntry is a key of a future whose time is over, and the future as requested.
type overdueEntry struct {
	key []byte
	row read.Pending
}

// overdue requests the next futures of a scan whose time is over, at most a batch. If that
// is all of them, it returns when the next one's is.
func (c *Cluster) overdue(ctx context.Context, tx kv.Tx, scan *shards.Scan, now time.Time,
) (due []overdueEntry, next time.Time, err error) {
	for len(due) < janitorBatch {
		item, skip, err := scan.Next(ctx)
		if err != nil || item.Key == nil {
			return due, next, err
		}
		rest := tuple.NewReader(item.Key[skip:])
		at, id := rest.Int(), layout.ID(rest.UUID())
		switch {
		case rest.Err() != nil: // an audit reports it
		case at > layout.Millis(now):
			next = clock.Earlier(next, time.UnixMilli(at))
			scan.Leave()
		default:
			tx.AddReadConflictKey(item.Key)
			due = append(due, overdueEntry{item.Key, read.Record(tx, c.keys, id)})
		}
	}
	return due, next, nil
}

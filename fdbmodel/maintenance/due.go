package maintenance

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// batch is the maximum number of futures that one transaction makes ready, or ends.
const batch = 64

// PromoteDue makes due futures ready, at most a batch, those of all shards in
// turn. It returns how many, and when to call it again: at once if more may be
// due, else when the next one is; the zero time if none is delayed. It looks at
// all shards in one transaction, so an error of the store changes nothing in any
// of them. Unreadable futures stay and don't hold up the others: one call goes on where
// the former has ended, if that came upon thousands. A wrong clock
// promotes early or late, never twice. An unknown commit is retried: futures
// that were promoted are no longer delayed, and wait for a worker's poll.
func (j Janitor) PromoteDue(ctx context.Context) (promoted int, next time.Time, err error) {
	promote := func(w *fdbmodel.WriteSet, _ []byte, row *layout.Row, now time.Time) bool {
		if row.Spec == nil {
			return false
		}
		after, outcome := state.Next(*row, state.Event{Kind: state.EventPromote, Now: now})
		if outcome == fdbmodel.Applied {
			w.Apply(row, &after)
		}
		return outcome == fdbmodel.Applied
	}
	return j.changeDue(ctx, "futura-promote", &j.at.delayed, j.keys.DelayedOf, func() change { return promote })
}

// EndOverdue fails futures that wait and whose time to begin, or to be over, has
// passed, at most a batch. It returns how many, and when to call it again: at once if
// there may be more, else when the next one's time is; the zero time if there is none.
// Those that run stay: their workers end them. It looks at all shards in one
// transaction, so an error of the store changes nothing in any of them. Unreadable
// futures stay. A wrong clock ends them early or late. An unknown commit is retried and
// harmless.
func (j Janitor) EndOverdue(ctx context.Context) (ended int, next time.Time, err error) {
	_, next, err = j.changeDue(ctx, "futura-overdue", &j.at.limits, j.keys.LimitsOf, func() change {
		ended = 0
		return func(w *fdbmodel.WriteSet, key []byte, row *layout.Row, now time.Time) bool {
			after, outcome := *row, fdbmodel.Refused
			if row.Spec != nil {
				after, outcome = state.Next(*row, state.Event{Kind: state.EventExpire, Now: now})
			}
			if outcome != fdbmodel.Applied {
				w.Tx.Clear(key) // it runs, or is over, or was asked for again
				return true
			}
			w.Apply(row, &after)
			w.Lost(&after)
			ended++
			return true
		}
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	return ended, next, nil
}

// change changes a future, or its entry with a key, and reports whether it did. The future
// has no spec if there is none.
type change func(w *fdbmodel.WriteSet, key []byte, row *layout.Row, now time.Time) bool

// changeDue changes a batch of the futures whose time has come, of those that each shard lists
// by time. It goes on behind those that stay as they are, with its next call if they are many. begin is called for
// each attempt.
func (j Janitor) changeDue(ctx context.Context, tag string, cursor *shards.Cursor, of func(shard int) []byte,
	begin func() change,
) (changed int, next time.Time, err error) {
	now := j.cluster.Now()
	var scan *shards.Scan
	_, err = j.cluster.Change(ctx, kv.Options{Tag: tag}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		changed, next = 0, time.Time{}
		scan = cursor.Read(tx.Snapshot(), j.keys.Shards, of, batch+1)
		change := begin()
		for full := true; full && changed == 0; {
			due, later, err := j.due(ctx, tx, scan, now)
			if err != nil {
				return err
			}
			for i := range due {
				row, _, err := due[i].row.Wait(ctx)
				if layout.IsUnreadable(err) || err == nil && w.Skips(&row) {
					continue
				}
				if err != nil {
					return err
				}
				if change(w, due[i].key, &row, now) {
					changed++
				}
			}
			if full = len(due) == batch; full && changed > 0 {
				later = now
			}
			next = clock.Earlier(next, later)
		}
		return nil
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	cursor.Keep(scan)
	return changed, next, nil
}

// dueEntry is a key of a future whose time has come, and the future as requested.
type dueEntry struct {
	key []byte
	row read.Pending
}

// due requests the next futures of a scan whose time has come, at most a batch. If that is all
// of them, it returns when the next one's comes.
func (j Janitor) due(ctx context.Context, tx kv.Tx, scan *shards.Scan, now time.Time,
) (due []dueEntry, next time.Time, err error) {
	for len(due) < batch {
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
			due = append(due, dueEntry{item.Key, read.Record(tx, j.keys, id)})
		}
	}
	return due, next, nil
}

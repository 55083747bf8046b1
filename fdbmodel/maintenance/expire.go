package maintenance

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/internal/clock"
)

const (
	// maxExpire is the number of finished futures at which one transaction takes no further entry
	// of the done lists.
	maxExpire = 2048
	// donePage is how many entries of a shard's done list are read at once. One of futures that end together
	// has up to 2 kB.
	donePage = 8
)

// ExpireDone removes finished futures whose retention has passed, up to about 2,000. It returns how
// many, and when to call it again: at once if it took more from the done lists than what stays, else when the next
// entry is due; the zero time if there is none. It looks at all shards in one transaction, so an error
// of the store removes nothing from any of them. Futures that were retried since
// stay; so do unreadable futures, inputs of futures that are not over, and what is pinned, for
// another retention, and unreadable entries.
// An unknown commit is retried and harmless.
func (j Janitor) ExpireDone(ctx context.Context) (removed int, next time.Time, err error) {
	now := j.cluster.Now()
	var scan *shards.Scan
	_, err = j.cluster.Change(ctx, kv.Options{Tag: "futura-expire"},
		func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
			var entries []doneEntry
			var err error
			scan = j.at.done.Read(tx.Snapshot(), j.keys.Shards, j.keys.DoneOf, donePage)
			if entries, next, err = j.expired(ctx, tx, scan, now); err != nil {
				return err
			}
			var kept int
			if removed, kept, err = expire(ctx, w, entries); err != nil {
				return err
			}
			listed := 0
			for _, e := range entries {
				// What stays is listed again, once: two transactions can't take the same entry.
				tx.AddReadConflictKey(e.key)
				tx.Clear(e.key)
				listed += len(e.ids)
			}
			if listed > kept {
				next = now
			}
			return nil
		})
	if err != nil {
		return 0, time.Time{}, err
	}
	j.at.done.Keep(scan)
	return removed, next, nil
}

// doneEntry is an entry of a done list, with its futures as requested.
type doneEntry struct {
	key     []byte
	at      int64
	ids     []layout.ID
	futures []read.Pending
}

// expired requests the futures of the first readable entries of each shard
// whose retention has passed. If that are none, it returns when that of the next one
// does.
func (j Janitor) expired(ctx context.Context, tx kv.Tx, scan *shards.Scan, now time.Time,
) (expired []doneEntry, next time.Time, err error) {
	for n := 0; n < maxExpire; {
		item, _, err := scan.Next(ctx)
		if err != nil || item.Key == nil {
			return expired, next, err
		}
		var entry layout.DoneEntry
		if err := layout.Decode(item.Key, item.Value, &entry); layout.IsUnreadable(err) {
			continue
		} else if err != nil {
			return nil, next, err
		}
		if due := time.UnixMilli(entry.At).Add(j.cluster.Config().Retention); due.After(now) {
			scan.Leave()
			next = clock.Earlier(next, due)
			continue
		}
		ids := layout.UnpackIDs(entry.IDs)
		expired = append(expired, doneEntry{item.Key, entry.At, ids, read.Records(tx, j.keys, ids)})
		n += len(ids)
	}
	return expired, next, nil
}

// expire removes the futures of entries, and returns how many, and how many stay. A future that
// finished again after a retry may be in several.
func expire(ctx context.Context, w *fdbmodel.WriteSet, entries []doneEntry) (removed, kept int, err error) {
	seen := map[layout.ID]bool{}
	for _, e := range entries {
		for i, id := range e.ids {
			row, found, err := e.futures[i].Wait(ctx)
			switch {
			case seen[id]:
			case layout.IsUnreadable(err):
				seen[id] = true
				w.Keep(id) // a version that can read it may expire it then
				kept++
			case err != nil:
				return 0, 0, err
			case found && row.Spec != nil && row.State().Terminal() && row.FinishedAt() <= e.at:
				seen[id] = true
				gone, err := w.Expire(ctx, &row)
				if err != nil {
					return 0, 0, err
				}
				if gone {
					removed++
				} else {
					kept++
				}
			}
		}
	}
	return removed, kept, nil
}

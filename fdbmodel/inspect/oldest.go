package inspect

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// oldestReads is how many keys OldestReady reads of a shard.
const oldestReads = 500

// OldestReady returns for each queue when the longest waiting of its ready futures was
// submitted. It reads one key for each shard, queue, requirements and priority that ready
// futures have, however many futures there are, and up to 500 of a shard: a queue behind those
// may be missing, or have an older future. What waits in line for a lane, for an assignment or
// for a time does not count, nor does a future with an id of its submitter's choice. Unreadable keys are skipped.
func OldestReady(ctx context.Context, c *fdbmodel.Cluster) (map[string]time.Time, error) {
	oldest := map[string]time.Time{}
	left := make([]kv.Range, c.Config().Shards)
	for shard := range left {
		left[shard] = kv.Prefix(c.Keys().Shard(shard, layout.SubReady))
	}
	for range oldestReads {
		found := false
		err := c.View(ctx, func(tx kv.Attempt) error {
			found = false
			pages := make([]kv.Pending[kv.Page], len(left))
			for shard := range left {
				pages[shard] = tx.Snapshot().GetRange(left[shard], kv.RangeOptions{Limit: 1})
			}
			for shard := range pages {
				page, err := pages[shard].Wait(ctx)
				if err != nil {
					return err
				}
				if len(page.Items) == 0 {
					continue
				}
				found = true
				oldestOf(c, shard, page.Items[0], oldest, &left[shard])
			}
			return nil
		})
		if err != nil || !found {
			return oldest, err
		}
	}
	return oldest, nil
}

// oldestOf takes note of the first ready future of a queue, requirements and priority, and has
// the range go on behind those.
func oldestOf(c *fdbmodel.Cluster, shard int, first kv.KeyValue, oldest map[string]time.Time, left *kv.Range) {
	entry, _, _, err := layout.ParseAnyReady(first, c.Keys().Shard(shard, layout.SubReady))
	if err != nil {
		left.Begin = kv.After(first.Key) // an audit reports it
		return
	}
	at := entry.ID.Time()
	if at.IsZero() || at.After(c.Now().Add(aheadOfClocks)) {
		left.Begin = kv.AfterPrefix(first.Key) // the next one may have an id with a time
		return
	}
	if known, found := oldest[entry.Class.Queue]; !found || at.Before(known) {
		oldest[entry.Class.Queue] = at
	}
	left.Begin = kv.AfterPrefix(first.Key[:len(first.Key)-len(tuple.AppendUUID(nil, entry.ID))])
}

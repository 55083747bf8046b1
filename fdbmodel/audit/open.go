package audit

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func (k *checker) lookOwners(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubOwners))
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			owner := rest.Text()
			prefix := k.keys.OwnerOpenOf(owner)
			switch {
			case rest.Err() == nil && bytes.Equal(k.keys.OwnerBell(owner), item.Key):
				_, err := layout.DecodeStamped(item.Key, item.Value, &layout.Bell{})
				f.decoded(item.Key, err)
			case rest.Err() == nil && bytes.HasPrefix(item.Key, prefix):
				_, _, err := layout.ParseOpen(prefix, item)
				f.decoded(item.Key, err)
			default:
				f.broken(InvariantKey, item.Key, "no owner has this key")
			}
		}
		return nil
	}
}

// checkOpen compares the counters of held futures that are with workers with
// the counted futures, and counts once more, at one version, where they differ.
func (k *checker) checkOpen(ctx context.Context) error {
	if k.blind {
		return nil
	}
	var counters, counted map[layout.OpenKey]int64
	err := k.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		counters, err = k.readOpen(ctx, tx.Snapshot())
		return err
	})
	if err != nil || maps.Equal(counters, k.opened) {
		return err
	}
	settled, err := k.atOneVersion(ctx, "counters of owners", func(tx kv.Reader) (err error) {
		if counters, err = k.readOpen(ctx, tx); err == nil {
			counted, err = k.countOpen(ctx, tx)
		}
		return err
	})
	if err != nil || !settled {
		return err
	}
	var f findings
	for key := range joinKeys(counters, counted) {
		if counters[key] != counted[key] {
			f.broken(InvariantCounts, k.keys.OwnerOpen(key.Owner, key.Why),
				"%d held futures of owner %q are with workers because of %q, and the counter says %d",
				counted[key], key.Owner, key.Why, counters[key])
		}
	}
	k.take(&f)
	return nil
}

// readOpen leaves out counters that are zero.
func (k *checker) readOpen(ctx context.Context, tx kv.Reader) (map[layout.OpenKey]int64, error) {
	counters := map[layout.OpenKey]int64{}
	for shard := range k.keys.Shards {
		owners := k.keys.Shard(shard, layout.SubOwners)
		err := eachOf(ctx, tx, kv.Prefix(owners), func(item kv.KeyValue) {
			rest := tuple.NewReader(item.Key[len(owners):])
			owner, kind := rest.Text(), rest.Text()
			if rest.Err() != nil || kind != layout.OwnerOpenPart {
				return
			}
			if why, n, err := layout.ParseOpen(k.keys.OwnerOpenOf(owner), item); err == nil && n != 0 {
				counters[layout.OpenKey{Owner: owner, Why: why}] = n
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return counters, nil
}

// countOpen counts the held futures that are assigned or claimed at the version
// of tx.
func (k *checker) countOpen(ctx context.Context, tx kv.Reader) (map[layout.OpenKey]int64, error) {
	ids := map[layout.ID]struct{}{}
	for shard := range k.keys.Shards {
		if err := k.collectTaken(ctx, tx, shard, ids); err != nil {
			return nil, err
		}
	}
	counted := map[layout.OpenKey]int64{}
	for page := range slices.Chunk(slices.Collect(maps.Keys(ids)), CheckPage) {
		for _, asked := range read.Rows(tx, k.keys, page, k.keys.Spec) {
			row, _, err := asked.Wait(ctx)
			if err != nil && !layout.IsUnreadable(err) {
				return nil, err
			}
			if err == nil && row.Spec != nil && row.Open() {
				counted[layout.OpenKey{Owner: row.Spec.Owner, Why: row.Attempts.Why}]++
			}
		}
	}
	return counted, nil
}

// collectTaken collects the futures that wait for workers of a shard, or are
// claimed by them.
func (k *checker) collectTaken(ctx context.Context, tx kv.Reader, shard int, ids map[layout.ID]struct{}) error {
	assigned := k.keys.Shard(shard, layout.SubAssigned)
	err := eachOf(ctx, tx, kv.Prefix(assigned), func(item kv.KeyValue) {
		rest := tuple.NewReader(item.Key[len(assigned):])
		worker := layout.WorkerID(rest.Text())
		if rest.Err() != nil {
			return
		}
		if e, err := layout.ParseAssigned(item, k.keys.AssignedTo(worker)); err == nil {
			ids[e.ID] = struct{}{}
		}
	})
	if err != nil {
		return err
	}
	workers := k.keys.Shard(shard, layout.SubWorkers)
	return eachOf(ctx, tx, kv.Prefix(workers), func(item kv.KeyValue) {
		rest := tuple.NewReader(item.Key[len(workers):])
		rest.Text()
		var claim layout.ClaimBatch
		if kind := rest.Text(); kind == layout.WorkerClaims && layout.Decode(item.Key, item.Value, &claim) == nil {
			for _, id := range layout.UnpackIDs(claim.IDs) {
				ids[id] = struct{}{}
			}
		}
	})
}

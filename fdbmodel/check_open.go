package fdbmodel

import (
	"context"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// checkOpen compares the counters of held futures that are with workers with
// what was counted, and counts once more, at one version, where they differ.
func (k *checker) checkOpen(ctx context.Context) error {
	if k.blind {
		return nil
	}
	var counters, counted map[openKey]int64
	err := k.cluster.view(ctx, func(tx kv.Attempt) (err error) {
		counters, err = k.readOpen(ctx, tx.Snapshot())
		return err
	})
	if err != nil || maps.Equal(counters, k.opened) {
		return err
	}
	settled, err := k.atOneVersion(ctx, "counters of groups", func(tx kv.Reader) (err error) {
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
			f.broken(InvariantCounts, k.keys.groupOpen(key.group, key.why),
				"%d held futures of group %q are with workers because of %q, and the counter says %d",
				counted[key], key.group, key.why, counters[key])
		}
	}
	k.take(&f)
	return nil
}

// readOpen leaves out counters that are zero.
func (k *checker) readOpen(ctx context.Context, tx kv.Reader) (map[openKey]int64, error) {
	counters := map[openKey]int64{}
	for shard := range k.keys.shards {
		groups := k.keys.shard(shard, subGroups)
		err := eachOf(ctx, tx, kv.Prefix(groups), func(item kv.KeyValue) {
			rest := tuple.NewReader(item.Key[len(groups):])
			group, kind := rest.Text(), rest.Text()
			if rest.Err() != nil || kind != groupOpen {
				return
			}
			if why, n, err := parseOpen(k.keys.groupOpenOf(group), item); err == nil && n != 0 {
				counters[openKey{group, why}] = n
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
func (k *checker) countOpen(ctx context.Context, tx kv.Reader) (map[openKey]int64, error) {
	ids := map[ID]struct{}{}
	for shard := range k.keys.shards {
		if err := k.collectTaken(ctx, tx, shard, ids); err != nil {
			return nil, err
		}
	}
	counted := map[openKey]int64{}
	for page := range slices.Chunk(slices.Collect(maps.Keys(ids)), checkPage) {
		for _, asked := range k.keys.askRows(tx, page, k.keys.spec) {
			row, _, err := asked.wait(ctx)
			if err != nil && !isUnreadable(err) {
				return nil, err
			}
			if err == nil && row.Spec != nil && row.open() {
				counted[openKey{row.Spec.Group, row.Attempts.Why}]++
			}
		}
	}
	return counted, nil
}

// collectTaken collects the futures that wait for workers of a shard, or are
// claimed by them.
func (k *checker) collectTaken(ctx context.Context, tx kv.Reader, shard int, ids map[ID]struct{}) error {
	assigned := k.keys.shard(shard, subAssigned)
	err := eachOf(ctx, tx, kv.Prefix(assigned), func(item kv.KeyValue) {
		rest := tuple.NewReader(item.Key[len(assigned):])
		worker := WorkerID(rest.Text())
		if rest.Err() != nil {
			return
		}
		if e, err := parseAssigned(item, k.keys.assignedTo(worker)); err == nil {
			ids[e.id] = struct{}{}
		}
	})
	if err != nil {
		return err
	}
	workers := k.keys.shard(shard, subWorkers)
	return eachOf(ctx, tx, kv.Prefix(workers), func(item kv.KeyValue) {
		rest := tuple.NewReader(item.Key[len(workers):])
		rest.Text()
		var claim claimBatch
		if kind := rest.Text(); kind == workerClaims && decodeRecord(item.Key, item.Value, &claim) == nil {
			for _, id := range unpackIDs(claim.IDs) {
				ids[id] = struct{}{}
			}
		}
	})
}

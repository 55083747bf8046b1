package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// comparison compares counters with the futures that they count. Both functions
// read at the version of a transaction; counters leaves out those that are zero.
type comparison[K comparable] struct {
	of                Invariant
	what              string
	met               map[K]int64 // futures counted on the way, at different versions; nil if they were not
	counters, futures func(context.Context, kv.Reader) (map[K]int64, error)
	broken            func(f *findings, key K, futures, counter int64) *found
	// mend makes a counter right in a transaction that reads at the version of both numbers.
	// By how much it is wrong does not change: what changes futures changes it alike. It is
	// false for one that is part of a record which can't be read.
	mend func(ctx context.Context, tx kv.Tx, key K, futures, counter int64) (bool, error)
	// known reports whether all that a counter follows from can be read, after it was counted. One of which
	// something can't be read is neither called wrong nor mended. Defaults to true.
	known func(ctx context.Context, tx kv.Reader, key K) (bool, error)
}

// settle compares the counters with the futures met, and counts once more, at
// one version, where they differ.
func (c comparison[K]) settle(ctx context.Context, k *checker) error {
	if k.repairs != nil {
		return c.repair(ctx, k)
	}
	var counters map[K]int64
	err := k.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		counters, err = c.counters(ctx, tx.Snapshot())
		return err
	})
	if err != nil || c.met != nil && maps.Equal(counters, c.met) {
		return err
	}
	var wrong map[K][2]int64
	settled, err := k.atOneVersion(ctx, c.what, func(tx kv.Tx) (err error) {
		if wrong, err = c.compare(ctx, tx.Snapshot()); err == nil {
			err = c.leaveOut(ctx, tx.Snapshot(), wrong)
		}
		return err
	})
	if err != nil || !settled {
		return err
	}
	var f findings
	for key, n := range wrong {
		c.broken(&f, key, n[0], n[1]).apart("count again")
	}
	k.take(&f)
	return nil
}

// leaveOut removes counters of which too little can be read to say that they are wrong.
func (c comparison[K]) leaveOut(ctx context.Context, tx kv.Reader, wrong map[K][2]int64) error {
	for key := range wrong {
		known, err := c.isKnown(ctx, tx, key)
		if err != nil {
			return err
		}
		if !known {
			delete(wrong, key)
		}
	}
	return nil
}

func (c comparison[K]) isKnown(ctx context.Context, tx kv.Reader, key K) (bool, error) {
	if c.known == nil {
		return true, nil
	}
	return c.known(ctx, tx, key)
}

// compare returns the wrong counters: the number of futures, and what the counter says.
func (c comparison[K]) compare(ctx context.Context, tx kv.Reader) (map[K][2]int64, error) {
	counters, err := c.counters(ctx, tx)
	if err != nil {
		return nil, err
	}
	futures, err := c.futures(ctx, tx)
	if err != nil {
		return nil, err
	}
	wrong := map[K][2]int64{}
	for key, n := range futures {
		if counters[key] != n {
			wrong[key] = [2]int64{n, counters[key]}
		}
	}
	for key, n := range counters {
		if futures[key] == 0 {
			wrong[key] = [2]int64{0, n}
		}
	}
	return wrong, nil
}

// checkCounts compares the counters of a shard with its futures.
func (k *checker) checkCounts(ctx context.Context, shard int) error {
	defer clear(k.met.counted)
	if k.met.damaged[shard] {
		return nil
	}
	return comparison[layout.ShardCount]{
		of: InvariantCounts, mend: k.mendCount, what: fmt.Sprintf("counters of shard %d", shard), met: k.met.counted,
		counters: func(ctx context.Context, tx kv.Reader) (map[layout.ShardCount]int64, error) {
			return k.readCounts(ctx, tx, shard)
		},
		futures: func(ctx context.Context, tx kv.Reader) (map[layout.ShardCount]int64, error) {
			return k.countFutures(ctx, tx, shard)
		},
		broken: func(f *findings, key layout.ShardCount, futures, counter int64) *found {
			return f.broken(InvariantCounts, k.keys.Count(shard, key.Queue, key.Owner, key.State),
				"there are %d %v futures of queue %q and owner %q in shard %d, and the counter says %d",
				futures, key.State, key.Queue, key.Owner, shard, counter)
		},
	}.settle(ctx, k)
}

// checkOpen compares the counters of held futures that are with workers with
// the futures.
func (k *checker) checkOpen(ctx context.Context) error {
	if len(k.met.damaged) > 0 {
		return nil
	}
	return comparison[layout.OpenKey]{
		of: InvariantCounts, mend: k.mendOpen, what: "counters of owners",
		met: k.met.opened, counters: k.readOpen, futures: k.countOpen,
		broken: func(f *findings, key layout.OpenKey, futures, counter int64) *found {
			return f.broken(InvariantCounts, k.keys.OwnerOpen(key.Owner, key.Reason),
				"%d held futures of owner %q are with workers because of %q, and the counter says %d",
				futures, key.Owner, key.Reason, counter)
		},
	}.settle(ctx, k)
}

// atOneVersion calls fn in a transaction, and adds what to Unsettled if fn takes longer than a
// store allows, or others interfere with each attempt.
func (k *checker) atOneVersion(ctx context.Context, what string, fn func(tx kv.Tx) error) (bool, error) {
	retry := k.cluster.RetryPolicy(kv.Options{Tag: "futura-read"})
	retry.MaxAttempts = 3
	if k.repairs != nil {
		retry.Tag, retry.MaxAttempts = repairTag, 10
	}
	_, err := kv.Transact(ctx, k.cluster.Database(), retry, func(tx kv.Attempt) error { return fn(tx) })
	if kv.Retryable(err) && ctx.Err() == nil {
		k.report.Unsettled = append(k.report.Unsettled, what)
		return false, nil
	}
	return err == nil, err
}

// each calls fn with every key below a prefix that can be read at the version of tx. The
// others were reported before, or will be next time; a repair counts none without them.
func (k *checker) each(ctx context.Context, tx kv.Reader, prefix []byte, fn func(*item)) error {
	r := kv.Prefix(prefix)
	for {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: countedPage}).Wait(ctx)
		if err != nil {
			return err
		}
		for _, stored := range page.Items {
			it, err := newItem(k.keys, stored)
			switch {
			case err == nil && it.err == nil:
				fn(&it)
			case it.Subspace == layout.SubFutures, it.Subspace == layout.SubWorkers, it.Subspace == layout.SubAssigned:
				k.repairs.skip()
			case err == nil && it.Kind.Name == layout.KeyLane:
				k.unread[it.Text("kind")] = true
			}
		}
		if !page.More {
			return nil
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

// countedPage is how many keys are read at a time to count them.
const countedPage = 500

func (k *checker) readCounts(ctx context.Context, tx kv.Reader, shard int) (map[layout.ShardCount]int64, error) {
	counters := map[layout.ShardCount]int64{}
	err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubCounts), func(it *item) {
		state, err := layout.ParseState(it.Text("state"))
		if err == nil && it.Count != 0 {
			key := layout.CountKey{Queue: it.Text("queue"), Owner: it.Text("owner"), State: state}
			counters[layout.ShardCount{Shard: shard, CountKey: key}] = it.Count
		}
	})
	return counters, err
}

func (k *checker) countFutures(ctx context.Context, tx kv.Reader, shard int) (map[layout.ShardCount]int64, error) {
	counted := map[layout.ShardCount]int64{}
	err := k.eachFuture(ctx, tx, shard, func(row *layout.Row) {
		counted[layout.CountOf(shard, row.Spec, row.State())]++
	})
	return counted, err
}

// eachFuture calls fn with every future of a shard that can be read.
func (k *checker) eachFuture(ctx context.Context, tx kv.Reader, shard int, fn func(*layout.Row)) error {
	var row layout.Row
	flush := func() {
		switch {
		case row.Spec != nil:
			fn(&row)
		case !row.ID.IsZero():
			k.repairs.skip()
		}
	}
	err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubFutures), func(it *item) {
		if it.ID != row.ID {
			flush()
			row = layout.Row{ID: it.ID}
		}
		row.Put(&it.Key, &it.Value)
	})
	flush()
	return err
}

func (k *checker) readOpen(ctx context.Context, tx kv.Reader) (map[layout.OpenKey]int64, error) {
	counters := map[layout.OpenKey]int64{}
	for shard := range k.keys.Shards {
		err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubOwners), func(it *item) {
			if it.Kind.Name == layout.KeyOwnerOpen && it.Count != 0 {
				counters[layout.OpenKey{Owner: it.Text("owner"), Reason: it.Text("reason")}] = it.Count
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return counters, nil
}

// countOpen counts the held futures that are assigned or claimed.
func (k *checker) countOpen(ctx context.Context, tx kv.Reader) (map[layout.OpenKey]int64, error) {
	ids := map[layout.ID]struct{}{}
	for shard := range k.keys.Shards {
		err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubAssigned), func(it *item) { ids[it.ID] = struct{}{} })
		if err != nil {
			return nil, err
		}
		err = k.each(ctx, tx, k.keys.Shard(shard, layout.SubWorkers), func(it *item) {
			if claim, ok := it.Record.(*layout.ClaimBatch); ok {
				for _, id := range layout.UnpackIDs(claim.IDs) {
					ids[id] = struct{}{}
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	counted := map[layout.OpenKey]int64{}
	for page := range slices.Chunk(slices.Collect(maps.Keys(ids)), countedPage) {
		for _, asked := range read.Rows(tx, k.keys, page, k.keys.Spec) {
			row, _, err := asked.Wait(ctx)
			if layout.IsUnreadable(err) {
				k.repairs.skip()
				continue
			}
			if err != nil {
				return nil, err
			}
			if row.Spec != nil && row.Open() {
				counted[layout.OpenKey{Owner: row.Spec.Owner, Reason: row.Attempts.Reason}]++
			}
		}
	}
	return counted, nil
}

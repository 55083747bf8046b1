package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// repair compares the counters at one version, and makes the wrong ones right.
func (c comparison[K]) repair(ctx context.Context, k *checker) error {
	var wrong map[K][2]int64
	mended := 0
	settled, err := k.atOneVersion(ctx, c.what, func(tx kv.Tx) (err error) {
		k.repairs.skipped, mended = false, 0
		if wrong, err = c.compare(ctx, tx.Snapshot()); err != nil || k.repairs.skipped {
			return err
		}
		for key, n := range wrong {
			done, err := c.isKnown(ctx, tx, key)
			if done {
				done, err = c.mend(ctx, tx, key, n[0], n[1])
			}
			if err != nil {
				return err
			}
			if done {
				mended++
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case settled:
		if k.repairs.done(c.of, mended); !k.repairs.skipped && mended == len(wrong) {
			return nil
		}
		k.report.Unsettled = append(k.report.Unsettled, c.what+", as something that they count can't be read")
	}
	k.repairs.uncounted = k.repairs.uncounted || c.of == InvariantLane
	return nil
}

// mendCount adds what a counter lacks. It conflicts with other repairs of the counters of the
// shard, so that none is made twice, and not with what changes futures.
func (k *checker) mendCount(_ context.Context, tx kv.Tx, key layout.ShardCount, futures, counter int64) (bool, error) {
	fence := k.keys.Shard(key.Shard, layout.SubCounts)
	tx.AddReadConflictKey(fence)
	tx.AddWriteConflictKey(fence)
	tx.Atomic(kv.Add, k.keys.Count(key.Shard, key.Queue, key.Owner, key.State), layout.EncodeCounter(futures-counter))
	return true, nil
}

// mendOpen writes a counter that others clear with its owner.
func (k *checker) mendOpen(_ context.Context, tx kv.Tx, key layout.OpenKey, futures, _ int64) (bool, error) {
	counter := k.keys.OwnerOpen(key.Owner, key.Reason)
	tx.AddReadConflictKey(counter)
	if futures == 0 {
		tx.Clear(counter)
		return true, nil
	}
	tx.Set(counter, layout.EncodeCounter(futures))
	return true, nil
}

// mendLane writes how many futures a lane has admitted. What changes that changes its record,
// which the transaction reads.
func (k *checker) mendLane(ctx context.Context, tx kv.Tx, lane layout.Lane, futures, _ int64) (bool, error) {
	var r layout.LaneRecord
	if readable, err := k.readRecord(ctx, tx, k.keys.Lane(lane), &r); err != nil || !readable {
		return false, err
	}
	r.Open, r.Called = int(futures%aCall), int(futures/aCall)
	k.writeLane(tx, lane, r)
	return true, nil
}

// mendTotal writes how many futures the lanes of a kind have admitted, and has one looked at that
// waits for its turn.
func (k *checker) mendTotal(ctx context.Context, tx kv.Tx, kind string, futures, _ int64) (bool, error) {
	var total layout.LaneTotal
	if readable, err := k.readRecord(ctx, tx, k.keys.LaneTotal(kind), &total); err != nil || !readable {
		return false, err
	}
	first, err := tx.GetRange(kv.Prefix(k.keys.LaneTurnsOf(kind)), kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil {
		return false, err
	}
	total.Open, total.Lined = int(futures), total.Lined || len(first.Items) > 0
	tx.Set(k.keys.LaneTotal(kind), layout.Encode(&total))
	for _, turn := range first.Items {
		var r layout.LaneRecord
		lane := layout.Lane{Kind: kind, Key: string(turn.Value)}
		readable, err := k.readRecord(ctx, tx, k.keys.Lane(lane), &r)
		if err != nil {
			return false, err
		}
		if readable {
			k.writeLane(tx, lane, r)
		}
	}
	return true, nil
}

// mendTurns has lanes wait anew that wait for a turn which they have lost.
func (k *checker) mendTurns(ctx context.Context, tx kv.Tx, lost map[layout.Lane]layout.LaneRecord) error {
	for lane := range lost {
		var r layout.LaneRecord
		if readable, err := k.readRecord(ctx, tx, k.keys.Lane(lane), &r); err != nil || !readable {
			return err
		}
		r.Turn = false
		k.writeLane(tx, lane, r)
	}
	return nil
}

// readRecord reads a record, which stays empty if the key does not exist.
func (k *checker) readRecord(ctx context.Context, tx kv.Reader, key []byte, r layout.Record,
) (readable bool, err error) {
	value, err := tx.Get(key).Wait(ctx)
	return err == nil && (value == nil || layout.Decode(key, value, r) == nil), err
}

// writeLane writes the record of a lane, and has a janitor look at it.
func (k *checker) writeLane(tx kv.Tx, lane layout.Lane, r layout.LaneRecord) {
	for _, c := range lookAt(k.keys, lane, r, layout.Millis(k.cluster.Now())) {
		c.write(tx)
	}
}

// listDone lists finished futures of which no done list knows. One that is listed twice is
// removed once.
func (k *checker) listDone(ctx context.Context, finished map[layout.ID]int64) error {
	byShard := map[int][]layout.ID{}
	for id := range maps.Keys(finished) {
		shard := id.Shard(k.keys.Shards)
		byShard[shard] = append(byShard[shard], id)
	}
	for shard, ids := range byShard {
		for some := range slices.Chunk(ids, repairsAtOnce) {
			n := 0
			_, err := k.cluster.Transact(ctx, kv.Options{Tag: repairTag}, func(tx kv.Attempt) (err error) {
				n, err = k.listSome(ctx, tx, shard, some, finished)
				return err
			})
			if err != nil {
				return err
			}
			k.repairs.done(InvariantDone, n)
		}
	}
	return nil
}

func (k *checker) listSome(ctx context.Context, tx kv.Tx, shard int, ids []layout.ID, finished map[layout.ID]int64,
) (int, error) {
	var found []layout.ID
	at := layout.Millis(k.cluster.Now())
	for _, asked := range read.Records(tx, k.keys, ids) {
		row, _, err := asked.Wait(ctx)
		if layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if row.Spec != nil && row.State().Terminal() && row.FinishedAt() == finished[row.ID] {
			found, at = append(found, row.ID), max(at, row.FinishedAt())
		}
	}
	if len(found) > 0 {
		key, offset := tuple.AppendIncompleteStamp(k.keys.DoneOf(shard), 0)
		tx.SetVersionstampedKey(key, offset, layout.Encode(&layout.DoneEntry{At: at, IDs: layout.PackIDs(found)}))
	}
	return len(found), nil
}

// instead is what an operator can do about a problem that is not repaired.
func instead(of Invariant) string {
	switch of {
	case InvariantKey:
		return "a newer version of Futura has written it, or another program: find that one, and stop it"
	case InvariantRecord:
		return "see if a newer version of Futura wrote it; else restore the last backup into another cluster, and compare"
	case InvariantConfig:
		return "correct it with futura cluster set or futura limits set, or restore the last backup"
	case InvariantSpec, InvariantArgs, InvariantChunks:
		return "what is gone is in a backup only: restore one into another cluster, or submit the work again"
	case InvariantModule, InvariantAlias:
		return "put the module again: futura function put"
	case InvariantSchedule:
		return "put the schedule again: futura schedule put"
	case InvariantPause:
		return "it pauses nothing, and may stay"
	case InvariantJobs:
		return "see futura jobs; what is gone of a log is in a backup only"
	case InvariantMetered, InvariantActivity:
		return "sums of that day may be wrong; no future depends on it"
	case InvariantUnique:
		return "see futura unique; cancel all but one of the futures"
	case InvariantPromise:
		return "draw another token of the promise (futura promise token), or delete it if its records contradict each other"
	case InvariantActor:
		return "its calls fail: delete the actor (futura actor delete), or restore the last backup into another cluster, " +
			"and copy its state from there"
	case InvariantBatch:
		return "what is gone is in a backup only: restore one into another cluster, or post the batch again"
	case InvariantMail:
		return "the notice is dropped with its session; await the future again"
	default:
		return "its records contradict each other, or an input is gone: see futura explain, then cancel or delete it, or " +
			"restore the last backup"
	}
}

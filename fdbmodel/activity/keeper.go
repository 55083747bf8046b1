package activity

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// foldMost is the maximum number of records that one transaction adds up.
const foldMost = 100

// Keeper keeps the activity of a cluster in few records. It remembers how far it is, so that it
// reads little again. The zero value is ready to use, in one goroutine at a time; several
// keepers of a cluster do no harm.
type Keeper struct {
	counted int64 // the last minute whose futures it has counted
	folded  int64 // minutes before this one have one record each
	hours   int64 // minutes before this one are in records of hours
}

// Keep counts the futures of the present minute, once in a minute and cluster: that reads the
// counters, and writes one record. It adds up the minutes that all workers have closed to one
// record each, those of hours that ended MinutesFor ago to one of the hour, and removes
// hours after HoursFor. Records that it can't read stay. It returns when to call it again.
// What fails does not keep the rest from being done. An unknown commit is retried, and counts
// nothing twice.
func (k *Keeper) Keep(ctx context.Context, c *fdbmodel.Cluster) (next time.Time, err error) {
	now := c.Now()
	next = now.Truncate(time.Minute).Add(time.Minute)
	return next, errors.Join(k.count(ctx, c, now), k.foldMinutes(ctx, c, now), k.foldHours(ctx, c, now))
}

// count writes how many futures there are, unless another process has.
func (k *Keeper) count(ctx context.Context, c *fdbmodel.Cluster, now time.Time) error {
	minute := meter.MinuteOf(now)
	if k.counted == minute {
		return nil
	}
	counts, err := c.Counts(ctx)
	if err != nil {
		return err
	}
	counted := &meter.Activity{CountedAt: layout.Millis(now), Counts: meter.CountsByQueue(counts)}
	key := meter.Keys(c.Keys()).Activity(meter.ActivityKey{Step: meter.Minutes, At: minute})
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-activity", NoSync: true}, func(tx kv.Attempt) error {
		sum := meter.Activity{}
		if _, err := meter.AddStored(ctx, key, tx.Get(key), &sum); err != nil || sum.CountedAt != 0 {
			return err
		}
		sum.Add(counted)
		tx.Set(key, layout.Encode(&sum))
		return nil
	})
	if err == nil {
		k.counted = minute
	}
	return err
}

// foldMinutes adds up the records of workers, by minute, except for those that a worker may
// still write.
func (k *Keeper) foldMinutes(ctx context.Context, c *fdbmodel.Cluster, now time.Time) error {
	const minute = int64(time.Minute / time.Second)
	until := meter.MinuteOf(now)
	for !meter.MinuteIsClosed(until-minute, now) {
		until -= minute
	}
	open := until
	stays := func(at int64) { open = min(open, at) }
	f := folder{cluster: c, step: meter.Minutes, every: time.Minute, open: stays}
	from := min(k.folded, until) // a clock may have been set back
	err := eachKey(ctx, c, meter.Minutes, from, until, func(key meter.ActivityKey, _ kv.KeyValue) error {
		if key.Membership == "" {
			return nil
		}
		return f.take(ctx, key)
	})
	if err == nil {
		err = f.fold(ctx)
	}
	if err == nil {
		k.folded = open
	}
	return err
}

// foldHours adds up the minutes of hours that are over for long, and removes old hours.
func (k *Keeper) foldHours(ctx context.Context, c *fdbmodel.Cluster, now time.Time) error {
	until := now.Add(-MinutesFor).Truncate(time.Hour).Unix()
	if until == k.hours {
		return nil
	}
	old := kv.Range{
		Begin: meter.Keys(c.Keys()).ActivityOf(meter.Hours),
		End:   meter.Keys(c.Keys()).ActivityFrom(meter.Hours, now.Add(-HoursFor).Truncate(time.Hour).Unix()),
	}
	if err := meter.Drop(ctx, c, "futura-activity", old); err != nil {
		return err
	}
	open := false
	f := folder{cluster: c, step: meter.Hours, every: time.Hour, open: func(int64) { open = true }}
	err := eachKey(ctx, c, meter.Minutes, 0, until, func(key meter.ActivityKey, _ kv.KeyValue) error {
		return f.take(ctx, key)
	})
	if err == nil {
		err = f.fold(ctx)
	}
	if err == nil && !open {
		k.hours = until
	}
	return err
}

// folder adds up records by the minute or the hour that they are in.
type folder struct {
	cluster *fdbmodel.Cluster
	step    string
	every   time.Duration
	open    func(at int64) // is called with the time of a record that stays
	group   []meter.ActivityKey
}

func (f *folder) start(at int64) int64 { return time.Unix(at, 0).Truncate(f.every).Unix() }

// take adds a record to the group, once that of another time is folded.
func (f *folder) take(ctx context.Context, key meter.ActivityKey) error {
	if n := len(f.group); n > 0 && f.start(f.group[0].At) != f.start(key.At) || n == foldMost {
		if err := f.fold(ctx); err != nil {
			return err
		}
	}
	f.group = append(f.group, key)
	return nil
}

// fold adds the group up to one record.
func (f *folder) fold(ctx context.Context) error {
	group := f.group
	if f.group = nil; len(group) == 0 {
		return nil
	}
	keys := f.cluster.Keys()
	into := meter.Keys(keys).Activity(meter.ActivityKey{Step: f.step, At: f.start(group[0].At)})
	var open []int64
	_, err := f.cluster.Transact(ctx, kv.Options{Tag: "futura-activity"}, func(tx kv.Attempt) error {
		asked := tx.Get(into)
		var beats, records []kv.Pending[[]byte]
		for _, key := range group {
			// Heartbeats may change meanwhile: what one has closed stays closed.
			beats = append(beats, tx.Snapshot().Get(keys.Worker(key.Membership, layout.WorkerHeartbeat)))
			records = append(records, tx.Get(meter.Keys(keys).Activity(key)))
		}
		sum, folded := meter.Activity{}, 0
		open = nil
		if _, err := meter.AddStored(ctx, into, asked, &sum); layout.IsUnreadable(err) {
			open = append(open, group[0].At)
			return nil
		} else if err != nil {
			return err
		}
		for i, key := range group {
			beat, err := beats[i].Wait(ctx)
			if err != nil {
				return err
			}
			if key.Membership != "" && !isClosed(keys.Worker(key.Membership, layout.WorkerHeartbeat), beat, key.At) {
				open = append(open, key.At)
				continue
			}
			found, err := meter.AddStored(ctx, meter.Keys(keys).Activity(key), records[i], &sum)
			if layout.IsUnreadable(err) {
				open = append(open, key.At)
				continue
			}
			if err != nil {
				return err
			}
			if found {
				tx.Clear(meter.Keys(keys).Activity(key))
				folded++
			}
		}
		if folded > 0 {
			tx.Set(into, layout.Encode(&sum))
		}
		return nil
	})
	for _, at := range open {
		f.open(at)
	}
	return err
}

// isClosed reports whether a worker no longer writes a minute: it is no member any more, or has
// closed the minute by the clock of its last heartbeat. Other clocks don't matter.
func isClosed(key, beat []byte, at int64) bool {
	if beat == nil {
		return true
	}
	var last layout.Heartbeat
	return layout.Decode(key, beat, &last) == nil && meter.MinuteIsClosed(at, time.UnixMilli(last.At))
}

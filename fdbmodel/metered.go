package fdbmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// meteredDay is what a worker has used on a day.
type meteredDay struct {
	use    layout.Metered
	change int64 // counts what was added
	stored int64 // change that the store has
}

// Meter adds what an attempt has used to what the worker has used today, by UTC. The next
// Heartbeat or Leave writes it; until then it is in memory alone.
func (r *Registration) Meter(use layout.Metered) {
	day := layout.Day(r.cluster.clock.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.metered[day]
	if d == nil {
		d = &meteredDay{}
		if r.metered == nil {
			r.metered = map[string]*meteredDay{}
		}
		r.metered[day] = d
	}
	d.use.Add(&use)
	d.change++
}

// meteredWrite is what the store is to have of one day.
type meteredWrite struct {
	day        string
	key, value []byte
	change     int64
}

// unwritten returns what the store does not have yet: nothing for a worker that has used
// nothing since, and mostly one day.
func (r *Registration) unwritten() (writes []meteredWrite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for day, d := range r.metered {
		if d.change != d.stored {
			key := r.cluster.keys.Metered(r.info.MeteredBy(day))
			writes = append(writes, meteredWrite{day, key, layout.Encode(&d.use), d.change})
		}
	}
	return writes
}

// write sets sums, so that an attempt which follows one that landed changes nothing. The
// conflict keeps the late twin of an attempt from restoring what it has.
func (w *meteredWrite) write(tx kv.Tx) {
	tx.AddReadConflictKey(w.key)
	tx.Set(w.key, w.value)
}

// wrote notes what the store has. Days stay, so that a clock that is set back goes on with
// their sums.
func (r *Registration) wrote(writes []meteredWrite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range writes {
		d := r.metered[writes[i].day]
		d.stored = max(d.stored, writes[i].change)
	}
}

// meterLast writes what the store does not have yet of a worker that leaves. What a worker
// has used that is no member any more is final.
func (r *Registration) meterLast(ctx context.Context, tx kv.Tx, writes []meteredWrite) error {
	if len(writes) == 0 {
		return nil
	}
	alive, err := r.askAlive(tx).Wait(ctx)
	if err != nil || alive == nil {
		return err
	}
	for i := range writes {
		writes[i].write(tx)
	}
	return nil
}

// MaxMeteredDays is the most days that Metered reads.
const MaxMeteredDays = 400

// MeteredUse is what a worker, by a name that survives its restarts, has used on a day.
type MeteredUse struct {
	// Day is of UTC, such as 2026-01-31.
	Day string
	// Kind is layout.MeteredPeer, whose Name is its libp2p peer id, or
	// layout.MeteredWorker.
	Kind, Name string
	layout.Metered
}

// Metered calls fn with what workers have used, from one day to another, both included, by
// day and name. It contains what they had told with their last heartbeats. It reads one page
// of up to 500 keys after the other, each from a snapshot of its own, and returns the first
// error of fn. ErrBadSpec is returned for days that can't be, and for more than
// MaxMeteredDays.
func (c *Cluster) Metered(ctx context.Context, from, to time.Time, fn func(*MeteredUse) error) error {
	first, last := layout.Day(from), layout.Day(to)
	if from, to = from.UTC().Truncate(24*time.Hour), to.UTC().Truncate(24*time.Hour); from.After(to) ||
		to.Sub(from) >= MaxMeteredDays*24*time.Hour {
		return fmt.Errorf("%w: use from %s to %s: give a first day, and a last one less than %d days later",
			layout.ErrBadSpec, first, last, MaxMeteredDays)
	}
	var by layout.MeteredKey
	var one *MeteredUse
	pass := func() error {
		if one == nil {
			return nil
		}
		return fn(one)
	}
	within := kv.Range{Begin: c.keys.MeteredOn(first), End: kv.AfterPrefix(c.keys.MeteredOn(last))}
	err := c.eachMetered(ctx, within, func(key layout.MeteredKey, use *layout.Metered) error {
		if one == nil || !by.SameWorker(key) {
			if err := pass(); err != nil {
				return err
			}
			by, one = key, &MeteredUse{Day: key.Day, Kind: key.Kind, Name: key.Name}
		}
		one.Add(use)
		return nil
	})
	if err != nil {
		return err
	}
	return pass()
}

const meteredPage = 500

// eachMetered calls fn with all records in a range.
func (c *Cluster) eachMetered(ctx context.Context, r kv.Range,
	fn func(layout.MeteredKey, *layout.Metered) error,
) error {
	for {
		var page kv.Page
		err := c.View(ctx, func(tx kv.Attempt) error {
			var err error
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: meteredPage}).Wait(ctx)
			return err
		})
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			var use layout.Metered
			key, err := c.keys.ParseMetered(item.Key)
			if err == nil {
				err = layout.Decode(item.Key, item.Value, &use)
			}
			if err == nil {
				err = fn(key, &use)
			}
			if err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

// meterEnds adds what attempts have used whose ends the store has.
func (r *Registration) meterEnds(completions []Completion, outcomes []Outcome) {
	for i, outcome := range outcomes {
		c := &completions[i]
		if outcome == Lost || c.Result == nil && c.Exception == nil {
			continue
		}
		r.Meter(c.used())
	}
}

// used is what an attempt has used that ended with a result or failed. The call of a bundle
// is no item of its own.
func (c *Completion) used() layout.Metered {
	m := layout.Metered{RunTime: max(c.RunTime, 0)}
	usage := (*layout.Usage)(nil)
	if v := c.Result; v != nil {
		m.Items, m.Out, usage = 1, v.Size, v.Usage
		m.Out += streamSize(v.Stderr, v.StderrRef)
	} else {
		e := c.Exception
		m.Failed, m.Out, usage = 1, int64(len(e.Stdout)), e.Usage
		m.Out += streamSize(e.Stderr, e.StderrRef)
	}
	if usage != nil {
		m.CPU, m.Memory = max(usage.CPUUser+usage.CPUSys, 0), max(usage.Memory, 0)
	}
	m.In = c.Future.argsSize()
	if s := c.Future.Spec; s != nil && s.Bundle {
		m.Items, m.Failed, m.In, m.Out = 0, 0, 0, 0
	}
	return m
}

// argsSize is how many bytes of arguments a future has, those of its argv included.
func (f *ClaimedFuture) argsSize() int64 {
	n := int64(len(f.Inline))
	if f.Spec == nil {
		return n
	}
	if f.Spec.ArgsRef != nil {
		n = f.Spec.ArgsRef.Size
	}
	for _, a := range f.Spec.Argv {
		n += int64(len(a))
	}
	return n
}

func streamSize(inline []byte, ref *layout.ChunkRef) int64 {
	if ref != nil {
		return ref.Size
	}
	return int64(len(inline))
}

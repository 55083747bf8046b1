package fdbmodel

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// How long, and for how many futures, a worker leaves those that failed on it to
// others.
const (
	preferOthers  = 2 * time.Second
	maxLeft       = 4096
	forgetLeft    = time.Minute
	rivalLifetime = 5 * time.Second // how long a worker relies on what it knows of others
	maxRivals     = 64              // others that it knows of
	rivalPage     = 256             // keys of workers that it reads in a shard
)

// rivals is what a worker knows of others, which may do better with a future that
// failed on it. It has the same owner as the scanner.
type rivals struct {
	left     map[layout.ID]leaving // the futures that the worker leaves to others
	others   []Member
	labels   []layout.LabelSet
	lookedAt time.Time
	until    time.Time // when the first of left may be taken
	near     map[layout.WorkerID]neighbour
}

// leaving is since when a worker leaves a future to others, and the notes on it by
// then.
type leaving struct {
	since time.Time
	notes string
}

// elsewhere returns whether this worker passes over a future of the ready index, because it
// put it back a while ago; or another worker should have it, and it has not waited for that
// one for long, since this worker met it: an attempt failed on this one, and another could
// run it that has not failed it; or another one has what it takes. An error of the store
// means no.
func (r *Registration) elsewhere(ctx context.Context) func(*layout.ReadyEntry) bool {
	name := r.name()
	return func(e *layout.ReadyEntry) bool {
		if e.Notes == "" {
			return false
		}
		if until := e.RefusedBy(name); until.After(r.cluster.clock.Now()) {
			r.rivals.leaveUntil(r.cluster.clock.Now(), until)
			return true
		}
		wait, isBetter := preferOthers, r.hasRival
		if !e.HasFailedOn(r.info.ID) {
			var near layout.WorkerID
			near, wait = e.Near()
			if near == "" || near == r.info.ID || e.HasFailedOn(near) {
				return false
			}
			isBetter = r.isNear
		}
		now := r.cluster.clock.Now()
		l, known := r.rivals.left[e.ID]
		if l.notes != e.Notes {
			l, known = leaving{now, e.Notes}, false
		}
		if now.Sub(l.since) >= wait || !known && !r.rivals.mayLeave(now) || !isBetter(ctx, e, now) {
			return false
		}
		r.rivals.left[e.ID] = l
		r.rivals.leaveUntil(now, l.since.Add(wait))
		return true
	}
}

// leaveUntil notes that the worker may take what it leaves to others from a time on.
func (v *rivals) leaveUntil(now, until time.Time) {
	if !v.until.After(now) || until.Before(v.until) {
		v.until = until
	}
}

// LeftUntil returns when the worker should look again for futures that it left to
// others, the zero time if it left none.
func (r *Registration) LeftUntil() time.Time {
	if r.rivals.until.After(r.cluster.clock.Now()) {
		return r.rivals.until
	}
	return time.Time{}
}

// mayLeave reports whether there is room for another future, and makes some.
func (v *rivals) mayLeave(now time.Time) bool {
	if v.left == nil {
		v.left = map[layout.ID]leaving{}
	}
	if len(v.left) >= maxLeft {
		for id, l := range v.left {
			if now.Sub(l.since) >= forgetLeft {
				delete(v.left, id)
			}
		}
	}
	return len(v.left) < maxLeft
}

// hasRival reports whether a worker that has not failed a future could run it, if
// nothing else ran.
func (r *Registration) hasRival(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	v := &r.rivals
	if v.lookedAt.IsZero() || now.Sub(v.lookedAt) >= rivalLifetime {
		others, err := r.cluster.someWorkers(ctx, r.info.ID)
		if err != nil {
			return false
		}
		v.others, v.lookedAt, v.labels = others, now, nil
		for i := range others {
			v.labels = append(v.labels, others[i].LabelSet())
		}
	}
	for i := range v.others {
		m := &v.others[i]
		if !e.HasFailedOn(m.ID) && slices.Contains(m.Queues, e.Class.Queue) && m.Runs(e.Function) &&
			m.FitsClass(&e.Class, v.labels[i]) {
			return true
		}
	}
	return false
}

// someWorkers returns registered workers other than one, a bounded number of them.
func (c *Cluster) someWorkers(ctx context.Context, but layout.WorkerID) ([]Member, error) {
	var others []Member
	err := c.View(ctx, func(tx kv.Attempt) error {
		others = nil
		first := c.random.intn(c.config.Shards)
		for n := range c.config.Shards {
			prefix := c.keys.Shard((first+n)%c.config.Shards, layout.SubWorkers)
			page, err := tx.Snapshot().GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: rivalPage}).Wait(ctx)
			if err != nil {
				return err
			}
			var members []Member
			for _, item := range page.Items {
				if members, err = addMember(members, prefix, item); err != nil {
					return err
				}
			}
			for _, m := range members {
				if m.Alive && m.ID != but && len(others) < maxRivals {
					others = append(others, m)
				}
			}
			if len(others) == maxRivals {
				break
			}
		}
		return nil
	})
	return others, err
}

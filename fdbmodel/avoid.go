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
	preferOthers   = 2 * time.Second
	maxLeft        = 4096
	forgetLeft     = time.Minute
	othersLifetime = 5 * time.Second // how long a worker relies on what it knows of others
	maxOthers      = 64              // others that it knows of
	othersPage     = 256             // keys of workers that it reads in a shard
)

// avoidList has the futures that a worker leaves to others for a while, and what it knows
// of the others. It has the same owner as the scanner.
type avoidList struct {
	left     map[layout.ID]leaving
	others   []Member
	labels   []layout.LabelSet
	lookedAt time.Time
	until    time.Time // when the first of left may be taken
	near     map[layout.WorkerID]neighbour
}

// leaving says since when a worker leaves a future to others, and its notes then.
type leaving struct {
	since time.Time
	notes string
}

// elsewhere returns a function that reports whether this worker passes over a future of the
// ready index. It passes over what it rejected a while ago, and where it defers to others what they did.
// For a bounded time it also leaves a future to another worker: one that can run what failed
// here, or one that has its inputs. An error of the store means no.
func (r *Registration) elsewhere(ctx context.Context, defers func(string) bool) func(*layout.ReadyEntry) bool {
	name := r.name()
	return func(e *layout.ReadyEntry) bool {
		if e.Notes == "" {
			return false
		}
		until := e.RefusedBy(name)
		if last := e.LastRefusal(); defers != nil && last.After(until) && defers(e.Function) {
			until = last
		}
		if until.After(r.cluster.clock.Now()) {
			r.avoided.leaveUntil(r.cluster.clock.Now(), until)
			return true
		}
		wait, isBetter := preferOthers, r.hasOther
		if !e.HasFailedOn(r.info.ID) {
			var near layout.WorkerID
			near, wait = e.Near()
			if near == "" || near == r.info.ID || e.HasFailedOn(near) {
				return false
			}
			isBetter = r.isNear
		}
		now := r.cluster.clock.Now()
		l, known := r.avoided.left[e.ID]
		if l.notes != e.Notes {
			l, known = leaving{now, e.Notes}, false
		}
		if now.Sub(l.since) >= wait || !known && !r.avoided.mayLeave(now) || !isBetter(ctx, e, now) {
			return false
		}
		r.avoided.left[e.ID] = l
		r.avoided.leaveUntil(now, l.since.Add(wait))
		return true
	}
}

// leaveUntil notes that the worker may take what it leaves to others from a time on.
func (v *avoidList) leaveUntil(now, until time.Time) {
	if !v.until.After(now) || until.Before(v.until) {
		v.until = until
	}
}

// LeftUntil returns when the worker should look again for futures that it left to
// others, the zero time if it left none.
func (r *Registration) LeftUntil() time.Time {
	if r.avoided.until.After(r.cluster.clock.Now()) {
		return r.avoided.until
	}
	return time.Time{}
}

// mayLeave reports whether there is room for another future, and makes some.
func (v *avoidList) mayLeave(now time.Time) bool {
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

// hasOther reports whether another worker, on which the future has not failed, could run it
// if it ran nothing else.
func (r *Registration) hasOther(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	v := &r.avoided
	if v.lookedAt.IsZero() || now.Sub(v.lookedAt) >= othersLifetime {
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
			page, err := tx.Snapshot().GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: othersPage}).Wait(ctx)
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
				if m.Alive && m.ID != but && len(others) < maxOthers {
					others = append(others, m)
				}
			}
			if len(others) == maxOthers {
				break
			}
		}
		return nil
	})
	return others, err
}

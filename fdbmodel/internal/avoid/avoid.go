// Package avoid leaves futures to other workers for a while.
package avoid

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/member"
	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// How long, and for how many futures, a worker leaves those that failed on it to
// others.
const (
	PreferOthers = 2 * time.Second
	maxLeft      = 4096
	forgetLeft   = time.Minute
	// Lifetime is how long a worker relies on what it knows of others.
	Lifetime = 5 * time.Second
	// maxNear is how many workers that have inputs of futures a worker remembers.
	maxNear = 256
)

// Model is what a list needs of the model.
type Model interface {
	member.Model
	Now() time.Time
}

// List has the futures that a worker leaves to others for a while, and what it knows
// of the others. It belongs to one goroutine.
type List struct {
	model Model
	intn  func(int) int
	self  layout.WorkerID
	name  string

	left     map[layout.ID]leaving
	others   []member.Member
	labels   []layout.LabelSet
	lookedAt time.Time
	until    time.Time // when the first of left may be taken, until a look answers that
	near     map[layout.WorkerID]neighbour
}

// NewList returns the list of a worker, whose rejections are remembered by name. intn draws a
// number below its argument.
func NewList(m Model, intn func(int) int, worker layout.WorkerID, name string) List {
	return List{model: m, intn: intn, self: worker, name: name}
}

// leaving says since when a worker leaves a future to others, and its notes then.
type leaving struct {
	since time.Time
	notes string
}

// neighbour is what a worker knows of another worker that has inputs of futures.
type neighbour struct {
	info     *layout.WorkerInfo // nil if it is not registered
	lookedAt time.Time
}

// Elsewhere returns a function that reports whether this worker passes over a future of the
// ready index. It passes over what it rejected a while ago, and where it defers to others what they did.
// For a bounded time it also leaves a future to another worker: one that can run what failed
// here, or one that has its inputs. An error of the store means no. If the look that begins answers
// Until, whose time has come, only what it leaves counts from then on.
func (v *List) Elsewhere(ctx context.Context, defers func(string) bool, answers bool) func(*layout.ReadyEntry) bool {
	if answers && !v.until.After(v.model.Now()) {
		v.until = time.Time{}
	}
	return func(e *layout.ReadyEntry) bool {
		if e.Notes == "" {
			return false
		}
		until := e.RefusedBy(v.name)
		if last := e.LastRefusal(); defers != nil && last.After(until) && defers(e.Function) {
			until = last
		}
		if until.After(v.model.Now()) {
			v.leaveUntil(until)
			return true
		}
		wait, isBetter := PreferOthers, v.hasOther
		if !e.HasFailedOn(v.self) {
			var near layout.WorkerID
			near, wait = e.Near()
			if near == "" || near == v.self || e.HasFailedOn(near) {
				return false
			}
			isBetter = v.isNear
		}
		now := v.model.Now()
		l, known := v.left[e.ID]
		if l.notes != e.Notes {
			l, known = leaving{now, e.Notes}, false
		}
		if now.Sub(l.since) >= wait || !known && !v.mayLeave(now) || !isBetter(ctx, e, now) {
			return false
		}
		v.left[e.ID] = l
		v.leaveUntil(l.since.Add(wait))
		return true
	}
}

// leaveUntil notes that the worker may take what it leaves to others from a time on.
func (v *List) leaveUntil(until time.Time) {
	if v.until.IsZero() || until.Before(v.until) {
		v.until = until
	}
}

// Until returns when the worker should look again for futures that it left to others, the zero time if
// it left none. That may have come meanwhile.
func (v *List) Until() time.Time { return v.until }

// Taken forgets a future that the worker has taken.
func (v *List) Taken(id layout.ID) { delete(v.left, id) }

// mayLeave reports whether there is room for another future, and makes some.
func (v *List) mayLeave(now time.Time) bool {
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
func (v *List) hasOther(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	if v.lookedAt.IsZero() || now.Sub(v.lookedAt) >= Lifetime {
		others, err := member.Some(ctx, v.model, v.intn(v.model.Config().Shards), v.self)
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

// isNear reports whether the worker that an entry is left to is registered.
func (v *List) isNear(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	id, _ := e.Near()
	n, known := v.near[id]
	if !known || now.Sub(n.lookedAt) >= Lifetime {
		n = neighbour{lookedAt: now}
		err := v.model.View(ctx, func(tx kv.Attempt) (err error) {
			n.info, err = nearby.NewSearch(tx.Snapshot(), v.model.Keys()).Worker(ctx, id)
			return err
		})
		if err != nil {
			return false
		}
		if v.near == nil || len(v.near) >= maxNear {
			v.near = map[layout.WorkerID]neighbour{}
		}
		v.near[id] = n
	}
	return n.info != nil
}

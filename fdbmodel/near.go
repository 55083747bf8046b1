package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// haveObjects reports whether results of inputs of a future are objects, or are to
// be. All of those were asked for. Defaults to the inputs in its spec.
func (in *inputRows) haveObjects(row *layout.Row, inputs ...layout.ID) bool {
	if len(inputs) == 0 {
		inputs = layout.UnpackIDs(row.Spec.Inputs)
	}
	return slices.ContainsFunc(inputs, func(id layout.ID) bool {
		input := in.rows[id]
		return input != nil && (input.Spec.AsObject || input.Object() != "")
	})
}

// addNear makes the object that a future is to be near an input of it.
func (s *Submission) addNear() error {
	near := s.Spec.Near
	if near.IsZero() || slices.Contains(s.Inputs, near) {
		return nil
	}
	if s.Spec.Codec == layout.CodecInputs {
		return fmt.Errorf("%w: codec inputs: the object that it is to be near, %s, must be one of its inputs",
			layout.ErrBadSpec, near)
	}
	s.Inputs = append(slices.Clip(s.Inputs), near)
	return nil
}

// ready unblocks a future. If it takes objects, readyNear does so.
func (s *settlement) ready(row *layout.Row) {
	if row.Blocked.Objects {
		s.near = append(s.near, row)
		return
	}
	s.apply(row, Event{Kind: EventUnblock})
}

// readyNear unblocks the futures that take objects.
func (s *settlement) readyNear(ctx context.Context) error {
	tx := s.tx.Snapshot()
	search := nearby.NewSearch(tx, s.cluster.keys)
	all := make([]nearby.Future, len(s.near))
	for i, row := range s.near {
		inputs := []layout.ID{row.Spec.Near}
		if row.Spec.Near.IsZero() {
			var err error
			if inputs, err = s.cluster.someInputs(ctx, tx, row, 0, nearby.MaxWeighed); err != nil {
				return err
			}
		}
		all[i] = search.Ask(row, inputs...)
	}
	for i := range all {
		f := &all[i]
		if f.Row.Spec.MustBeNear {
			if err := s.bind(ctx, f); err != nil {
				return err
			}
			continue
		}
		event, err := Event{Kind: EventUnblock}, error(nil)
		if event.Near, event.NearWait, err = f.Prefer(ctx); err != nil {
			return err
		}
		s.apply(f.Row, event)
	}
	return nil
}

// bind unblocks a future that must be near an object: it is assigned to a worker that
// has it. If none is left, the loss is reported after the commit, and the edges of the
// future are settled again. The transaction conflicts with the death of the worker.
func (s *settlement) bind(ctx context.Context, f *nearby.Future) error {
	near, err := f.Near(ctx)
	if err != nil && !layout.IsUnreadable(err) {
		return err
	}
	row, event := *f.Row, Event{Kind: EventUnblock}
	switch due := row.Attempts.Due > layout.Millis(s.cluster.clock.Now()); {
	case due:
	case err != nil:
		s.linkLater(&row, err)
		return nil
	case near.Spec == nil || near.State() != layout.Realized:
		s.linkAgain(&row)
		return nil
	case near.Object() != "":
		alive, able, err := f.Holders(ctx, near.Object())
		if layout.IsUnreadable(err) {
			s.linkLater(&row, err)
			return nil
		}
		if err != nil {
			return err
		}
		if len(alive) == 0 {
			s.lost = append(s.lost, lostNear{near, row.ID})
			s.linkAgain(&row)
			return nil
		}
		if event.Displaced = len(able) == 0; event.Displaced {
			break
		}
		event.Near = able[int(row.ID[len(row.ID)-2])%len(able)] // they share the work
		s.tx.AddReadConflictKey(s.cluster.keys.Worker(event.Near, layout.WorkerAlive))
		s.w.callWorker(event.Near)
		s.called = append(s.called, event.Near)
	}
	s.apply(&row, event)
	return nil
}

// linkAgain has the edges of a blocked future settled from the first on.
func (s *settlement) linkAgain(row *layout.Row) {
	row.Blocked = &layout.BlockedRecord{Objects: true}
	s.w.places.Put(row)
	s.w.edges.Mark(row.ID, &layout.SettlingRecord{})
}

// linkLater has the edges of a blocked future settled again by a janitor, not at once:
// something that it needs can't be read.
func (s *settlement) linkLater(row *layout.Row, err error) {
	row.Blocked = &layout.BlockedRecord{Objects: true}
	s.w.places.Put(row)
	s.tx.Set(s.cluster.keys.Settling(row.ID), layout.Encode(&layout.SettlingRecord{}))
	s.unreadable = append(s.unreadable, fmt.Errorf("future %s waits for what can't be read: future %s, which it must be "+
		"near: %w", row.ID, row.Spec.Near, err))
}

// lostNear is an object that no worker has, and a future that must be near it.
type lostNear struct {
	layout.Row
	user layout.ID
}

// followNear does what is to be done after a settlement that has committed: it calls
// workers, and reports the objects that futures must be near and no worker has. A
// future whose object could not be reported is left to a janitor: it returns what of
// left is to be settled at once.
func (c *Cluster) followNear(ctx context.Context, s *settlement, left []index.Mark) []index.Mark {
	for _, w := range s.called {
		c.hub.wakeWorker(w)
	}
	for i := range s.lost {
		lost := &s.lost[i]
		_, err := c.Change(ctx, kv.Options{Tag: "futura-lose"}, func(_ kv.Attempt, w *WriteSet) error {
			_, err := w.Lose(ctx, lost.ID, lost.Result.Token, nil)
			return err
		})
		if err == nil || errors.Is(err, ErrNotFound) {
			continue
		}
		left = slices.DeleteFunc(left, func(m index.Mark) bool { return m.ID == lost.user })
		if errors.Is(err, ErrUnreachable) {
			continue // the worker that keeps it may come back
		}
		s.unreadable = append(s.unreadable, fmt.Errorf("future %s must be near future %s, whose loss can't be reported: %w",
			lost.user, lost.ID, err))
	}
	return left
}

// maxNeighbours is how many workers another one remembers that have inputs of futures.
const maxNeighbours = 256

// neighbour is what a worker knows of one that has inputs of futures.
type neighbour struct {
	info     *layout.WorkerInfo // nil if it is not registered
	lookedAt time.Time
}

// isNear reports whether the worker that an entry is left to is registered.
func (r *Registration) isNear(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	id, _ := e.Near()
	v := &r.rivals
	n, known := v.near[id]
	if !known || now.Sub(n.lookedAt) >= rivalLifetime {
		n = neighbour{lookedAt: now}
		err := r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
			n.info, err = nearby.NewSearch(tx.Snapshot(), r.cluster.keys).Worker(ctx, id)
			return err
		})
		if err != nil {
			return false
		}
		if v.near == nil || len(v.near) >= maxNeighbours {
			v.near = map[layout.WorkerID]neighbour{}
		}
		v.near[id] = n
	}
	return n.info != nil
}

// wakeNear wakes the idle workers that futures are left to. Each of them stands for
// one future of its kind.
func (c *Cluster) wakeNear(ctx context.Context, version kv.Version, placed demands) {
	var far []demand
	for d, n := range placed {
		switch {
		case d.near == "" || n <= 0:
		case c.hub.wakeNear(d):
			placed[d]--
		case len(far) < wakeLimit:
			far = append(far, d)
		}
	}
	if len(far) == 0 {
		return
	}
	tx := c.db.Begin(kv.Options{Tag: "futura-wake"})
	defer tx.Cancel()
	if version != kv.NoVersion {
		tx.SetReadVersion(version)
	}
	woken := 0
	for _, d := range far {
		key := c.keys.Idle(d.queue, d.near)
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err != nil {
			return
		}
		var idle layout.IdleRecord
		if value == nil || layout.Decode(key, value, &idle) != nil || !fitsIdle(&idle, d) {
			continue
		}
		wake := layout.EncodeStamped(&layout.Wake{Shard: d.shard + 1})
		tx.SetVersionstampedValue(c.keys.Worker(d.near, layout.WorkerWake), wake, layout.StampOffset)
		tx.Clear(key)
		placed[d]--
		woken++
	}
	if woken > 0 {
		_, _ = tx.Commit(ctx) // a hint, as in wakeOtherProcesses
	}
}

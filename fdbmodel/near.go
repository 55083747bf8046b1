package fdbmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Limits of the search for the worker that a future is best left to: the one that
// has most bytes of the objects that it takes.
const (
	maxWeighed = 64 // inputs that are looked at
	// nearRate is at how many bytes a second an object is assumed to go from one
	// worker to another. Others leave a future to the worker that has its inputs for
	// as long as it would take them to get those, and for maxNearWait at most: who
	// waits so long loses no more than half of the time. Below minNearWait it is not
	// worth a look.
	nearRate    = 100 << 20
	minNearWait = time.Millisecond
	maxNearWait = 2 * time.Second
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

// approach looks for the worker that a future is best left to.
type approach struct {
	row    *layout.Row
	near   read.Pending // what it must be near
	copies []kv.Pending[kv.Page]
	infos  *memberInfos
}

// readyNear unblocks the futures that take objects.
func (s *settlement) readyNear(ctx context.Context) error {
	tx, keys := s.tx.Snapshot(), s.cluster.keys
	infos := memberInfos{cluster: s.cluster, tx: tx}
	all := make([]approach, len(s.near))
	for i, row := range s.near {
		a := approach{row: row, infos: &infos}
		inputs := []layout.ID{row.Spec.Near}
		if row.Spec.Near.IsZero() {
			var err error
			if inputs, err = s.cluster.someInputs(ctx, tx, row, 0, maxWeighed); err != nil {
				return err
			}
		}
		if row.Spec.MustBeNear {
			a.near = read.Record(tx, keys, row.Spec.Near)
		}
		for _, id := range inputs {
			a.copies = append(a.copies, tx.GetRange(kv.Prefix(keys.CopiesOf(id)), kv.RangeOptions{Limit: maxCopies}))
		}
		all[i] = a
	}
	for i := range all {
		a := &all[i]
		if a.row.Spec.MustBeNear {
			if err := s.bind(ctx, a); err != nil {
				return err
			}
			continue
		}
		event, err := a.prefer(ctx)
		if err != nil {
			return err
		}
		s.apply(a.row, event)
	}
	return nil
}

// prefer returns how a future is unblocked that may run anywhere.
func (a *approach) prefer(ctx context.Context) (Event, error) {
	event := Event{Kind: EventUnblock}
	held, err := weigh(ctx, a.copies)
	if err != nil {
		return event, err
	}
	for _, h := range held {
		wait := min(maxNearWait, time.Duration(float64(h.bytes)/nearRate*float64(time.Second)))
		if !a.row.Spec.Near.IsZero() {
			wait = maxNearWait // it was asked for
		}
		if wait < minNearWait {
			break
		}
		info, err := a.infos.get(ctx, h.worker)
		if err != nil {
			return event, err
		}
		if info != nil && info.CanRun(a.row.Needs()) == nil {
			event.Near, event.NearWait = h.worker, wait.Truncate(time.Millisecond)
			break
		}
	}
	return event, nil
}

// bind unblocks a future that must be near an object: it is assigned to a worker that
// has it. If none is left, the loss is reported after the commit, and the edges of the
// future are settled again. The transaction conflicts with the death of the worker.
func (s *settlement) bind(ctx context.Context, a *approach) error {
	near, _, err := a.near.Wait(ctx)
	if err != nil && !layout.IsUnreadable(err) {
		return err
	}
	row, event := *a.row, Event{Kind: EventUnblock}
	switch due := row.Attempts.Due > layout.Millis(s.cluster.clock.Now()); {
	case due:
	case err != nil:
		s.linkLater(&row, err)
		return nil
	case near.Spec == nil || near.State() != layout.Realized:
		s.linkAgain(&row)
		return nil
	case near.Object() != "":
		alive, able, err := a.holders(ctx, near.Object())
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

// holders returns the registered workers that have an object, and those of them that
// could run the future. If a copy can't be read, and none can that is of use, it returns
// the error: another worker may have it.
func (a *approach) holders(ctx context.Context, object string) (alive, able []layout.WorkerID, err error) {
	page, err := a.copies[0].Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	var unreadable error
	for _, item := range page.Items {
		var record layout.CopyRecord
		if err := layout.Decode(item.Key, item.Value, &record); err != nil {
			unreadable = err
			continue
		}
		if record.Object != object || slices.Contains(alive, record.Worker) {
			continue
		}
		info, err := a.infos.get(ctx, record.Worker)
		if err != nil {
			return nil, nil, err
		}
		if info == nil {
			continue
		}
		alive = append(alive, record.Worker)
		if info.CanRun(a.row.Spec.Needing(&layout.Attempts{RAM: a.row.Attempts.RAM})) == nil {
			able = append(able, record.Worker)
		}
	}
	if len(alive) == 0 {
		return nil, nil, unreadable
	}
	return alive, able, nil
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
		_, err := c.ReportLost(ctx, lost.ID, lost.Result.Token, nil)
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

// holding is how many bytes of some objects a worker has.
type holding struct {
	worker layout.WorkerID
	bytes  int64
}

// weigh returns the workers that have copies, the one with the most bytes first.
func weigh(ctx context.Context, copies []kv.Pending[kv.Page]) ([]holding, error) {
	var held []holding
	for _, p := range copies {
		page, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var record layout.CopyRecord
			if layout.Decode(item.Key, item.Value, &record) != nil {
				continue // an audit reports it
			}
			at := slices.IndexFunc(held, func(h holding) bool { return h.worker == record.Worker })
			if at < 0 {
				at, held = len(held), append(held, holding{worker: record.Worker})
			}
			held[at].bytes += record.Size
		}
	}
	slices.SortFunc(held, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.worker, b.worker))
	})
	return held, nil
}

// memberInfos are infos of registered workers, each read once.
type memberInfos struct {
	cluster *Cluster
	tx      kv.Reader
	known   map[layout.WorkerID]*layout.WorkerInfo
}

// get returns the info of a worker, nil if it is not registered.
func (m *memberInfos) get(ctx context.Context, id layout.WorkerID) (*layout.WorkerInfo, error) {
	if info, known := m.known[id]; known {
		return info, nil
	}
	key := m.cluster.keys.Worker(id, layout.WorkerAlive)
	value, err := m.tx.Get(key).Wait(ctx)
	if err != nil {
		return nil, err
	}
	var info *layout.WorkerInfo
	if value != nil {
		info = &layout.WorkerInfo{}
		if layout.Decode(key, value, info) != nil {
			info = &layout.WorkerInfo{} // of a newer version: it is there, and runs what it knows
		}
	}
	if m.known == nil {
		m.known = map[layout.WorkerID]*layout.WorkerInfo{}
	}
	m.known[id] = info
	return info, nil
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
			infos := memberInfos{cluster: r.cluster, tx: tx.Snapshot()}
			n.info, err = infos.get(ctx, id)
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

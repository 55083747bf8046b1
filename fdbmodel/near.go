package fdbmodel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
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
	tx, asked := s.tx.Snapshot(), make([][]kv.Pending[kv.Page], len(s.near))
	for i, row := range s.near {
		inputs, err := s.cluster.someInputs(ctx, tx, row, 0, maxWeighed)
		if err != nil {
			return err
		}
		for _, id := range inputs {
			asked[i] = append(asked[i], tx.GetRange(kv.Prefix(s.cluster.keys.CopiesOf(id)), kv.RangeOptions{Limit: maxCopies}))
		}
	}
	infos := memberInfos{cluster: s.cluster, tx: tx}
	for i, row := range s.near {
		held, err := weigh(ctx, asked[i])
		if err != nil {
			return err
		}
		event := Event{Kind: EventUnblock}
		for _, h := range held {
			wait := min(maxNearWait, time.Duration(float64(h.bytes)/nearRate*float64(time.Second)))
			if wait < minNearWait {
				break
			}
			info, err := infos.get(ctx, h.worker)
			if err != nil {
				return err
			}
			if info != nil && info.CanRun(row.Needs()) == nil {
				event.Near, event.NearWait = h.worker, wait.Truncate(time.Millisecond)
				break
			}
		}
		s.apply(row, event)
	}
	return nil
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

// get returns the info of a worker, nil if it is not registered or can't be read.
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
			info = nil
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

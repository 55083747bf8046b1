package fdbmodel

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

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

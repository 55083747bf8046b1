package fdbmodel

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxNeighbours is how many workers that have inputs of futures a worker remembers.
const maxNeighbours = 256

// neighbour is what a worker knows of another worker that has inputs of futures.
type neighbour struct {
	info     *layout.WorkerInfo // nil if it is not registered
	lookedAt time.Time
}

// isNear reports whether the worker that an entry is left to is registered.
func (r *Registration) isNear(ctx context.Context, e *layout.ReadyEntry, now time.Time) bool {
	id, _ := e.Near()
	v := &r.avoided
	n, known := v.near[id]
	if !known || now.Sub(n.lookedAt) >= othersLifetime {
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

// Package schedule submits futures at the times of a timetable: each time once, whichever
// process looks, and whatever becomes of a commit.
package schedule

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// Schedules are the schedules of one cluster. Its methods may be called from many
// goroutines.
type Schedules struct {
	cluster *fdbmodel.Cluster
	keys    Keys
}

// Of returns the schedules of a cluster.
func Of(c *fdbmodel.Cluster) *Schedules { return &Schedules{cluster: c, keys: Keys(c.Keys())} }

func (l *Schedules) transact(ctx context.Context, fn func(kv.Attempt) error) (kv.Result, error) {
	return l.cluster.Transact(ctx, kv.Options{Tag: "futura-schedule"}, fn)
}

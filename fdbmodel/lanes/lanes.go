// Package lanes has the settings of lanes and what people see of them, and admits the futures
// that a rate, or former settings, have held back. A submit and an end of a future admit by
// themselves.
package lanes

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Lanes are the lanes of one cluster. Its methods may be called from many goroutines.
type Lanes struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
	due     shards.Cursor // of AdmitDue
}

// Of returns the lanes of a cluster.
func Of(c *fdbmodel.Cluster) *Lanes {
	type key struct{}
	return c.Room(key{}, func() any { return &Lanes{cluster: c, keys: c.Keys()} }).(*Lanes)
}

func options() kv.Options { return kv.Options{Tag: "futura-lanes"} }

// Pause keeps a lane from admitting futures, or lets it go on. It returns ErrBadName, and
// ErrNotFound for a lane of a kind that was not set. An unknown commit is retried and
// harmless.
func (l *Lanes) Pause(ctx context.Context, lane layout.Lane, paused bool) error {
	if err := lane.Check(); err != nil {
		return err
	}
	_, err := l.cluster.Change(ctx, options(), func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		value, err := tx.Get(l.keys.LaneKind(lane.Kind)).Wait(ctx)
		if err == nil && value == nil {
			err = unknownKind(lane.Kind)
		}
		w.Lanes().Of(lane).Pause = &paused
		return err
	})
	return err
}

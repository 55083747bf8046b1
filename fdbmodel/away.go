package fdbmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// LeaveCopies says that the worker, which is leaving, keeps its copies of the results of
// futures in its directory: until that time readers wait for the next process with the
// directory, and report no loss. Pass at most a few hundred ids. Where it has no copy
// nothing changes. An unknown commit is retried and harmless.
func (r *Registration) LeaveCopies(ctx context.Context, ids []layout.ID, until time.Time) error {
	c := r.cluster
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-leave"}, func(tx kv.Attempt) error {
		for _, id := range ids {
			copies, err := c.copiesIn(ctx, tx, id)
			if err != nil {
				return err
			}
			for i := range copies {
				if held := &copies[i]; held.Worker == r.info.ID {
					held.Away = layout.Millis(until)
					tx.Set(held.key, layout.Encode(&held.CopyRecord))
				}
			}
		}
		return nil
	})
	return err
}

// awaited is for how long a worker that has left may come back with a copy.
func (held *Copy) awaited(now time.Time) time.Duration {
	if held.Alive {
		return 0
	}
	return max(0, time.UnixMilli(held.Away).Sub(now))
}

// unreachable is the error of a copy that is awaited.
func (held *Copy) unreachable(now time.Time) error {
	return fmt.Errorf("%w: worker %s stopped and keeps it in its directory; start a worker with that directory "+
		"within %v, or it counts as lost", ErrUnreachable, held.Worker, held.awaited(now).Round(time.Second))
}

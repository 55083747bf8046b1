package fdbmodel

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// opening names the opening of the store that the cluster works on, empty if
// openings don't matter.
func (c *Cluster) opening() string {
	return kv.TraitsOf(c.db).Opening
}

// connection names the connection through which the store is reached, empty if
// there is none.
func (c *Cluster) connection() string {
	return kv.TraitsOf(c.db).Connection
}

// ownsOpening reports whether this process has the store open and so knows the
// present opening.
func (c *Cluster) ownsOpening() bool {
	return kv.TraitsOf(c.db).OwnOpening() != ""
}

// reapEarlierOpenings reaps the workers of the process that had the store open
// before: it has ended. Those that reached the store through a connection may
// live on, and connect again. A janitor sees their heartbeats, or none.
func (c *Cluster) reapEarlierOpenings(ctx context.Context) error {
	if !c.ownsOpening() {
		return nil
	}
	c.openingMu.Lock()
	defer c.openingMu.Unlock()
	if c.openingDone {
		return nil
	}
	members, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	present := c.opening()
	for _, m := range members {
		if m.Alive && (m.Opening == present || m.Connection != "") {
			continue
		}
		if m.Alive {
			if _, err := c.DeclareDead(ctx, m.ID, m.Beat); err != nil {
				return err
			}
		}
		if _, err := c.ReapClaims(ctx, m.ID); err != nil {
			return err
		}
	}
	c.openingDone = true
	return nil
}

// ForceReap reaps a worker that the caller knows to be dead, even if its heartbeat still
// changed: its futures go back to the pool, or fail, as ReapClaims says. A worker that lives
// on finds that it was reaped, and can change nothing. It returns how many futures the
// worker held, 0 for an unknown worker. An unknown commit is retried
// and harmless.
func (c *Cluster) ForceReap(ctx context.Context, worker layout.WorkerID) (int, error) {
	was := false
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		found, err := c.unregister(ctx, tx, worker)
		was = found || was && tx.MaybeCommitted
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("unregister worker %s: %w", worker, err)
	}
	if was {
		c.deaths.Add(1)
	}
	return c.ReapClaims(ctx, worker)
}

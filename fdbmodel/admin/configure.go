// Package admin is what operators ask of a whole cluster, and change of it.
package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Configure changes the cluster's config: change receives the present one, may
// be called more than once, and must do the same each time. It returns the
// resulting config.
//
// Processes, including this one, obey the config that they opened the cluster
// with: a new retention takes effect when they are restarted. Workers and
// sessions must agree on heartbeat and dead-after time, so changing these
// returns ErrLive while some, or the writers of other signs of life, are alive,
// which takes the dead-after time to find out. It returns ErrBadConfig for an invalid config,
// and for a different number of shards, which all keys depend on. An unknown
// commit is retried and harmless.
func Configure(ctx context.Context, c *fdbmodel.Cluster, change func(*layout.Config), others ...SignsOfLife,
) (layout.Config, error) {
	for isQuiet := false; ; {
		before, now, err := configure(ctx, c, change, isQuiet)
		if !errors.Is(err, fdbmodel.ErrLive) {
			return now, err
		}
		if err := requireQuiet(ctx, c, before.DeadAfter, others); err != nil {
			return before, err
		}
		isQuiet = true
	}
}

// configure returns fdbmodel.ErrLive for a change that needs the cluster to be quiet, unless it is.
func configure(ctx context.Context, c *fdbmodel.Cluster, change func(*layout.Config), isQuiet bool,
) (before, now layout.Config, err error) {
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-configure"}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.Keys().Config()).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("cluster %q: %w in this store", c.Name(), fdbmodel.ErrNotFound)
		}
		now = layout.Config{}
		if err := layout.Decode(c.Keys().Config(), value, &now); err != nil {
			return err
		}
		before = now
		change(&now)
		if now.Format != before.Format || now.Shards != before.Shards {
			return fmt.Errorf("%w: format %d and %d shards stay as they are", layout.ErrBadConfig,
				before.Format, before.Shards)
		}
		if err := now.Validate(); err != nil {
			return err
		}
		if !isQuiet && (now.Heartbeat != before.Heartbeat || now.DeadAfter != before.DeadAfter) {
			return fdbmodel.ErrLive
		}
		tx.Set(c.Keys().Config(), layout.Encode(&now))
		return nil
	})
	return before, now, err
}

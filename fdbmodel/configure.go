package fdbmodel

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Configure changes the cluster's config: change is given the present one, may
// be called more than once, and must do the same each time. It returns the config
// as it is then.
//
// Processes obey the config that they opened the cluster with, this one too: a
// new retention counts where they are started again. Workers and sessions must
// agree on heartbeat and dead-after time, so a change of these is ErrLive while
// some are alive, which takes the dead-after time to find out. It returns
// ErrBadSpec for a config that can't be, and for another number of shards, which
// all keys depend on. An unknown commit is retried and harmless.
func (c *Cluster) Configure(ctx context.Context, change func(*Config)) (Config, error) {
	wanted := c.config
	change(&wanted)
	if wanted.Heartbeat != c.config.Heartbeat || wanted.DeadAfter != c.config.DeadAfter {
		if err := c.requireQuiet(ctx); err != nil {
			return c.config, err
		}
	}
	var now Config
	_, err := c.transact(ctx, kv.Options{Tag: "futura-configure"}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.keys.config()).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("cluster %q: %w in this store", c.name, ErrNotFound)
		}
		now = Config{}
		if err := decodeRecord(c.keys.config(), value, &now); err != nil {
			return err
		}
		before := now
		change(&now)
		if now.Format != before.Format || now.Shards != before.Shards {
			return fmt.Errorf("%w: format %d and %d shards stay as they are", ErrBadSpec,
				before.Format, before.Shards)
		}
		if err := now.validate(); err != nil {
			return err
		}
		encoded, err := encodeRecord(now)
		if err == nil {
			tx.Set(c.keys.config(), encoded)
		}
		return err
	})
	return now, err
}

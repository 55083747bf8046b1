package fdbmodel

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := openMemory(t)
	c, err := Open(ctx, db, "c", Options{Config: Config{Heartbeat: time.Second / 2, DeadAfter: 2 * time.Second}})
	require.NoError(t, err)
	before := c.Config()
	_, err = c.Configure(ctx, func(c *Config) { c.Heartbeat, c.DeadAfter = 5*time.Second, 15*time.Second })
	require.NoError(t, err)
	now, err := c.Configure(ctx, func(c *Config) { c.Retention = time.Hour })
	require.NoError(t, err)
	require.Equal(t, before, c.Config(), "this process goes on as it began")
	again, err := Open(ctx, db, "c", Options{})
	require.NoError(t, err)
	require.Equal(t, now, again.Config())
	require.Equal(t, Config{
		Format: keyspaceFormat, Shards: defaultShards, Heartbeat: 5 * time.Second, DeadAfter: 15 * time.Second,
		Retention: time.Hour,
	}, now)
	for _, change := range []func(*Config){
		func(c *Config) { c.Shards = 32 }, func(c *Config) { c.Format = 0 }, func(c *Config) { c.Retention = -1 },
		func(c *Config) { c.Heartbeat = c.DeadAfter },
	} {
		_, err := again.Configure(ctx, change)
		require.ErrorIs(t, err, ErrBadSpec)
	}
	require.NoError(t, Wipe(ctx, db, "c"))
	_, err = again.Configure(ctx, func(*Config) {})
	require.ErrorIs(t, err, ErrNotFound)
}

// TestConfigureOfTheLiving refuses to change what living workers must agree on.
func TestConfigureOfTheLiving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	virtual := p.c.clock.(*clock.Virtual)
	shared, err := Open(ctx, struct{ kv.Database }{p.db}, "check", Options{Clock: virtual})
	require.NoError(t, err)
	configure := func(during func()) error {
		done := make(chan error)
		go func() {
			_, err := shared.Configure(ctx, func(c *Config) { c.DeadAfter *= 2 })
			done <- err
		}()
		for {
			if due, waits := virtual.Next(); waits && due.After(virtual.Now()) {
				break
			}
			runtime.Gosched()
		}
		during()
		virtual.Advance(shared.Config().DeadAfter)
		return <-done
	}
	require.ErrorIs(t, configure(func() {
		_, err := p.worker.Heartbeat(ctx, Resources{Slots: 1}, 1)
		require.NoError(t, err)
	}), ErrLive)
	require.NoError(t, configure(func() {}), "who stands still is dead")
	_, err = shared.Configure(ctx, func(c *Config) { c.Retention = time.Hour })
	require.NoError(t, err, "the retention is the janitor's alone")
}

package admin_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/clock"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := modeltest.OpenMemory(t)
	c, err := fdbmodel.Open(ctx, db, "c", fdbmodel.Options{Config: layout.Config{Heartbeat: time.Second / 2,
		DeadAfter: 2 * time.Second}})
	require.NoError(t, err)
	before := c.Config()
	_, err = admin.Configure(ctx, c, func(c *layout.Config) { c.Heartbeat, c.DeadAfter = 5*time.Second, 15*time.Second })
	require.NoError(t, err)
	now, err := admin.Configure(ctx, c, func(c *layout.Config) { c.Retention = time.Hour })
	require.NoError(t, err)
	require.Equal(t, before, c.Config(), "this process goes on as it began")
	again, err := fdbmodel.Open(ctx, db, "c", fdbmodel.Options{})
	require.NoError(t, err)
	require.Equal(t, now, again.Config())
	require.Equal(t, layout.Config{
		Format: layout.KeyspaceFormat, Shards: 1, Heartbeat: 5 * time.Second, DeadAfter: 15 * time.Second,
		Retention: time.Hour,
	}, now)
	for _, change := range []func(*layout.Config){
		func(c *layout.Config) { c.Shards = 32 }, func(c *layout.Config) { c.Format = 0 },
		func(c *layout.Config) { c.Retention = -1 },
		func(c *layout.Config) { c.Heartbeat = c.DeadAfter },
	} {
		_, err := admin.Configure(ctx, again, change)
		require.ErrorIs(t, err, layout.ErrBadConfig)
	}
	require.NoError(t, fdbmodel.Wipe(ctx, db, "c"))
	_, err = admin.Configure(ctx, again, func(*layout.Config) {})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestConfigureOfTheLiving checks that settings which live workers must agree
// on can't be changed.
func TestConfigureOfTheLiving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	virtual := p.C.Clock().(*clock.Virtual)
	shared, err := fdbmodel.Open(ctx, struct{ kv.Database }{p.DB}, "check", fdbmodel.Options{Clock: virtual})
	require.NoError(t, err)
	configure := func(during func()) error {
		done := make(chan error)
		go func() {
			_, err := admin.Configure(ctx, shared, func(c *layout.Config) { c.DeadAfter *= 2 })
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
		_, err := p.Worker.Heartbeat(ctx, layout.Heartbeat{Free: layout.Resources{Slots: 1}, Running: 1})
		require.NoError(t, err)
	}), fdbmodel.ErrLive)
	require.NoError(t, configure(func() {}), "a worker whose heartbeat is unchanged is dead")
	_, err = admin.Configure(ctx, shared, func(c *layout.Config) { c.Retention = time.Hour })
	require.NoError(t, err, "the retention is the janitor's alone")
	asked := errors.New("who else lives is asked")
	_, err = admin.Configure(ctx, shared, func(c *layout.Config) { c.DeadAfter = shared.Config().DeadAfter },
		func(context.Context) (map[string][]byte, error) { return nil, asked })
	require.ErrorIs(t, err, asked, "it is what this process began with, and not what the cluster has")
}

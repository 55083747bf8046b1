package remote

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/internal/clock"
)

// socketPath returns a path that is short enough for a socket.
func socketPath(t testing.TB) string {
	dir, err := os.MkdirTemp("", "fr")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "store.sock")
}

// serve serves db at a socket until the end of the test, or until stop.
func serve(t testing.TB, db kv.Database, o ServerOptions) (at Address, stop func()) {
	path := socketPath(t)
	stop = serveAt(t, path, db, o)
	t.Cleanup(stop)
	return Address{Network: "unix", Target: path}, stop
}

// serveAt serves db until stop. Without a logger, no client may be cut off.
func serveAt(t testing.TB, path string, db kv.Database, o ServerOptions) (stop func()) {
	warnings := &strings.Builder{}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	l, err := ListenUnix(path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, db, o) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
		require.NotContains(t, warnings.String(), "a client was cut off")
	})
}

// dial opens a client until the end of the test.
func dial(t testing.TB, at Address) *Database {
	db, err := Open(t.Context(), at, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// stores opens served stores for the conformance suite.
type stores struct {
	onDisk bool

	mu   sync.Mutex
	open map[kv.Database]served
}

// served is a store and how to end it.
type served struct {
	dir   string
	clock *clock.Virtual
	// end ends what is in dir now.
	end *func()
}

func (c *stores) start(t testing.TB, dir string, end *func()) kv.Database {
	virtual := clock.NewVirtual(time.Unix(0, 0))
	o := embedded.Options{Clock: virtual}
	var store *embedded.Store
	if c.onDisk {
		var err error
		store, err = embedded.Open(context.Background(), filepath.Join(dir, "store"), o)
		require.NoError(t, err)
	} else {
		store = embedded.OpenMemory(o)
	}
	path := filepath.Join(dir, "s")
	stop := serveAt(t, path, store, ServerOptions{})
	db, err := Open(context.Background(), Address{Network: "unix", Target: path}, Options{})
	require.NoError(t, err)
	*end = sync.OnceFunc(func() {
		require.NoError(t, db.Close())
		stop()
		require.NoError(t, store.Close())
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[db] = served{dir: dir, clock: virtual, end: end}
	return db
}

func (c *stores) find(db kv.Database) served {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[db]
}

func (c *stores) suite() kvtest.Options {
	c.open = map[kv.Database]served{}
	o := kvtest.Options{
		New: func(t testing.TB) kv.Database {
			dir, end := filepath.Dir(socketPath(t)), new(func())
			t.Cleanup(func() { (*end)() })
			return c.start(t, dir, end)
		},
		ExpireTx:    func(db kv.Database) { c.find(db).clock.Advance(kv.TxLifetime + time.Second) },
		ManyWatches: true,
	}
	if c.onDisk {
		o.Reopen = func(t testing.TB, db kv.Database) kv.Database {
			found := c.find(db)
			(*found.end)()
			return c.start(t, found.dir, found.end)
		}
	}
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	c := &stores{}
	kvtest.Run(t, c.suite())
}

func TestConformanceOnDisk(t *testing.T) {
	t.Parallel()
	c := &stores{onDisk: true}
	kvtest.Run(t, c.suite())
}

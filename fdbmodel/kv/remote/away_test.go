package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
)

// TestClientGivesUp has the server die, or fall silent behind a connection that
// stays, under a client that goes on for some time only: what is retried ends.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*proxy){
		"dead":      func(p *proxy) { p.setRefuse(true); p.cut() },
		"half open": func(p *proxy) { p.hold(toServer); p.hold(toClient) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, at := serveMemory(t, ServerOptions{})
			p := newProxy(t, at)
			db, err := Open(t.Context(), p.at, Options{PingInterval: 20 * time.Millisecond, DialTimeout: 2 * time.Second,
				GiveUpAfter: 200 * time.Millisecond})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			become := func(want error) {
				require.Eventually(t, func() bool {
					tx := db.Begin(kv.Options{})
					defer tx.Cancel()
					_, err := tx.Get([]byte("a")).Wait(t.Context())
					return errors.Is(err, want)
				}, patience, time.Millisecond, "%v", want)
			}
			become(nil) // a busy machine may lose the connection by itself
			lose(p)
			for _, work := range []func(kv.Attempt) error{
				func(a kv.Attempt) error {
					_, err := a.Get([]byte("a")).Wait(t.Context())
					return err
				},
				func(a kv.Attempt) error { a.Set([]byte("a"), nil); return nil },
				func(a kv.Attempt) error { a.Watch([]byte("a")); return nil },
			} {
				_, err = kv.Transact(t.Context(), db, kv.Retry{}, work)
				require.ErrorIs(t, err, ErrGone)
				require.ErrorIs(t, err, kv.ErrClosed)
				require.False(t, kv.Retryable(errors.Unwrap(err)) && !kv.MaybeCommitted(err))
			}
			p.setRefuse(false)
			p.release()
			become(nil)
		})
	}
}

// TestServerThatIsAwayIsLogged has a server end and come back: of all attempts meanwhile a
// client logs the first that failed, and the one that did not.
func TestServerThatIsAwayIsLogged(t *testing.T) {
	t.Parallel()
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	path := socketPath(t)
	stop := serveAt(t, path, store, ServerOptions{})
	log := &lines{}
	db, err := Open(t.Context(), Address{Network: "unix", Target: path},
		Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	stop()
	for range 5 { // each is an attempt more
		require.Eventually(t, func() bool {
			tx := db.Begin(kv.Options{})
			defer tx.Cancel()
			_, err := tx.Get([]byte("a")).Wait(t.Context())
			return errors.Is(err, kv.ErrUnavailable)
		}, patience, time.Millisecond)
	}
	ends := func(with string) func() bool {
		return func() bool {
			all := log.all()
			return len(all) > 0 && strings.Contains(all[len(all)-1], "the server of the store is "+with)
		}
	}
	require.Eventually(t, ends("away"), patience, time.Millisecond)
	stop = serveAt(t, path, store, ServerOptions{})
	require.Eventually(t, ends("back"), patience, time.Millisecond)
	stop()
	// A server that stops may still take one connection.
	for i, line := range log.all() {
		require.Contains(t, line, []string{"is away", "is back"}[i%2])
		require.Contains(t, line, path)
	}
}

// lines are what was written to a log.
type lines struct {
	mu   sync.Mutex
	list []string
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, string(p))
	return len(p), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// failing counts the transactions that begin after the store has failed.
type failing struct {
	*embedded.Store
	refused atomic.Int64
}

func (f *failing) Begin(o kv.Options) kv.Tx {
	if f.Err() != nil {
		f.refused.Add(1)
	}
	return f.Store.Begin(o)
}

// TestServersStoreFails has the disk of the server fail, and the server come
// back: the client awaits before, meanwhile and after.
func TestServersStoreFails(t *testing.T) {
	t.Parallel()
	dir, path := filepath.Join(t.TempDir(), "store"), socketPath(t)
	fails := errorfs.Toggle{Injector: errorfs.ErrInjected}
	serveFrom := func(fs vfs.FS) (*failing, func()) {
		inner, err := embedded.Open(t.Context(), dir, embedded.Options{FS: fs})
		require.NoError(t, err)
		store := &failing{Store: inner}
		return store, serveAt(t, path, store, ServerOptions{})
	}
	store, stop := serveFrom(errorfs.Wrap(vfs.Default, &fails))
	t.Cleanup(func() { stop(); _ = store.Close() })
	client, err := futures.New(t.Context(), dial(t, Address{Network: "unix", Target: path}), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, client.Close(ctx))
	})
	double := futures.Define[int, string]("double")
	before, err := double.Submit(t.Context(), client, 1)
	require.NoError(t, err)
	awaited := make(chan error, 1)
	go func() {
		text, err := before.Await(t.Context())
		if err == nil && text != "2" {
			err = fmt.Errorf("1 doubled is %s", text)
		}
		awaited <- err
	}()

	fails.On()
	lost := make(chan error, 1)
	go func() {
		_, err := double.Submit(t.Context(), client, 2)
		lost <- err
	}()
	<-store.Failed()
	require.Eventually(t, func() bool { return store.refused.Load() > 6 }, patience, time.Millisecond,
		"the client sees the failed store, and goes on")
	stop()
	require.ErrorIs(t, store.Close(), kv.ErrStoreFailed)
	store, stop = serveFrom(vfs.Default)

	require.NoError(t, <-lost)
	hold := make(chan struct{})
	close(hold)
	runWorker(t, dial(t, Address{Network: "unix", Target: path}), double, hold)
	require.NoError(t, <-awaited)
	after, err := double.Submit(t.Context(), client, 3)
	require.NoError(t, err)
	text, err := after.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "6", text)
}

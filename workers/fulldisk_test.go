package workers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/workers"
)

// faultyStore is a store whose commits of a tag, or all but reads, end with an error while it has one.
type faultyStore struct {
	kv.Database
	fault atomic.Pointer[fault]
}

type fault struct {
	tag string // of the transactions; all that write if it is empty
	err error
	n   atomic.Int64 // how many have ended with it
	max int64        // of those; 0 for any number
}

func (s *faultyStore) Traits() kv.Traits { return kv.Traits{} }

func (s *faultyStore) Begin(o kv.Options) kv.Tx { return faultyTx{s.Database.Begin(o), s, o.Tag} }

type faultyTx struct {
	kv.Tx
	store *faultyStore
	tag   string
}

func (t faultyTx) Commit(ctx context.Context) (kv.Committed, error) {
	f := t.store.fault.Load()
	if f != nil && t.tag != "futura-read" && (f.tag == "" || f.tag == t.tag) {
		if n := f.n.Add(1); f.max == 0 || n <= f.max {
			return kv.Committed{Version: kv.NoVersion}, f.err
		}
	}
	return t.Tx.Commit(ctx)
}

// onFaultyStore calls fn with a client of a store, and a worker with these functions.
func onFaultyStore(t *testing.T, functions map[string]workers.Function,
	fn func(ctx context.Context, s *faultyStore, c *futures.Client),
) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s := &faultyStore{Database: embedded.OpenMemory(embedded.Options{})}
		o := futures.Options{Config: layout.Config{Heartbeat: 5 * time.Second, DeadAfter: time.Hour}}
		c, err := futures.New(ctx, s, o)
		require.NoError(t, err)
		w, err := workers.New(c, workers.Options{Slots: 6})
		require.NoError(t, err)
		for name, f := range functions {
			require.NoError(t, w.Register(name, f))
		}
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-w.Ready()
		fn(context.Background(), s, c)
		cancel()
		require.NoError(t, <-ended, "nothing that the disk did ends a worker")
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, s.Close())
	})
}

// TestOutcomesWaitForRoomOnTheDisk has functions end, fail and record steps while the store can only be read: no
// outcome is lost, and no attempt.
func TestOutcomesWaitForRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	for _, full := range []error{kv.ErrReadOnly, fmt.Errorf("%w: %w", kv.ErrUnknownResult, kv.ErrReadOnly)} {
		started, on := make(chan struct{}, 6), make(chan struct{})
		large := strings.Repeat("large ", 2000)
		wait := func(context.Context, []byte) ([]byte, error) {
			started <- struct{}{}
			<-on
			return []byte("done"), nil
		}
		onFaultyStore(t, map[string]workers.Function{
			"ends": wait,
			"fails": func(ctx context.Context, args []byte) ([]byte, error) {
				_, _ = wait(ctx, args)
				return nil, workers.Permanent(errors.New("no"))
			},
			"steps": func(ctx context.Context, args []byte) ([]byte, error) {
				_, _ = wait(ctx, args)
				v, err := futures.Step(ctx, "one", func(context.Context) (string, error) { return "step", nil })
				return []byte(v), err
			},
			"large": func(ctx context.Context, args []byte) ([]byte, error) {
				_, _ = wait(ctx, args)
				return []byte(large), nil
			},
			"large.steps": func(ctx context.Context, args []byte) ([]byte, error) {
				_, _ = wait(ctx, args)
				v, err := futures.Step(ctx, "one", func(context.Context) (string, error) { return large, nil })
				return []byte(v), err
			},
			"writes": func(ctx context.Context, args []byte) ([]byte, error) {
				to, err := workers.ResultWriter(ctx)
				if err != nil {
					return nil, err
				}
				_, _ = wait(ctx, args)
				for range 2 << 20 / len(large) { // more than is kept in memory
					if _, err := to.Write([]byte(large)); err != nil {
						return nil, err
					}
				}
				return nil, nil
			},
		}, func(ctx context.Context, s *faultyStore, c *futures.Client) {
			all := map[string]*futures.Future{}
			for _, name := range []string{"ends", "fails", "steps", "large", "large.steps", "writes"} {
				f, err := c.Submit(ctx, futures.Task{Function: "go:" + name, MaxRetries: new(int)})
				require.NoError(t, err)
				all[name] = f
				<-started
			}
			f := &fault{err: full}
			s.fault.Store(f)
			close(on)
			<-time.After(time.Minute)
			synctest.Wait()
			require.Positive(t, f.n.Load())
			s.fault.Store(nil)
			for name, want := range map[string]string{"ends": "done", "steps": "step", "large": large, "large.steps": large,
				"writes": strings.Repeat(large, 2<<20/len(large))} {
				value, err := all[name].Await(ctx)
				require.NoError(t, err, name)
				require.Equal(t, want, string(value.Value), name)
			}
			require.Len(t, started, 0, "nothing ran twice")
			_, err := all["fails"].Await(ctx)
			failed := (*futures.FailedError)(nil)
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Message, "no")
		})
	}
}

// TestAnOutcomeThatCantBeWrittenEndsOtherwise: as a failed attempt that says why, or else its future is given back. No
// future stays claimed by a worker that does not run it.
func TestAnOutcomeThatCantBeWrittenEndsOtherwise(t *testing.T) {
	t.Parallel()
	for _, refused := range []int64{1, 2} {
		runs := atomic.Int64{}
		var store *faultyStore
		onFaultyStore(t, map[string]workers.Function{"f": func(context.Context, []byte) ([]byte, error) {
			if runs.Add(1) == 1 {
				store.fault.Store(&fault{tag: "futura-finish", err: kv.ErrValueTooLarge, max: refused})
			}
			return []byte("done"), nil
		}}, func(ctx context.Context, s *faultyStore, c *futures.Client) {
			store = s
			f, err := c.Submit(ctx, futures.Task{Function: "go:f", MaxRetries: new(int)})
			require.NoError(t, err)
			value, err := f.Await(ctx)
			if refused == 2 { // the failure too
				require.NoError(t, err)
				require.Equal(t, "done", string(value.Value))
				require.EqualValues(t, 2, runs.Load())
				return
			}
			failed := (*futures.FailedError)(nil)
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Message, "the outcome can't be written")
			require.Contains(t, failed.Message, kv.ErrValueTooLarge.Error())
		})
	}
}

// TestAWorkerRegistersAgainOnceThereIsRoom: one that was declared dead does not end because the store can only be read
// for a while.
func TestAWorkerRegistersAgainOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	onFaultyStore(t, map[string]workers.Function{"f": func(context.Context, []byte) ([]byte, error) {
		return []byte("done"), nil
	}}, func(ctx context.Context, s *faultyStore, c *futures.Client) {
		f := &fault{tag: "futura-register", err: kv.ErrReadOnly}
		s.fault.Store(f)
		members, err := c.Cluster().Workers(ctx)
		require.NoError(t, err)
		require.Len(t, members, 1)
		_, err = c.Cluster().ForceReap(ctx, members[0].ID)
		require.NoError(t, err)
		<-time.After(time.Minute)
		require.Positive(t, f.n.Load())
		s.fault.Store(nil)
		one, err := c.Submit(ctx, futures.Task{Function: "go:f"})
		require.NoError(t, err)
		value, err := one.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, "done", string(value.Value))
	})
}

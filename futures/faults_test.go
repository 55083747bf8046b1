package futures_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

func unknownResults() []faultkv.Fault {
	return []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate}
}

func TestUnknownSubmitsMakeOneFuture(t *testing.T) {
	t.Parallel()
	for _, fault := range unknownResults() {
		for _, key := range []string{"", "key"} {
			ctx := context.Background()
			faults := faultkv.Wrap(storetest.New(t), faultkv.Options{})
			c := newClient(t, faults)
			faults.FailNext(fault, func(tag string) bool { return tag == "futura-submit" })
			f, err := c.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("once"), Key: key})
			require.NoError(t, err)
			faults.Flush()
			require.Equal(t, 1, faults.Counts().Injected[fault])
			require.Equal(t, 1, newExecutor(t, c, echo).all(t), "%v %q", fault, key)
			r, err := f.Await(ctx)
			require.NoError(t, err)
			require.Equal(t, "ran once", string(r.Value))
		}
	}
}

// TestSubmitTxTogetherWithOwnKeys commits a counter of the test's own together
// with futures: neither exists without the other.
func TestSubmitTxTogetherWithOwnKeys(t *testing.T) {
	t.Parallel()
	for _, fault := range unknownResults() {
		ctx := context.Background()
		faults := faultkv.Wrap(storetest.New(t), faultkv.Options{})
		c := newClient(t, faults)
		own := []byte("own")
		orders := func() (n uint32) {
			_, err := kv.Transact(ctx, faults, kv.Retry{}, func(tx kv.Attempt) error {
				value, err := tx.Get(own).Wait(ctx)
				n = 0
				if value != nil {
					n = binary.LittleEndian.Uint32(value)
				}
				return err
			})
			require.NoError(t, err)
			return n
		}
		faults.FailNext(fault, func(tag string) bool { return tag == "orders" })
		var s *futures.TxFutures
		result, err := kv.Transact(ctx, faults, kv.Retry{Options: kv.Options{Tag: "orders"}}, func(tx kv.Attempt) error {
			var err error
			s, err = c.SubmitTx(ctx, tx, []futures.Task{
				{Function: "go:upper", Key: "order 1 first"}, {Function: "go:upper", Key: "order 1 second"},
			})
			if err != nil || s.Futures[0].Existed() {
				return err
			}
			tx.Atomic(kv.Add, own, []byte{1, 0, 0, 0})
			return nil
		})
		require.NoError(t, err)
		s.Committed(ctx, result.Version)
		faults.Flush()
		require.Equal(t, uint32(1), orders(), fault)
		require.Equal(t, 2, newExecutor(t, c, echo).all(t), fault)
		_, err = c.AwaitAll(ctx, s.Futures)
		require.NoError(t, err)

		refused := errors.New("refused")
		_, err = kv.Transact(ctx, faults, kv.Retry{}, func(tx kv.Attempt) error {
			tx.Atomic(kv.Add, own, []byte{1, 0, 0, 0})
			s, err = c.SubmitTx(ctx, tx, []futures.Task{{Function: "go:upper"}})
			require.NoError(t, err)
			return refused
		})
		require.ErrorIs(t, err, refused)
		require.Equal(t, uint32(1), orders(), fault)
		_, err = s.Futures[0].Await(ctx)
		require.ErrorIs(t, err, futures.ErrNotFound)
	}
}

func TestSubmitTxMistakes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := newClient(t, db)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	empty, err := c.SubmitTx(ctx, tx, nil)
	require.NoError(t, err)
	require.Empty(t, empty.Futures)
	empty.Committed(ctx, kv.NoVersion)
	_, err = c.SubmitTx(ctx, tx, []futures.Task{{Function: "go:upper", Args: make([]byte, 17<<10)}})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	_, err = c.SubmitTx(ctx, tx, []futures.Task{{Function: "upper"}})
	require.ErrorIs(t, err, layout.ErrBadName)
}

// TestEverythingFails submits and awaits on a store where any transaction of
// the client may fail in any way. The executor's transactions don't fail.
func TestEverythingFails(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if os.Getenv("FUTURA_LONG") == "1" {
		seeds = 60
	}
	for seed := range seeds {
		ctx := context.Background()
		inner := storetest.New(t)
		steady, err := futures.New(ctx, inner, futures.Options{})
		require.NoError(t, err)
		e := newExecutor(t, steady, echo)
		c := newClient(t, faultkv.Wrap(inner, faultkv.Everywhere(seed, 0.04)))
		const callers, each = 16, 20
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { errs[i] = submitAndAwait(ctx, c, i, each) })
		}
		ended := make(chan struct{})
		go func() {
			wg.Wait()
			close(ended)
		}()
		ran := 0
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
				ran += e.all(t)
			}
		}
		require.NoError(t, errors.Join(errs...), "seed %d", seed)
		ran += e.all(t)
		require.Equal(t, callers*each, ran, "seed %d", seed)
		counts, err := steady.Counts(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(callers*each), counts.Total(layout.Realized), "seed %d", seed)
		require.NoError(t, steady.Close(ctx))
	}
}

// submitAndAwait submits in every way, and checks the results.
func submitAndAwait(ctx context.Context, c *futures.Client, caller, n int) error {
	var fs []*futures.Future
	for i := range n {
		task := futures.Task{
			Function: "go:upper", Args: fmt.Appendf(nil, "%d.%d", caller, i), NoNotify: i%5 == 4,
		}
		if i%3 == 0 {
			task.Key = fmt.Sprintf("%d.%d", caller, i)
		}
		submitted := make([]*futures.Future, 1)
		var err error
		if i%2 == 0 {
			submitted[0], err = c.Submit(ctx, task)
		} else {
			submitted, err = c.SubmitMany(ctx, []futures.Task{task})
		}
		if err != nil {
			return err
		}
		fs = append(fs, submitted...)
	}
	results, err := c.AwaitAll(ctx, fs)
	for i, r := range results {
		if want := fmt.Sprintf("ran %d.%d", caller, i); string(r.Value) != want {
			return fmt.Errorf("result %q, not %q: %w", r.Value, want, err)
		}
	}
	return err
}

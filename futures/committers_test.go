package futures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
)

// newBubble returns a store without system calls, so that all waits are inside
// the synctest bubble.
func newBubble() kv.Database { return embedded.OpenMemory(embedded.Options{}) }

// heldStore holds up the commits of submits, or only their answers, until it is
// released.
type heldStore struct {
	kv.Database
	open    chan struct{}
	answers bool

	mu        sync.Mutex
	conflicts int // so many of the next commits fail
	begun     int
	held      int
	commits   int
}

func hold(db kv.Database) *heldStore { return &heldStore{Database: db, open: make(chan struct{})} }

func (h *heldStore) Begin(o kv.Options) kv.Tx {
	tx := h.Database.Begin(o)
	if o.Tag != "futura-submit" {
		return tx
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun++
	return &heldTx{tx, h}
}

func (h *heldStore) counts() (held, commits int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held, h.commits
}

type heldTx struct {
	kv.Tx
	store *heldStore
}

func (t *heldTx) Commit(ctx context.Context) (kv.Committed, error) {
	h := t.store
	h.mu.Lock()
	h.held++
	h.commits++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.held--
	}()
	if h.answers {
		committed, err := t.Tx.Commit(ctx)
		<-h.open
		return committed, err
	}
	select {
	case <-h.open:
	case <-ctx.Done():
		return kv.Committed{}, fmt.Errorf("%w: %w", kv.ErrUnknownResult, ctx.Err())
	}
	h.mu.Lock()
	fails := h.conflicts > 0
	h.conflicts--
	h.mu.Unlock()
	if fails {
		return kv.Committed{}, kv.ErrConflict
	}
	return t.Tx.Commit(ctx)
}

// submitAll submits tasks at the same time while other calls hold all
// committers, and returns once all of them are waiting.
func submitAll(t *testing.T, ctx context.Context, c *futures.Client, store *heldStore, tasks []futures.Task,
) (errs []error, wait func()) {
	var wg sync.WaitGroup
	for range futures.MaxCommitters {
		wg.Go(func() {
			_, err := c.Submit(context.Background(), futures.Task{Function: "go:upper"})
			if err != nil {
				require.ErrorIs(t, err, futures.ErrClosed)
			}
		})
	}
	synctest.Wait()
	held, _ := store.counts()
	require.Equal(t, futures.MaxCommitters, held)
	errs = make([]error, len(tasks))
	for i := range tasks {
		wg.Go(func() { _, errs[i] = c.Submit(ctx, tasks[i]) })
	}
	synctest.Wait()
	return errs, wg.Wait
}

func TestConcurrentSubmitsShareTransactions(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		tasks := make([]futures.Task, 50)
		for i := range tasks {
			tasks[i] = futures.Task{Function: "go:upper"}
		}
		errs, wait := submitAll(t, context.Background(), c, store, tasks)
		close(store.open)
		wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		_, commits := store.counts()
		require.Equal(t, futures.MaxCommitters+1, commits, "those that found a committer free, and one for all the others")
		counts, err := c.Counts(context.Background())
		require.NoError(t, err)
		require.Equal(t, int64(futures.MaxCommitters+50), counts.Total(layout.Ready))
	})
}

func TestMistakeIsNotTheNeighbours(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		tasks := []futures.Task{
			{Function: "go:upper"},
			{Function: "upper"},
			{Function: "go:upper", Key: "same", Args: []byte("a")},
			{Function: "go:upper", Key: "same", Args: []byte("a")},
			{Function: "go:upper", Timeout: -1},
			{Function: "go:upper", Key: "clash", Args: []byte("a")},
			{Function: "go:upper", Key: "clash", Args: []byte("b")},
			{Function: "go:upper", Args: make([]byte, layout.MaxPut+1)},
			{Function: "go:upper"},
		}
		errs, wait := submitAll(t, context.Background(), c, store, tasks)
		close(store.open)
		wait()
		clashes := 0
		for i, err := range errs {
			switch i {
			case 1:
				require.ErrorIs(t, err, layout.ErrBadName)
			case 4:
				require.ErrorIs(t, err, layout.ErrBadSpec)
			case 5, 6:
				if err != nil {
					require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
					clashes++
				}
			case 7:
				require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
			default:
				require.NoError(t, err)
			}
		}
		require.Equal(t, 1, clashes, "one of two that claim the same key comes first")
		counts, err := c.Counts(context.Background())
		require.NoError(t, err)
		require.Equal(t, int64(futures.MaxCommitters+4), counts.Total(layout.Ready))
	})
}

// TestASubmitToAFullLaneIsNotTheNeighbours has calls share a transaction, one of them to a full lane.
func TestASubmitToAFullLaneIsNotTheNeighbours(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		full := futures.Task{Function: "go:upper", Lane: futures.Lane{Kind: "k", Key: "x"}}
		require.NoError(t, c.SetLaneKind(context.Background(), "k", futures.LaneSettings{MaxWaiting: 1}))
		tasks := append(slices.Repeat([]futures.Task{full}, 30), futures.Task{Function: "go:upper"})
		errs, wait := submitAll(t, context.Background(), c, store, tasks)
		close(store.open)
		wait()
		refused := 0
		for _, err := range errs[:30] {
			if err != nil {
				require.ErrorIs(t, err, futures.ErrLaneFull)
				refused++
			}
		}
		require.Equal(t, 28, refused, "one runs, and one waits")
		require.NoError(t, errs[30])
		require.Equal(t, futures.MaxCommitters+3, store.begun,
			"of all together, of those that find a place, and of those that find none")
	})
}

func TestSubmitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		ctx, cancel := context.WithCancel(context.Background())
		errs, wait := submitAll(t, ctx, c, store, []futures.Task{{Function: "go:upper"}, {Function: "go:upper"}})
		cancel()
		synctest.Wait()
		close(store.open)
		wait()
		for _, err := range errs {
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, kv.ErrUnknownResult, "it had not been sent")
		}
		counts, err := c.Counts(context.Background())
		require.NoError(t, err)
		require.Equal(t, int64(futures.MaxCommitters), counts.Total(layout.Ready))
	})
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		ctx, cancel := context.WithCancel(context.Background())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = c.Submit(ctx, futures.Task{Function: "go:upper"}) })
		synctest.Wait()
		cancel()
		wg.Wait()
		close(store.open)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, kv.ErrUnknownResult, "it was under way")
	})
}

// TestASubmitThatWasGivenUpIsAsItWas: its transaction may go on when the caller uses the memory again.
func TestASubmitThatWasGivenUpIsAsItWas(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := hold(newBubble())
		c := newClient(t, store)
		ctx, cancel := context.WithCancel(context.Background())
		args, tags := []byte("as it was"), []string{"as-it-was"}
		errs, wait := submitAll(t, ctx, c, store, []futures.Task{{Function: "go:upper", Key: "one", Args: args, Tags: tags}})
		store.open <- struct{}{} // a committer is free, and takes it
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.ErrorIs(t, errs[0], kv.ErrUnknownResult)
		copy(args, "used again")
		tags[0] = "used-again"
		store.conflicts = futures.MaxCommitters
		close(store.open)
		wait()
		id := c.Cluster().IDOf("one")
		require.Eventually(t, func() bool { // nobody waits for it any more
			_, err := c.Cluster().Get(context.Background(), id)
			return err == nil
		}, time.Minute, time.Millisecond)
		again, err := c.Submit(context.Background(),
			futures.Task{Function: "go:upper", Key: "one", Args: []byte("as it was")})
		require.NoError(t, err)
		require.Equal(t, id, again.ID())
		row, err := c.Cluster().Get(context.Background(), id)
		require.NoError(t, err)
		stored, err := c.Cluster().Args(context.Background(), id, row.Spec)
		require.NoError(t, err)
		require.Equal(t, "as it was", string(stored))
		require.Equal(t, []string{"as-it-was"}, row.Spec.Tags)
	})
}

func TestCloseEndsSubmitsThatWait(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		db := newBubble()
		store := hold(db)
		c, err := futures.New(context.Background(), store, futures.Options{})
		require.NoError(t, err)
		errs, wait := submitAll(t, context.Background(), c, store, []futures.Task{{Function: "go:upper"}})
		require.NoError(t, c.Close(context.Background()))
		close(store.open)
		wait()
		require.ErrorIs(t, errs[0], futures.ErrClosed)
		require.NotErrorIs(t, errs[0], kv.ErrUnknownResult)
		_, err = c.Submit(context.Background(), futures.Task{Function: "go:upper", NoNotify: true})
		require.ErrorIs(t, err, futures.ErrClosed)
		_, err = c.SubmitMany(context.Background(), []futures.Task{{Function: "go:upper"}})
		require.ErrorIs(t, err, futures.ErrClosed)
		_, err = c.Future(futures.ID{1}).Await(context.Background())
		require.ErrorIs(t, err, futures.ErrClosed)
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, db.Close())
	})
}

func TestEndBeforeTheSubmitReturns(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		inner := newBubble()
		store := hold(inner)
		store.answers = true
		c := newClient(t, store)
		steady, err := futures.New(ctx, inner, futures.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, steady.Close(ctx)) }()
		var small, large *futures.Future
		var many []*futures.Future
		var wg sync.WaitGroup
		errs := make([]error, 3)
		wg.Go(func() { small, errs[0] = c.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("s")}) })
		wg.Go(func() { large, errs[1] = c.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("l")}) })
		wg.Go(func() { many, errs[2] = c.SubmitMany(ctx, []futures.Task{{Function: "go:upper", Args: []byte("l")}}) })
		synctest.Wait()
		require.Equal(t, 3, newExecutor(t, steady, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
			size := map[string]int{"s": 10, "l": 2000}[string(f.Inline)]
			return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: make([]byte, size)}}
		}).all(t))
		synctest.Wait()
		close(store.open)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		synctest.Wait()
		start := time.Now()
		for f, size := range map[*futures.Future]int{small: 10, large: 2000, many[0]: 2000} {
			r, err := f.Await(ctx)
			require.NoError(t, err)
			require.Len(t, r.Value, size)
		}
		require.Equal(t, start, time.Now(), "nothing waits for the slow pass")
	})
}

func TestCloseEndsTheWatch(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		counter := &watchCounter{Database: newBubble()}
		c, err := futures.New(ctx, counter, futures.Options{})
		require.NoError(t, err)
		_, err = c.Submit(ctx, futures.Task{Function: "go:upper"})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, counter.watches, 1)
		select {
		case <-counter.watches[0].Done():
			require.Fail(t, "nothing has come")
		default:
		}
		require.NoError(t, c.Close(ctx))
		require.ErrorIs(t, counter.watches[0].Err(), kv.ErrCancelled)
		require.NoError(t, counter.Close())
	})
}

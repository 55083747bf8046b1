package futures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/internal/taskcontext"
)

// watchCounter counts open watches.
type watchCounter struct {
	kv.Database
	mu      sync.Mutex
	watches []kv.Watch
	most    int
}

func (w *watchCounter) Begin(o kv.Options) kv.Tx { return &countedTx{w.Database.Begin(o), w} }

type countedTx struct {
	kv.Tx
	counter *watchCounter
}

func (t *countedTx) Watch(key []byte) kv.Watch {
	watch := t.Tx.Watch(key)
	c := t.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = slices.DeleteFunc(append(c.watches, watch), func(w kv.Watch) bool {
		select {
		case <-w.Done():
			return true
		default:
			return false
		}
	})
	c.most = max(c.most, len(c.watches))
	return watch
}

func TestAwaitAllIsOneWatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	counter := &watchCounter{Database: storetest.New(t)}
	c := newClient(t, counter)
	tasks := make([]futures.Task, 5_000)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:upper", Args: fmt.Appendf(nil, "%d", i)}
	}
	fs, err := c.SubmitMany(ctx, tasks)
	require.NoError(t, err)
	type answer struct {
		results []futures.Result
		err     error
	}
	answers := make(chan answer, 2)
	for range cap(answers) {
		go func() {
			results, err := c.AwaitAll(ctx, fs)
			answers <- answer{results, err}
		}()
	}
	require.Equal(t, len(tasks), newExecutor(t, c, echo).all(t))
	for range cap(answers) {
		a := <-answers
		require.NoError(t, a.err)
		require.Len(t, a.results, len(tasks))
		for i, r := range a.results {
			require.Equal(t, fmt.Sprintf("ran %d", i), string(r.Value))
			require.Equal(t, 1, r.Attempt)
		}
	}
	counter.mu.Lock()
	defer counter.mu.Unlock()
	require.Equal(t, 1, counter.most)
}

func TestAwaitOfNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	results, err := c.AwaitAll(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, results)
	for range c.AwaitEach(context.Background(), nil) {
		require.Fail(t, "there is nothing to come")
	}
}

func TestAwaitAllJoinsFailuresInOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	var fs []*futures.Future
	for i := range 9 {
		function := []string{"go:upper", "go:fail", "go:upper"}[i%3]
		f, err := c.Submit(ctx, futures.Task{Function: function})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	fs = append(fs, fs[1])
	newExecutor(t, c, echo).all(t)
	results, err := c.AwaitAll(ctx, fs)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	var failed []futures.ID
	for _, err := range joined.Unwrap() {
		var e *futures.FailedError
		require.ErrorAs(t, err, &e)
		failed = append(failed, e.ID)
	}
	require.Equal(t, []futures.ID{fs[1].ID(), fs[4].ID(), fs[7].ID(), fs[1].ID()}, failed)
	for i, r := range results {
		require.Equal(t, i%3 != 1 && i < 9, r.Worker != "", i)
	}
}

// TestTheTextOfManyFailuresIsBounded has 1,000 futures fail, of which the error says ten
// and sees all.
func TestTheTextOfManyFailuresIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	tasks := make([]futures.Task, 1000)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:fail"}
	}
	fs, err := c.SubmitMany(ctx, tasks)
	require.NoError(t, err)
	last := fs[len(fs)-1]
	_, err = c.Cancel(ctx, last.ID(), "not wanted")
	require.NoError(t, err)
	newExecutor(t, c, echo).all(t)
	typed := make([]*futures.Typed[int], len(fs))
	for i, f := range fs {
		typed[i] = &futures.Typed[int]{Future: f}
	}
	_, plain := c.AwaitAll(ctx, fs)
	_, decoded := futures.AwaitAll(ctx, typed)
	for _, err := range []error{plain, decoded} {
		require.ErrorIs(t, err, futures.ErrCancelled, "the last one")
		require.ErrorIs(t, err, futures.ErrFailed)
		require.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 1000)
		require.Contains(t, err.Error(), fs[9].ID().String())
		require.NotContains(t, err.Error(), fs[10].ID().String())
		require.True(t, strings.HasSuffix(err.Error(), "\nand 990 more"), err.Error())
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	good, err := c.Submit(context.Background(), futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	newExecutor(t, c, echo).all(t)
	_, err = good.Await(context.Background())
	require.NoError(t, err)
	waits, err := c.Submit(context.Background(), futures.Task{Function: "go:upper", Args: []byte("later")})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = waits.Await(ctx)
	require.ErrorIs(t, err, context.Canceled)
	results, err := c.AwaitAll(ctx, []*futures.Future{waits, good})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "ran ", string(results[1].Value), "what is known is returned")
	var left []*futures.Future
	for f, o := range c.AwaitEach(ctx, []*futures.Future{waits, good, waits}) {
		if o.Err != nil {
			require.ErrorIs(t, o.Err, context.Canceled)
			left = append(left, f)
		}
	}
	require.Equal(t, []*futures.Future{waits, waits}, left)

	newExecutor(t, c, echo).all(t)
	r, err := waits.Await(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ran later", string(r.Value))
}

func TestAwaitEachYieldsAsTheyCome(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	var fs []*futures.Future
	submit := func() {
		f, err := c.Submit(ctx, futures.Task{Function: "go:upper", Args: fmt.Appendf(nil, "%d", len(fs)),
			NoNotify: len(fs)%2 == 0})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	for range 4 {
		submit()
	}
	e.all(t)
	early := slices.Clone(fs)
	for range 4 {
		submit()
	}
	shuffled := []*futures.Future{fs[7], fs[0], fs[4], fs[1], fs[2], fs[6], fs[3], fs[5]}
	var order []*futures.Future
	for f, o := range c.AwaitEach(ctx, shuffled) {
		require.NoError(t, o.Err)
		require.Equal(t, fmt.Sprintf("ran %d", slices.Index(fs, f)), string(o.Result.Value))
		if order = append(order, f); len(order) == 4 {
			require.ElementsMatch(t, early, order)
			e.all(t)
		}
	}
	require.ElementsMatch(t, fs, order)
	for range c.AwaitEach(ctx, shuffled) {
		break
	}
}

func TestFuturesOfSeveralClients(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, other := newClients(t)
	var fs []*futures.Future
	for i := range 6 {
		f, err := []*futures.Client{c, other}[i%2].Submit(ctx, futures.Task{Function: "go:upper"})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	newExecutor(t, c, echo).all(t)
	results, err := c.AwaitAll(ctx, fs)
	require.NoError(t, err)
	require.Len(t, results, 6)
}

// large ends futures with results that are too large for a notice.
func large(c *futures.Client) func(*fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		ctx := context.Background()
		value := slices.Repeat(f.Inline, 100_000)
		stderr, err := results.Of(c.Cluster()).StoreStderr(ctx, f.ID, f.Token, value[:20_000])
		if err != nil {
			panic(err)
		}
		if f.Spec.Function == "go:fail" {
			return fdbmodel.Completion{Future: f, Permanent: true, Exception: &layout.Exception{
				Kind: layout.KindExit, Message: string(value[:3000]), ExitCode: 7, Stdout: value[:4000], StderrRef: &stderr,
			}}
		}
		if f.Inline[0] == 'm' {
			return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: value[:2000], ExitCode: 0}}
		}
		ref, err := results.Of(c.Cluster()).Store(ctx, f.ID, f.Token, value)
		if err != nil {
			panic(err)
		}
		return fdbmodel.Completion{Future: f, Result: &layout.Result{ValueRef: &ref, StderrRef: &stderr}}
	}
}

func TestEndsThatNoticesDoNotCarry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	var fs []*futures.Future
	for i := range 60 {
		task := futures.Task{Function: "go:upper", Args: []byte{"lmf"[i%3]}}
		if i%3 == 2 {
			task.Function = "go:fail"
		}
		f, err := c.Submit(ctx, task)
		require.NoError(t, err)
		fs = append(fs, f)
	}
	require.Equal(t, 60, newExecutor(t, c, large(c)).all(t))
	for i, f := range fs {
		r, err := f.Await(ctx)
		switch i % 3 {
		case 0:
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]byte("l"), 100_000), r.Value)
			require.Equal(t, slices.Repeat([]byte("l"), 20_000), r.Stderr)
		case 1:
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]byte("m"), 2000), r.Value)
		default:
			var failed *futures.FailedError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, 7, failed.ExitCode)
			require.Len(t, failed.Message, 3000)
			require.Len(t, failed.Stdout, 4000)
			require.Len(t, failed.Stderr, 20_000)
		}
	}
}

func TestAwaitReturnsTheStoresEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	f, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := f.Await(ctx)
		ended <- err
	}()
	require.NoError(t, db.Close())
	require.ErrorIs(t, <-ended, kv.ErrClosed)
	_, err = c.Future(f.ID()).Await(ctx)
	require.ErrorIs(t, err, kv.ErrClosed)
	require.NoError(t, c.Close(ctx))
}

// TestAwaitThatEndsSaysWhy awaits a future that no worker runs: the error names
// the future, its state and the reason.
func TestAwaitThatEndsSaysWhy(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = f.Await(ended)
	require.ErrorIs(t, err, context.Canceled)
	var wait *futures.WaitError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, f.ID(), wait.ID)
	require.Equal(t, futures.Ready, wait.State)
	require.Contains(t, wait.Reason, "no worker")
	require.ErrorContains(t, err, "is ready: ")

	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	other := c.Future(futures.ID{15: 1})
	_, err = c.AwaitAll(late, []*futures.Future{f, other})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, f.ID().String())
	_, err = c.AwaitAny(late, []*futures.Future{f})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	explained := 0
	for left, settled := range c.AwaitEach(late, []*futures.Future{f, f}) {
		require.ErrorAs(t, settled.Err, &wait)
		require.Equal(t, left.ID(), wait.ID)
		if wait.State != 0 {
			explained++
		}
	}
	require.Equal(t, 1, explained, "the cost is that of one look")
}

// TestAwaitThatEndsWithTheStore makes the final read fail: the error still
// names the future.
func TestAwaitThatEndsWithTheStore(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	c, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody", NoNotify: true})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = f.Await(ended)
	require.ErrorContains(t, err, f.ID().String())
	_ = c.Close(context.Background())
}

// TestAwaitsOfNilFutures say which one is nil.
func TestAwaitsOfNilFutures(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.NoError(t, err)
	fs := []*futures.Future{f, nil}
	_, err = c.AwaitAll(t.Context(), fs)
	require.ErrorIs(t, err, futures.ErrNilFuture)
	require.ErrorContains(t, err, "number 1 of 2")
	_, err = c.AwaitAny(t.Context(), fs)
	require.ErrorIs(t, err, futures.ErrNilFuture)
	n := 0
	for got, settled := range c.AwaitEach(t.Context(), fs) {
		require.Nil(t, got)
		require.ErrorIs(t, settled.Err, futures.ErrNilFuture)
		n++
	}
	require.Equal(t, 1, n)
	for _, typed := range [][]*futures.Typed[string]{{nil}, {{Future: f}, nil}, {{}}} {
		_, err = futures.AwaitAll(t.Context(), typed)
		require.ErrorIs(t, err, futures.ErrNilFuture)
		_, err = futures.AwaitAny(t.Context(), typed)
		require.ErrorIs(t, err, futures.ErrNilFuture)
	}
}

// TestAwaitWhileTheStoreCloses closes the store below awaits: each error names its future and the cause, once.
func TestAwaitWhileTheStoreCloses(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	c, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	var fs []*futures.Future
	for range 3 {
		f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	require.NoError(t, db.Close())
	names := func(f *futures.Future, err error) {
		require.ErrorIs(t, err, kv.ErrClosed)
		require.Equal(t, 1, strings.Count(err.Error(), f.ID().String()), err.Error())
		require.Equal(t, 1, strings.Count(err.Error(), kv.ErrClosed.Error()), err.Error())
	}
	for _, f := range fs {
		_, err := f.Await(t.Context())
		names(f, err)
	}
	late, err := c.Future(fs[0].ID()).Await(t.Context())
	require.Empty(t, late)
	names(fs[0], err)
	_, err = c.AwaitAll(t.Context(), fs)
	for _, f := range fs {
		require.ErrorContains(t, err, f.ID().String())
	}
	_ = c.Close(context.Background()) // the store is gone
}

// TestAwaitTellsTheWorker: a worker knows which of its functions wait.
func TestAwaitTellsTheWorker(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.NoError(t, err)
	began, ended := make(chan struct{}, 1), false
	var what taskcontext.Awaited
	var refuse taskcontext.Refuse
	note := func(_ context.Context, of taskcontext.Awaited, how taskcontext.Refuse) func() {
		what, refuse = of, how
		began <- struct{}{}
		return func() { ended = true }
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), taskcontext.AwaitKey{}, note))
	refused := errors.New("refused")
	go func() {
		<-began
		refuse(refused)
		<-began
		cancel()
	}()
	_, err = f.Await(ctx)
	require.ErrorIs(t, err, refused)
	require.True(t, ended)
	over, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.NoError(t, err)
	_, err = c.Cancel(t.Context(), over.ID(), "")
	require.NoError(t, err)
	_, err = over.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	_, err = c.AwaitAll(ctx, []*futures.Future{over, f})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, ended)
	id, count := what()
	require.Equal(t, f.ID(), id)
	require.Equal(t, 1, count)
}

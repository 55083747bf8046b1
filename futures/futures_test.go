package futures_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// executor claims and ends futures without package workers.
type executor struct {
	reg *fdbmodel.Registration
	run func(*fdbmodel.ClaimedFuture) fdbmodel.Completion
}

func newExecutor(t *testing.T, c *futures.Client, run func(*fdbmodel.ClaimedFuture) fdbmodel.Completion) *executor {
	reg, err := c.Cluster().Register(context.Background(), layout.WorkerInfo{
		Functions: []string{"go:upper", "go:fail"}, Capacity: layout.Resources{Slots: 8},
	})
	require.NoError(t, err)
	return &executor{reg, run}
}

// all runs every ready future and returns how many there were.
func (e *executor) all(t testing.TB) int {
	total := 0
	for {
		n := e.batch(t)
		if n == 0 {
			return total
		}
		total += n
	}
}

// batch claims once and ends the claimed futures.
func (e *executor) batch(t testing.TB) int {
	answer, err := e.reg.Claim(context.Background(), fdbmodel.ClaimRequest{
		Free: layout.Resources{Slots: 100}, Max: 100,
	})
	require.NoError(t, err)
	var completions []fdbmodel.Completion
	for i := range answer.Futures {
		completions = append(completions, e.run(&answer.Futures[i]))
	}
	if len(completions) > 0 {
		_, err = e.reg.Finish(context.Background(), completions)
		require.NoError(t, err)
	}
	return len(completions)
}

func echo(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	if f.Spec.Function == "go:fail" {
		return fdbmodel.Completion{Future: f, Permanent: true, Exception: &layout.Exception{
			Kind: layout.KindError, Message: "no",
		}}
	}
	return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: append([]byte("ran "), f.Inline...)}}
}

func newClient(t *testing.T, db kv.Database) *futures.Client {
	c, err := futures.New(context.Background(), db, futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, db.Close())
	})
	return c
}

// newClients returns two clients of one cluster.
func newClients(t *testing.T) (c, other *futures.Client) {
	db := storetest.New(t)
	c = newClient(t, db)
	other, err := futures.New(context.Background(), db, futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close(context.Background())) })
	return c, other
}

func TestConcurrentSubmitsAreAwaited(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	var wg sync.WaitGroup
	errs := make([]error, 400)
	for i := range errs {
		wg.Go(func() {
			f, err := c.Submit(ctx, futures.Task{Function: "go:upper", Args: fmt.Appendf(nil, "%d", i)})
			if err != nil {
				errs[i] = err
				return
			}
			r, err := f.Await(ctx)
			if err == nil && string(r.Value) != fmt.Sprintf("ran %d", i) {
				err = fmt.Errorf("future %d has the result %q", i, r.Value)
			}
			errs[i] = err
		})
	}
	for ran := 0; ran < len(errs); {
		ran += e.all(t)
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestFailureSaysWhatHappened(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	good, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	bad, err := c.Submit(ctx, futures.Task{Function: "go:fail"})
	require.NoError(t, err)
	gone, err := c.Submit(ctx, futures.Task{Function: "go:upper", Delay: time.Hour})
	require.NoError(t, err)
	outcome, err := gone.Cancel(ctx, "not wanted")
	require.NoError(t, err)
	require.Equal(t, futures.Done, outcome)
	e.all(t)
	results, err := c.AwaitAll(ctx, []*futures.Future{good, bad, gone})
	require.ErrorIs(t, err, futures.ErrFailed)
	require.Equal(t, "ran ", string(results[0].Value))
	_, err = bad.Await(ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindError, failed.Kind)
	require.Equal(t, "go:fail", failed.Function)
	require.Equal(t, "no", failed.Message)
	require.NotErrorIs(t, err, futures.ErrCancelled)
	_, err = gone.Await(ctx)
	require.ErrorIs(t, err, futures.ErrCancelled)
	require.ErrorContains(t, err, "not wanted")

	require.NoError(t, c.Retry(ctx, bad.ID()))
	e.run = func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("at last")}}
	}
	e.all(t)
	r, err := c.Future(bad.ID()).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "at last", string(r.Value))
}

func TestAwaitOfOthersFutures(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, other := newClients(t)
	quiet, err := c.Submit(ctx, futures.Task{Function: "go:upper", NoNotify: true})
	require.NoError(t, err)
	done := other.Future(quiet.ID()).Done()
	select {
	case <-done:
		t.Fatal("ended before it ran")
	default:
	}
	newExecutor(t, c, echo).all(t)
	for _, f := range []*futures.Future{quiet, other.Future(quiet.ID())} {
		r, err := f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, "ran ", string(r.Value))
	}
	require.NoError(t, c.Discard(ctx, quiet.ID()))
	_, err = other.Future(quiet.ID()).Await(ctx)
	require.ErrorIs(t, err, futures.ErrNotFound)
}

func TestMistakesWriteNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	oversize := make([]byte, layout.MaxPut+1)
	for name, task := range map[string]struct {
		task futures.Task
		want error
	}{
		"no function":      {futures.Task{}, layout.ErrBadName},
		"unknown module":   {futures.Task{Function: "wasm:nothing"}, fdbmodel.ErrNotFound},
		"oversize":         {futures.Task{Function: "go:upper", Args: oversize}, fdbmodel.ErrTooLarge},
		"bad queue":        {futures.Task{Function: "go:upper", Queue: "a b"}, layout.ErrBadName},
		"negative timeout": {futures.Task{Function: "go:upper", Timeout: -1}, layout.ErrBadSpec},
		"zero in argv":     {futures.Task{Function: "go:upper", Argv: []string{"a", "b\x00"}}, layout.ErrBadSpec},
		"unnamed variable": {futures.Task{Function: "go:upper", Env: map[string]string{"": "x"}}, layout.ErrBadSpec},
		"= in a name":      {futures.Task{Function: "go:upper", Env: map[string]string{"A=B": "x"}}, layout.ErrBadSpec},
		"zero in a value":  {futures.Task{Function: "go:upper", Env: map[string]string{"A": "\x00"}}, layout.ErrBadSpec},
	} {
		_, err := c.Submit(ctx, task.task)
		require.ErrorIs(t, err, task.want, name)
		_, err = c.SubmitMany(ctx, []futures.Task{{Function: "go:upper"}, task.task})
		require.ErrorIs(t, err, task.want, name)
	}
	first, err := c.Submit(ctx, futures.Task{Function: "go:upper", Key: "k", Args: []byte("a")})
	require.NoError(t, err)
	again, err := c.Submit(ctx, futures.Task{Function: "go:upper", Key: "k", Args: []byte("a")})
	require.NoError(t, err)
	require.True(t, again.Existed())
	require.Equal(t, first.ID(), again.ID())
	_, err = c.Submit(ctx, futures.Task{Function: "go:upper", Key: "k", Args: []byte("b")})
	require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	counts, err := c.Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(1), counts.Total(layout.Ready))
}

// TestArgumentsWrittenAhead submits arguments that are too large for the
// submit's own transaction.
func TestArgumentsWrittenAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	args := bytes.Repeat([]byte("ahead"), layout.MaxArgs/5+1)
	task := futures.Task{Function: "go:upper", Args: args, Key: "k"}
	first, err := c.Submit(ctx, task)
	require.NoError(t, err)
	require.False(t, first.Existed())
	many, err := c.SubmitMany(ctx, []futures.Task{task, {Function: "go:upper", Args: args}})
	require.NoError(t, err)
	require.Equal(t, first.ID(), many[0].ID())
	require.True(t, many[0].Existed())
	require.NotEqual(t, first.ID(), many[1].ID())
	for _, f := range many {
		row, err := c.Cluster().Get(ctx, f.ID())
		require.NoError(t, err)
		found, err := c.Cluster().Args(ctx, f.ID(), row.Spec)
		require.NoError(t, err)
		require.True(t, bytes.Equal(args, found))
	}
	task.Args = append(bytes.Clone(args), '!')
	_, err = c.Submit(ctx, task)
	require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	report, err := audit.Check(ctx, c.Cluster(), audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func TestCloseEndsAwaits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	defer db.Close()
	c, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	f, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := f.Await(ctx)
		ended <- err
	}()
	looked, followed := make(chan struct{}), make(chan error)
	go func() {
		followed <- c.Follow(ctx, f.ID(), func(futures.View) error { close(looked); return nil })
	}()
	<-looked
	require.NoError(t, c.Close(ctx))
	require.ErrorIs(t, <-ended, futures.ErrClosed)
	require.ErrorIs(t, <-followed, futures.ErrClosed)
	_, err = c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.ErrorIs(t, err, futures.ErrClosed)
	over, err := c.AwaitAny(ctx, []*futures.Future{f})
	require.ErrorIs(t, err, futures.ErrClosed)
	require.Nil(t, over, "it is not over")
}

func TestTypedRoundTrip(t *testing.T) {
	t.Parallel()
	type point struct{ X, Y int }
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	def := futures.Define[point, int]("upper")
	name, fn := def.Bind(func(_ context.Context, p point) (int, error) { return p.X * p.Y, nil })
	require.Equal(t, "upper", name)
	f, err := def.Submit(ctx, c, point{6, 7})
	require.NoError(t, err)
	newExecutor(t, c, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		value, err := fn(ctx, f.Inline)
		require.NoError(t, err)
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: value}}
	}).all(t)
	got, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 42, got)
}

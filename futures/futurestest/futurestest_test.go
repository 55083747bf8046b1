package futurestest_test

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
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	upper = futures.Define[string, string]("upper")
	sum   = futures.Define[int, int]("sum")
)

func TestRunsWhatIsAwaited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register(upper.Bind(func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil }))
	var fs []*futures.Future
	for i := range 500 {
		f, err := upper.Submit(ctx, c.Client, fmt.Sprintf("n%d", i))
		require.NoError(t, err)
		fs = append(fs, f.Future)
	}
	_, err := c.Client.AwaitAll(ctx, fs)
	require.NoError(t, err)
	text, err := upper.Of(fs[7]).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "N7", text)
	n := 0
	for _, o := range c.Client.AwaitEach(ctx, fs) {
		require.NoError(t, o.Err)
		n++
	}
	require.Equal(t, len(fs), n)
}

func TestAwaitJumpsOverBackoffs(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	var at []time.Duration
	start := c.Now()
	c.Register("flaky", func(context.Context, []byte) ([]byte, error) {
		if at = append(at, c.Now().Sub(start)); len(at) < 4 {
			return nil, errors.New("not yet")
		}
		return []byte("at last"), nil
	})
	f, err := c.Client.Submit(t.Context(), futures.Task{Function: "go:flaky", Delay: time.Hour})
	require.NoError(t, err)
	r, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "at last", string(r.Value))
	require.Equal(t, 4, r.Attempt)
	require.Len(t, at, 4)
	require.Equal(t, time.Hour, at[0])
	for i, base := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		wait := at[i+1] - at[i]
		require.GreaterOrEqual(t, wait, base/2-time.Millisecond)
		require.LessOrEqual(t, wait, base*3/2+time.Millisecond)
	}
}

// TestShortWaits has backoffs and delays below the interval of a janitor.
func TestShortWaits(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	start := c.Now()
	var at []time.Duration
	c.Register("flaky", func(context.Context, []byte) ([]byte, error) {
		if at = append(at, c.Now().Sub(start)); len(at) < 5 {
			return nil, errors.New("not yet")
		}
		return nil, nil
	})
	retries, backoff := 4, layout.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}
	task := futures.Task{Function: "go:flaky", MaxRetries: &retries, Backoff: backoff}
	f, err := c.Client.Submit(t.Context(), task)
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.NoError(t, err)
	require.Len(t, at, 5)
	require.Less(t, at[4], 100*time.Millisecond)

	at, task.Delay = nil, 7*time.Millisecond
	start = c.Now()
	_, err = c.Client.Submit(t.Context(), task)
	require.NoError(t, err)
	c.Advance(time.Second)
	require.Len(t, at, 5)
	require.Equal(t, 7*time.Millisecond, at[0])
}

func TestAdvanceRunsWhatComesDue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	runs := map[string]time.Time{}
	c.Register("note", func(_ context.Context, args []byte) ([]byte, error) {
		runs[string(args)] = c.Now()
		return nil, nil
	})
	start := c.Now()
	for _, minutes := range []int{30, 0, 10} {
		delay := time.Duration(minutes) * time.Minute
		_, err := c.Client.Submit(ctx, futures.Task{Function: "go:note", Args: []byte(delay.String()), Delay: delay})
		require.NoError(t, err)
	}
	require.Empty(t, runs)
	c.Run()
	require.Len(t, runs, 1)
	c.Advance(20 * time.Minute)
	require.Equal(t, map[string]time.Time{"0s": start, "10m0s": start.Add(10 * time.Minute)}, runs)
	require.Equal(t, start.Add(20*time.Minute), c.Now())
	c.Advance(time.Hour)
	require.Equal(t, start.Add(30*time.Minute), runs["30m0s"])
}

func TestFunctionsAwaitFutures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register(sum.Bind(func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		f, err := sum.Submit(ctx, c.Client, n-1)
		if err != nil {
			return 0, err
		}
		below, err := f.Await(ctx)
		return below + n, err
	}))
	var first *futures.Typed[int]
	for range 3 {
		f, err := sum.Submit(ctx, c.Client, 20)
		require.NoError(t, err)
		first = f
	}
	got, err := first.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 210, got)
}

// TestNestedWithOneSlot fans out in functions that take their client from their
// context: the only slot goes to what is awaited.
func TestNestedWithOneSlot(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	c.Register(sum.Bind(func(ctx context.Context, n int) (int, error) {
		client, err := futures.FromContext(ctx)
		if err != nil || n == 0 {
			return 1, err
		}
		require.Same(t, c.Client, client)
		below, err := sum.Map(ctx, client, slices.Repeat([]int{n - 1}, 4))
		if err != nil {
			return 0, err
		}
		counts, err := futures.AwaitAll(ctx, below)
		total := 0
		for _, n := range counts {
			total += n
		}
		return total, err
	}))
	all, err := sum.Map(t.Context(), c.Client, []int{3, 3})
	require.NoError(t, err)
	counts, err := futures.AwaitAll(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, []int{64, 64}, counts)
}

// TestRecursionBeyondTheBoundIsStuck, and says so.
func TestRecursionBeyondTheBoundIsStuck(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand nested functions take their time")
	}
	c := futurestest.New(t)
	var stuck error
	c.Register(sum.Bind(func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		below, err := sum.Call(ctx, c.Client, n-1, futures.Retries(0))
		if stuck == nil {
			stuck = err
		}
		return below, err
	}))
	_, err := sum.Call(t.Context(), c.Client, 1010, futures.Retries(0))
	require.ErrorIs(t, err, futures.ErrFailed)
	require.ErrorIs(t, stuck, futurestest.ErrStuck)
	require.ErrorContains(t, stuck, "nest them less deeply")
}

func TestSeveralGoroutinesAwait(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	c.Register(upper.Bind(func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil }))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			f, err := upper.Submit(t.Context(), c.Client, "x")
			if err == nil {
				_, err = f.Await(t.Context())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestStuckSaysWhy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	f, err := c.Client.Submit(ctx, futures.Task{Function: "go:unknown"})
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.ErrorIs(t, err, futurestest.ErrStuck)
	require.ErrorContains(t, err, "knows the function go:unknown")
	elsewhere, err := c.Client.Submit(ctx, futures.Task{Function: "go:unknown", Queue: "other"})
	require.NoError(t, err)
	_, err = elsewhere.Await(ctx)
	require.ErrorContains(t, err, `No worker serves the queue "other"`)
	_, err = c.Client.Future(futures.ID{1}).Await(ctx)
	require.ErrorIs(t, err, futures.ErrNotFound)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = f.Await(gone)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t, "special")
	c.Register("permanent", func(context.Context, []byte) ([]byte, error) {
		return nil, workers.Permanent(errors.New("refused"))
	})
	c.Register("panics", func(context.Context, []byte) ([]byte, error) { panic("oh") })
	none := 0
	for function, want := range map[string]layout.FailureKind{
		"go:permanent": layout.KindError, "go:panics": layout.KindPanic,
	} {
		f, err := c.Client.Submit(ctx, futures.Task{
			Function: function, Queue: "special", MaxRetries: &none,
			Requirements: layout.Requirements{CPU: 64_000, RAM: 1 << 42, GPU: 8000, Labels: map[string]string{"zone": "a"}},
		})
		require.NoError(t, err)
		_, err = f.Await(ctx)
		var failed *futures.FailedError
		require.ErrorAs(t, err, &failed, function)
		require.Equal(t, want, failed.Kind, function)
	}
}

// fussy is a type whose own decoder panics on what it does not expect.
type fussy struct{ N int }

func (f *fussy) UnmarshalJSON(b []byte) error {
	f.N = int(b[2] - '0')
	return nil
}

// TestArgumentsThatDoNotDecode has one attempt for each, whatever retries are
// left, and says what was wrong.
func TestArgumentsThatDoNotDecode(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register(sum.Bind(func(_ context.Context, n int) (int, error) { return n, nil }))
	c.Register(futures.Define[fussy, int]("fussy").Bind(func(_ context.Context, f fussy) (int, error) { return f.N, nil }))
	for _, bad := range []struct{ function, codec, args, want string }{
		{"go:sum", futures.CodecMsgpack, "\xc1", "1 bytes of msgpack do not decode as int: "},
		{"go:sum", futures.CodecMsgpack, "\x01\x02", "1 bytes after the value"},
		{"go:sum", futures.CodecJSON, `"1"`, "3 bytes of json do not decode as int: json: "},
		{"go:sum", "", "text", `of the codec "raw", which are read as msgpack, do not decode as int: `},
		{"go:sum", futures.CodecArgv, "", `0 bytes of the codec "argv"`},
		{"go:fussy", futures.CodecJSON, "1", "do not decode as futurestest_test.fussy: the decoder panicked: "},
	} {
		f, err := c.Client.Submit(ctx, futures.Task{Function: bad.function, Codec: bad.codec, Args: []byte(bad.args)})
		require.NoError(t, err)
		_, err = f.Await(ctx)
		var failed *futures.FailedError
		require.ErrorAs(t, err, &failed, bad.want)
		require.Equal(t, layout.KindError, failed.Kind)
		require.Contains(t, failed.Message, "arguments of "+bad.function+": ")
		require.Contains(t, failed.Message, bad.want)
		v, err := c.Client.Get(ctx, f.ID())
		require.NoError(t, err)
		require.Equal(t, 1, v.Attempt, "no further attempt could decode them")
	}
}

// TestRequireFit refuses what the worker could not run, in each kind of submit.
func TestRequireFit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register(sum.Bind(func(_ context.Context, n int) (int, error) { return n, nil }))
	c.Run() // the worker registers
	n, err := sum.Call(ctx, c.Client, 7, futures.RequireFit())
	require.NoError(t, err)
	require.Equal(t, 7, n)
	_, err = upper.Submit(ctx, c.Client, "x")
	require.NoError(t, err, "its worker may come later")
	_, err = upper.Submit(ctx, c.Client, "x", futures.RequireFit())
	require.ErrorIs(t, err, futures.ErrUnfit)
	require.ErrorContains(t, err, "knows the function go:upper; they know go:sum, wasm:*. Register it with one.")
	_, err = sum.Map(ctx, c.Client, []int{1, 2}, futures.RequireFit(), futures.Queue("other"))
	require.ErrorIs(t, err, futures.ErrUnfit)
	require.ErrorContains(t, err, `No worker serves the queue "other"; they serve default.`)
	tx := c.Client.Cluster().Database().Begin(kv.Options{})
	defer tx.Cancel()
	tasks := []futures.Task{{Function: "go:upper", RequireFit: true}}
	_, err = c.Client.SubmitTx(ctx, tx, tasks)
	require.ErrorIs(t, err, futures.ErrUnfit)
	counts, err := c.Client.Counts(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, counts.Total(layout.Ready))
}

// TestTimeouts runs functions that take time on the cluster's clock.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	var causes []error
	c.Register("slow", func(ctx context.Context, args []byte) ([]byte, error) {
		d, err := time.ParseDuration(string(args))
		if err != nil {
			return nil, workers.Permanent(err)
		}
		c.Elapse(d)
		causes = append(causes, context.Cause(ctx))
		return args, nil
	})
	c.Register("outer", func(ctx context.Context, _ []byte) ([]byte, error) {
		inner, err := c.Client.Submit(ctx, futures.Task{Function: "go:slow", Args: []byte("2m")})
		if err == nil {
			_, err = inner.Await(ctx)
		}
		causes = []error{context.Cause(ctx)}
		return nil, err
	})
	slow := func(took string) futures.Task {
		return futures.Task{Function: "go:slow", Args: []byte(took), Timeout: time.Minute}
	}
	f, err := c.Client.Submit(ctx, slow("59s"))
	require.NoError(t, err)
	r, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "59s", string(r.Value))
	require.Equal(t, []error{nil}, causes)

	f, err = c.Client.Submit(ctx, slow("1m"))
	require.NoError(t, err)
	_, err = f.Await(ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, layout.KindTimeout, failed.Kind)
	require.Len(t, causes, 2+futures.DefaultMaxRetries)
	require.ErrorIs(t, causes[1], workers.ErrTimeout)

	// The time that an awaited function takes counts towards the timeout of the
	// function that awaits it.
	none := 0
	f, err = c.Client.Submit(ctx, futures.Task{Function: "go:outer", Timeout: time.Minute, MaxRetries: &none})
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, layout.KindTimeout, failed.Kind)
	require.ErrorIs(t, causes[0], workers.ErrTimeout)
}

// TestCancelOfARunningFunction cancels a future while its function runs.
func TestCancelOfARunningFunction(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	var (
		f          *futures.Future
		err, cause error
	)
	c.Register("slow", func(ctx context.Context, _ []byte) ([]byte, error) {
		outcome, err := f.Cancel(ctx, "not needed")
		if err != nil || outcome != futures.Requested {
			return nil, fmt.Errorf("cancel: %v, %w", outcome, err)
		}
		c.Elapse(time.Second)
		cause = context.Cause(ctx)
		return nil, cause
	})
	f, err = c.Client.Submit(t.Context(), futures.Task{Function: "go:slow"})
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrCancelled)
	require.ErrorIs(t, cause, workers.ErrCancelled)
}

func TestRetentionPasses(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	c.Register("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	f, err := c.Client.Submit(t.Context(), futures.Task{Function: "go:noop"})
	require.NoError(t, err)
	c.Advance(23 * time.Hour)
	_, err = c.Client.Get(t.Context(), f.ID())
	require.NoError(t, err)
	c.Advance(2 * time.Hour)
	_, err = c.Client.Get(t.Context(), f.ID())
	require.ErrorIs(t, err, futures.ErrNotFound)
	_, err = f.Await(t.Context())
	require.NoError(t, err, "the handle keeps what it knows")
}

// TestMiddleware is around the functions of a test, and its awaits go on.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	var order []string
	by := func(name string) workers.Middleware {
		return func(next workers.Call) workers.Call {
			return func(ctx context.Context, args []byte) ([]byte, error) {
				order = append(order, name)
				return next(ctx, args)
			}
		}
	}
	c.Use(by("outer"))
	c.Use(by("inner"))
	outer, inner := futures.Define[int, int]("outer"), futures.Define[int, int]("inner")
	c.Register(inner.Bind(func(_ context.Context, n int) (int, error) { return n + 1, nil }))
	c.Register(outer.Bind(func(ctx context.Context, n int) (int, error) { return inner.Call(ctx, c.Client, n) }))
	n, err := outer.Call(context.Background(), c.Client, 1)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"outer", "inner", "outer", "inner"}, order)
}

// TestProgressIsFollowed: each attempt's, and the attempts before it.
func TestProgressIsFollowed(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	load := futures.Define[int, int]("load", futures.Retries(1))
	c.Register(load.Bind(func(ctx context.Context, n int) (int, error) {
		info, _ := workers.InfoFrom(ctx)
		for i := range n {
			require.NoError(t, workers.Progress(ctx, int64(i+1), int64(n), ""))
			c.Elapse(time.Second)
		}
		if info.Attempt == 1 {
			return 0, errors.New("no connection")
		}
		return n, nil
	}))
	future, err := load.Submit(context.Background(), c.Client, 3)
	require.NoError(t, err)
	var seen []futures.View
	require.NoError(t, c.Client.Follow(context.Background(), future.ID(), func(v futures.View) error {
		seen = append(seen, v)
		return nil
	}))
	require.Equal(t, futures.Ready, seen[0].State)
	last := seen[len(seen)-1]
	require.Equal(t, futures.Realized, last.State)
	require.Equal(t, int64(3), last.Progress.Done)
	require.Equal(t, int64(3), last.Progress.Total)
	require.Len(t, last.Attempts, 2)
	require.Equal(t, "no connection", last.Attempts[0].Message)
	require.Equal(t, 3*time.Second, last.Attempts[0].EndedAt.Sub(last.Attempts[0].StartedAt))
}

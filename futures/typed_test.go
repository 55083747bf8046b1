package futures_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/internal/taskcontext"
)

// order has a field of most kinds that programs use.
type order struct {
	Name  string
	Count int64
	Price float64
	Lines []line
	Notes map[string]string
	Raw   []byte
	Due   time.Time
	Next  *line
}

type line struct {
	Item string
	N    uint8
}

func genOrder(t *rapid.T) order {
	genLine := rapid.Custom(func(t *rapid.T) line {
		return line{Item: rapid.String().Draw(t, "item"), N: rapid.Uint8().Draw(t, "n")}
	})
	o := order{
		Name: rapid.String().Draw(t, "name"), Count: rapid.Int64().Draw(t, "count"),
		Price: rapid.Float64().Draw(t, "price"), Lines: rapid.SliceOfN(genLine, 1, 4).Draw(t, "lines"),
		Notes: rapid.MapOfN(rapid.String(), rapid.String(), 1, 4).Draw(t, "notes"),
		Raw:   rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "raw"),
		Due:   time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "due"), 0),
	}
	if rapid.Bool().Draw(t, "has next") {
		next := genLine.Draw(t, "next")
		o.Next = &next
	}
	return o
}

func TestTypedValuesRoundTrip(t *testing.T) {
	t.Parallel()
	def := futures.Define[order, order]("upper")
	rapid.Check(t, func(t *rapid.T) {
		in := genOrder(t)
		task, err := def.Task(in)
		require.NoError(t, err)
		require.Equal(t, "go:upper", task.Function)
		require.Equal(t, layout.CodecMsgpack, task.Codec)
		_, run := def.Bind(func(_ context.Context, got order) (order, error) {
			require.Equal(t, in, got)
			got.Count++
			return got, nil
		})
		value, err := run(context.Background(), task.Args)
		require.NoError(t, err)
		var out order
		require.NoError(t, msgpack.Unmarshal(value, &out))
		in.Count++
		require.Equal(t, in, out)
	})
}

// TestRawBytesAreThemselves has arguments and results that are raw: []byte and string are
// these bytes, all else is read as msgpack.
func TestRawBytesAreThemselves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	text, err := c.Put(ctx, strings.NewReader("a text"), futures.PutOptions{})
	require.NoError(t, err)
	bytesOf, err := futures.Define[struct{}, []byte]("any").Of(text).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, []byte("a text"), bytesOf)
	_, err = futures.Define[struct{}, int]("any").Of(text).Await(ctx)
	require.Error(t, err)

	upper := futures.Define[string, string]("upper")
	f, err := c.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("a text")})
	require.NoError(t, err)
	_, run := upper.Bind(func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil })
	newExecutor(t, c, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		value, err := run(context.WithValue(ctx, taskcontext.CodecKey{}, f.Spec.Codec), f.Inline)
		require.NoError(t, err)
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Codec: f.Spec.Codec, Value: value}}
	}).all(t)
	got, err := upper.Of(f).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "A TEXT", got)
}

func TestTypedErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	unencodable := futures.Define[chan int, chan int]("upper")
	_, err := unencodable.Submit(ctx, c, make(chan int))
	require.ErrorContains(t, err, "arguments of upper")
	_, run := futures.Define[int, chan int]("upper").Bind(func(context.Context, int) (chan int, error) {
		return make(chan int), nil
	})
	one, err := msgpack.Marshal(1)
	require.NoError(t, err)
	_, err = run(ctx, one)
	require.ErrorContains(t, err, "result of go:upper: it does not encode as")
	var permanent interface{ Permanent() bool }
	require.ErrorAs(t, err, &permanent)
	require.True(t, permanent.Permanent(), "its function would do its work again")
	refused := errors.New("refused")
	_, run = futures.Define[int, int]("upper").Bind(func(context.Context, int) (int, error) { return 0, refused })
	_, err = run(ctx, one)
	require.ErrorIs(t, err, refused)

	_, err = futures.Define[int, int]("bad name").Submit(ctx, c, 1)
	require.ErrorIs(t, err, layout.ErrBadName)
	def := futures.Define[int, int]("upper")
	f, err := def.Submit(ctx, c, 1, func(t *futures.Task) { t.Key = "one" })
	require.NoError(t, err)
	newExecutor(t, c, echo).all(t)
	_, err = f.Await(ctx)
	require.ErrorContains(t, err, "result of future")
	again := def.Of(c.Future(layout.KeyedID(c.Cluster().Name(), "one")))
	require.Equal(t, f.ID(), again.ID())
}

func FuzzTypedArguments(f *testing.F) {
	whole, err := msgpack.Marshal(order{Name: "x", Lines: []line{{"a", 1}}, Notes: map[string]string{"k": "v"}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{0xc1})
	// nil for a time
	f.Add([]byte("\x81\xa3Due\xc0"))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	_, run := futures.Define[order, order]("upper").Bind(func(_ context.Context, o order) (order, error) { return o, nil })
	f.Fuzz(func(t *testing.T, args []byte) {
		value, err := run(context.Background(), args)
		if err != nil {
			require.ErrorContains(t, err, "arguments of go:upper")
			return
		}
		require.NotEmpty(t, value)
	})
}

func TestOptionsOfDefinitionAndSubmit(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	def := futures.Define[int, int]("upper", futures.Retries(5), futures.Queue("slow"), futures.Timeout(time.Minute))
	at := time.Unix(4_000_000_000, 0)
	f, err := def.Submit(t.Context(), c, 1, futures.Queue("fast"), futures.Priority(9), futures.NotBefore(at),
		futures.Backoff(time.Second, time.Hour), futures.Key("k"), futures.Label("g"),
		futures.Requires(futures.Requirements{CPU: 500}))
	require.NoError(t, err)
	require.Equal(t, layout.KeyedID(c.Cluster().Name(), "k"), f.ID())
	v, err := c.Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Equal(t, "fast", v.Queue)
	require.Equal(t, "g", v.Label)
	require.EqualValues(t, 9, v.Priority)
	require.Equal(t, 6, v.MaxAttempts)
	require.Equal(t, time.Minute, v.Timeout)
	require.Equal(t, futures.Requirements{CPU: 500}, v.Requirements)
	require.Equal(t, futures.Delayed, v.State)
	require.True(t, v.DueAt.Equal(at))
	require.False(t, v.SubmittedAt.IsZero())
	require.True(t, v.FinishedAt.IsZero())
	require.Nil(t, v.Result)

	task, err := def.Task(1, futures.Delay(time.Hour), futures.OnWorker("w"), futures.Unawaited())
	require.NoError(t, err)
	require.Equal(t, time.Hour, task.Delay)
	require.Equal(t, futures.WorkerID("w"), task.Worker)
	require.True(t, task.NoNotify)
	require.Equal(t, "slow", task.Queue)
}

// double ends futures of go:upper with twice their argument, and fails those
// with an odd one.
func double(t *testing.T) func(*fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		var n int
		require.NoError(t, msgpack.Unmarshal(f.Inline, &n))
		if n%2 == 1 {
			return fdbmodel.Completion{Future: f, Permanent: true, Exception: &layout.Exception{
				Kind: layout.KindError, Message: "odd",
			}}
		}
		value, err := msgpack.Marshal(2 * n)
		require.NoError(t, err)
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Codec: f.Spec.Codec, Value: value}}
	}
}

func TestMapAndTypedAwaits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newClient(t, storetest.New(t))
	def := futures.Define[int, int]("upper")
	fs, err := def.Map(ctx, c, []int{2, 3, 4})
	require.NoError(t, err)
	require.Len(t, fs, 3)
	e := newExecutor(t, c, double(t))
	e.all(t)
	outs, err := futures.AwaitAll(ctx, fs)
	require.ErrorIs(t, err, futures.ErrFailed)
	require.ErrorContains(t, err, "of go:upper failed (error)")
	require.Equal(t, []int{4, 0, 8}, outs)
	v, err := c.Get(ctx, fs[1].ID())
	require.NoError(t, err)
	require.Equal(t, "odd", v.Failure.Message)
	require.True(t, v.Failure.Final)
	require.False(t, v.FinishedAt.IsZero())

	none, err := futures.AwaitAll[int](ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none)
	nobody, err := futures.AwaitAny[int](ctx, nil)
	require.NoError(t, err)
	require.Nil(t, nobody)

	never, err := def.Submit(ctx, c, 8, futures.Delay(time.Hour))
	require.NoError(t, err)
	first, err := futures.AwaitAny(ctx, []*futures.Typed[int]{never, fs[2]})
	require.NoError(t, err)
	require.Equal(t, fs[2].ID(), first.ID())
	out, err := first.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 8, out)

	_, err = c.Future(fs[1].ID()).Await(ctx)
	require.ErrorContains(t, err, "of go:upper failed (error)", "the function is known to handles from elsewhere too")

	text := futures.Define[int, string]("upper")
	_, err = futures.AwaitAll(ctx, []*futures.Typed[string]{text.Of(c.Future(fs[0].ID()))})
	require.ErrorContains(t, err, "result of future")
	_, err = futures.Define[chan int, int]("upper").Map(ctx, c, []chan int{nil, make(chan int)})
	require.ErrorContains(t, err, "input ")

	ended, end := context.WithCancel(ctx)
	end()
	_, err = def.Call(ended, c, 10)
	require.ErrorIs(t, err, context.Canceled)
}

func TestListAnswersViews(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newClient(t, storetest.New(t))
	fs, err := futures.Define[int, int]("upper").Map(ctx, c, []int{2, 4})
	require.NoError(t, err)
	newExecutor(t, c, double(t)).all(t)
	views, next, err := c.List(ctx, futures.Filter{State: futures.Realized}, nil, 0)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, views, 2)
	for i := range views {
		require.Contains(t, []futures.ID{fs[0].ID(), fs[1].ID()}, views[i].ID)
		require.Equal(t, "go:upper", views[i].Function)
		require.Equal(t, futures.CodecMsgpack, views[i].Result.Codec)
		require.Equal(t, 1, views[i].Attempt)
		require.NotEmpty(t, views[i].Worker)
	}
	_, _, err = c.List(ctx, futures.Filter{}, []byte("no cursor"), 0)
	require.ErrorIs(t, err, futures.ErrBadCursor)
}

func TestCancelSaysDoneOrRequested(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newClient(t, storetest.New(t))
	waiting, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	for range 2 {
		came, err := waiting.Cancel(ctx, "enough")
		require.NoError(t, err)
		require.Equal(t, futures.Done, came)
	}
	running, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	e := newExecutor(t, c, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		came, err := c.Cancel(ctx, f.ID, "stop it")
		require.NoError(t, err)
		require.Equal(t, futures.Requested, came)
		v, err := c.Get(ctx, f.ID)
		require.NoError(t, err)
		require.Equal(t, "stop it", v.CancelReason)
		require.False(t, v.CancelAsked.IsZero())
		return fdbmodel.Completion{Future: f, Relinquish: true}
	})
	require.Equal(t, 1, e.batch(t))
	_, err = running.Await(ctx)
	require.ErrorIs(t, err, futures.ErrCancelled)
	_, err = c.Cancel(ctx, futures.ID{1}, "")
	require.ErrorIs(t, err, futures.ErrNotFound)
	require.Equal(t, "done requested unknown",
		futures.Done.String()+" "+futures.Requested.String()+" "+futures.Cancellation(0).String())
}

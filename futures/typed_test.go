package futures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

// order has one field of most kinds that programs pass around.
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

func TestTypedErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	unencodable := futures.Define[chan int, chan int]("upper")
	_, err := unencodable.Submit(ctx, c, make(chan int))
	require.ErrorContains(t, err, "arguments of upper")
	_, run := unencodable.Bind(func(context.Context, chan int) (chan int, error) { return make(chan int), nil })
	null, err := msgpack.Marshal(nil)
	require.NoError(t, err)
	_, err = run(ctx, null)
	require.Error(t, err)
	refused := errors.New("refused")
	_, run = futures.Define[int, int]("upper").Bind(func(context.Context, int) (int, error) { return 0, refused })
	one, err := msgpack.Marshal(1)
	require.NoError(t, err)
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
			require.ErrorContains(t, err, "arguments of upper")
			return
		}
		require.NotEmpty(t, value)
	})
}

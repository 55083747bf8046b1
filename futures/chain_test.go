package futures_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

// parts has results of futures at some depths.
type parts struct {
	Left  futures.Arg[int]
	Right futures.Arg[int]
	Words []futures.Arg[string]
	By    map[string]futures.Arg[[]byte]
	Plain string
}

var (
	twofold = futures.Define[int, int]("twofold")
	sum     = futures.Define[[]int, int]("sum")
	shout   = futures.Define[string, string]("shout")
	join    = futures.Define[parts, string]("join")
	count   = futures.Define[string, int]("count")
)

func chainCluster(t *testing.T) *futurestest.Cluster {
	cluster := futurestest.New(t)
	cluster.Register(twofold.Bind(func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	cluster.Register(sum.Bind(func(_ context.Context, ns []int) (int, error) {
		total := 0
		for _, n := range ns {
			total += n
		}
		return total, nil
	}))
	cluster.Register(shout.Bind(func(_ context.Context, s string) (string, error) {
		if s == "" {
			return "", workers.Permanent(errors.New("nothing to shout"))
		}
		return strings.ToUpper(s), nil
	}))
	cluster.Register(join.Bind(func(_ context.Context, p parts) (string, error) {
		return fmt.Sprintf("%d %v %s %s", p.Left.Get()+p.Right.Get(), futures.Values(p.Words), p.By["a"].Get(), p.Plain), nil
	}))
	cluster.Register(count.Bind(func(_ context.Context, s string) (int, error) { return len(s), nil }))
	cluster.Register("raw", func(ctx context.Context, args []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		return append(args, info.Codec...), nil
	})
	return cluster
}

func TestArgumentsAreResults(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), chainCluster(t)
	two, err := twofold.Submit(ctx, c.Client, 1, futures.Delay(time.Hour))
	require.NoError(t, err)
	loud, err := shout.Submit(ctx, c.Client, "hear")
	require.NoError(t, err)
	raw, err := c.Client.Submit(ctx, futures.Task{Function: "go:raw", Args: []byte{0xff}})
	require.NoError(t, err)
	f, err := join.Submit(ctx, c.Client, parts{
		Left: futures.From(two), Right: futures.Value(40), Words: append(futures.All([]*futures.Typed[string]{loud, loud}),
			futures.Value("ye")), By: map[string]futures.Arg[[]byte]{"a": futures.FromID[[]byte](raw.ID())}, Plain: "plain",
	})
	require.NoError(t, err)
	view, err := c.Client.Get(ctx, f.ID())
	require.NoError(t, err)
	require.Equal(t, futures.Blocked, view.State)
	got, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "42 [HEAR HEAR ye] \xffraw plain", got)
}

func TestArgumentsInJSON(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), chainCluster(t)
	two, err := twofold.Submit(ctx, c.Client, 1)
	require.NoError(t, err)
	args, err := json.Marshal([]any{json.RawMessage(reference.JSON(two.ID())), 40, futures.From(two)})
	require.NoError(t, err)
	f, err := c.Client.Submit(ctx, futures.Task{Function: "go:sum", Codec: futures.CodecJSON, Args: args})
	require.NoError(t, err)
	r, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "44", string(r.Value))

	whole, err := c.Client.Submit(ctx, futures.Task{Function: "go:raw", Codec: futures.CodecInputs,
		After: []futures.ID{f.ID(), f.ID()}})
	require.NoError(t, err)
	r, err = whole.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "44raw", string(r.Value))
	for _, bad := range []futures.Task{
		{Function: "go:sum", Codec: futures.CodecJSON, Args: []byte(`[{"$future":"x"}]`)},
		{Function: "go:raw", Codec: futures.CodecInputs},
		{Function: "go:raw", Codec: futures.CodecInputs, Args: []byte("x"), After: []futures.ID{f.ID()}},
		{Function: "go:raw", After: []futures.ID{{1}}},
	} {
		_, err := c.Client.Submit(ctx, bad)
		require.ErrorIs(t, err, layout.ErrBadSpec, "%+v", bad)
	}
}

func TestThenAndReduce(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), chainCluster(t)
	leaves, err := twofold.Map(ctx, c.Client, slices.Repeat([]int{1, 2, 3}, 67))
	require.NoError(t, err)
	twice, err := futures.ThenEach(ctx, c.Client, leaves, twofold)
	require.NoError(t, err)
	for _, width := range []int{2, 7, 500} {
		total, err := futures.Reduce(ctx, c.Client, twice, sum, width)
		require.NoError(t, err)
		n, err := total.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 6*4*67, n)
	}
	same, err := futures.Reduce(ctx, c.Client, twice[:1], sum, 2)
	require.NoError(t, err)
	require.Same(t, twice[0], same)
	for _, bad := range []int{0, 1, 10_001} {
		_, err = futures.Reduce(ctx, c.Client, twice, sum, bad)
		require.ErrorIs(t, err, layout.ErrBadSpec)
	}
	_, err = futures.Reduce(ctx, c.Client, nil, sum, 2)
	require.ErrorIs(t, err, layout.ErrBadSpec)
}

func TestUpstreamFailureReachesTheCaller(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), chainCluster(t)
	f, err := shout.Submit(ctx, c.Client, "")
	require.NoError(t, err)
	length, err := futures.Then(ctx, c.Client, f, count)
	require.NoError(t, err)
	last, err := count.Submit(ctx, c.Client, "apart", futures.After(length, f))
	require.NoError(t, err)
	_, err = last.Await(ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindUpstream, failed.Kind)
	require.ErrorContains(t, err, "nothing to shout")
}

// TestResultsThatDoNotFit gives functions results that they can't take.
func TestResultsThatDoNotFit(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), chainCluster(t)
	binary, err := c.Client.Submit(ctx, futures.Task{Function: "go:raw", Args: []byte{0xff}})
	require.NoError(t, err)
	f, err := c.Client.Submit(ctx, futures.Task{Function: "go:count", Codec: futures.CodecJSON,
		Args: reference.JSON(binary.ID())})
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.ErrorContains(t, err, "UTF-8")
	word, err := shout.Submit(ctx, c.Client, "word")
	require.NoError(t, err)
	wrong, err := twofold.Submit(ctx, c.Client, 0, func(t *futures.Task) { t.Args = reference.Append(nil, word.ID()) })
	require.NoError(t, err)
	_, err = wrong.Await(ctx)
	require.ErrorContains(t, err, "arguments of go:twofold")
}

func TestArgsThatMayBeLeftOut(t *testing.T) {
	t.Parallel()
	type options struct {
		From futures.Arg[string] `msgpack:"f,omitempty" json:"f,omitzero"`
		Size futures.Arg[int]    `msgpack:"s,omitempty" json:"s,omitzero"`
	}
	for _, c := range []struct {
		options
		fields int
	}{
		{options{}, 0}, {options{Size: futures.Value(7)}, 1},
		{options{futures.FromID[string](futures.ID{1}), futures.Value(7)}, 2},
	} {
		for name, marshal := range map[string]func(any) ([]byte, error){"msgpack": msgpack.Marshal, "json": json.Marshal} {
			encoded, err := marshal(c.options)
			require.NoError(t, err)
			var fields map[string]any
			if name == "json" {
				require.NoError(t, json.Unmarshal(encoded, &fields))
			} else if c.fields < 2 {
				require.NoError(t, msgpack.Unmarshal(encoded, &fields))
			} else {
				ids, err := reference.Of(futures.CodecMsgpack, encoded)
				require.NoError(t, err)
				require.Len(t, ids, 1)
				continue
			}
			require.Len(t, fields, c.fields, "%s", encoded)
		}
	}
}

func TestArgEncodesAsItsValue(t *testing.T) {
	t.Parallel()
	for _, v := range []futures.Arg[map[string]int]{{}, futures.Value(map[string]int{"a": 1})} {
		packed, err := msgpack.Marshal(&v)
		require.NoError(t, err)
		want, err := msgpack.Marshal(v.Get())
		require.NoError(t, err)
		require.Equal(t, want, packed)
		var back futures.Arg[map[string]int]
		require.NoError(t, msgpack.Unmarshal(packed, &back))
		require.Equal(t, v, back)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, v, back)
	}
	from := futures.FromID[int](futures.ID{7, 6: 0x70, 8: 0x80})
	require.Equal(t, futures.ID{7, 6: 0x70, 8: 0x80}, from.Future())
	packed, err := msgpack.Marshal(from)
	require.NoError(t, err)
	var got futures.Arg[int]
	require.Error(t, msgpack.Unmarshal(packed, &got), "nothing has replaced it")
	text, err := json.Marshal(from)
	require.NoError(t, err)
	require.Error(t, json.Unmarshal(text, &got))
}

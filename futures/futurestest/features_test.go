package futurestest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

var (
	write = futures.Define[string, string]("write").InLane("write", func(s string) string { return s[:1] })
	join  = futures.Define[[]string, string]("join")
	glue  = futures.Define[parts, string]("glue")
)

type parts struct{ A, B futures.Arg[string] }

// echoed registers upper, join and glue.
func echoed(c *futurestest.Cluster) {
	c.Register(upper.Bind(func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil }))
	c.Register(join.Bind(func(_ context.Context, s []string) (string, error) { return strings.Join(s, "+"), nil }))
	c.Register(glue.Bind(func(_ context.Context, p parts) (string, error) { return p.A.Get() + p.B.Get(), nil }))
}

// TestMembersRunTogether has a call run all that is in line for one key; a member awaits a
// future by its own context, one fails, and one that failed once gets in line again.
func TestMembersRunTogether(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	echoed(c)
	var calls [][]string
	c.RegisterBundle("write", func(ctx context.Context, key string, members []workers.Member,
	) ([]workers.MemberEnd, error) {
		call := []string{key}
		ends := make([]workers.MemberEnd, len(members))
		for i := range members {
			m := &members[i]
			in, err := write.Decode(m.Codec, m.Args)
			if err != nil {
				return nil, err
			}
			call = append(call, in)
			switch {
			case strings.HasSuffix(in, "!") && m.Attempt == 1:
				ends[i].Err = errors.New("not now")
			case strings.HasSuffix(in, "?"):
				ends[i].Err = workers.Permanent(errors.New("never"))
			default:
				client, err := futures.FromContext(ctx)
				if err != nil {
					return nil, err
				}
				text, err := upper.Call(m.Context(), client, in)
				if err != nil {
					return nil, err
				}
				ends[i].Value, ends[i].Err = write.Encode(m.Codec, text)
			}
		}
		calls = append(calls, call)
		return ends, nil
	})
	require.NoError(t, c.Client.SetLaneKind(ctx, "write", futures.LaneSettings{Width: 1, Bundle: "go:write", Most: 10}))
	fs, err := write.Map(ctx, c.Client, []string{"a1", "b1", "a2!", "a3?", "a4"})
	require.NoError(t, err)
	texts, err := futures.AwaitAll(ctx, fs)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, fs[3].ID(), failed.ID)
	require.Equal(t, []string{"A1", "B1", "A2!", "", "A4"}, texts)
	slices.SortFunc(calls, func(a, b []string) int { return len(b) - len(a) })
	require.Equal(t, []string{"a", "a1", "a2!", "a3?", "a4"}, calls[0])
	require.ElementsMatch(t, [][]string{{"b", "b1"}, {"a", "a2!"}}, calls[1:])
}

func TestResultsAsArguments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	echoed(c)
	a, err := upper.Submit(ctx, c.Client, "a", futures.Delay(time.Hour))
	require.NoError(t, err)
	put, err := futures.PutValue(ctx, c.Client, "b", futures.PutOptions{})
	require.NoError(t, err)
	both, err := glue.Call(ctx, c.Client, parts{futures.From(a), futures.From(put)})
	require.NoError(t, err)
	require.Equal(t, "Ab", both)
	then, err := futures.Then(ctx, c.Client, put, upper)
	require.NoError(t, err)
	all, err := futures.Reduce(ctx, c.Client, []*futures.Typed[string]{a, put, then}, join, 2)
	require.NoError(t, err)
	text, err := all.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "A+b+B", text)
}

// TestLanesRatesAndPauses: lanes run in order, rates pass on the clock, and what is paused is
// stuck until it is resumed.
func TestLanesRatesAndPauses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	echoed(c)
	var began []time.Duration
	var order []string
	start := c.Now()
	c.Register(write.Bind(func(_ context.Context, s string) (string, error) {
		began, order = append(began, c.Now().Sub(start).Round(time.Second)), append(order, s)
		return s, nil
	}))
	require.NoError(t, c.Client.SetLaneKind(ctx, "write", futures.LaneSettings{Width: 1, Rate: 1, Every: time.Hour}))
	fs, err := write.Map(ctx, c.Client, []string{"a1", "a2", "a3"})
	require.NoError(t, err)
	_, err = futures.AwaitAll(ctx, fs)
	require.NoError(t, err)
	require.Equal(t, []string{"a1", "a2", "a3"}, order)
	require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour}, began)

	_, err = c.Client.Pause(ctx, futures.PauseFunction, "go:upper", "a test")
	require.NoError(t, err)
	f, err := upper.Submit(ctx, c.Client, "x")
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.ErrorIs(t, err, futurestest.ErrStuck)
	require.ErrorContains(t, err, "paused")
	_, err = c.Client.Resume(ctx, futures.PauseFunction, "go:upper")
	require.NoError(t, err)
	text, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "X", text)
}

func TestSchedulesAndDeadlines(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	echoed(c)
	task, err := upper.Task("tick")
	require.NoError(t, err)
	_, err = c.Client.PutSchedule(ctx, futures.Schedule{Name: "hourly", Task: task, Every: time.Hour})
	require.NoError(t, err)
	c.Advance(3*time.Hour + time.Minute)
	view, err := c.Client.Schedule(ctx, "hourly", 1)
	require.NoError(t, err)
	require.EqualValues(t, 4, view.Fired, "now, and after each hour")
	require.NoError(t, c.Client.RemoveSchedule(ctx, "hourly"))

	_, err = c.Client.Pause(ctx, futures.PauseFunction, "go:upper", "a test")
	require.NoError(t, err)
	_, err = upper.Call(ctx, c.Client, "x", futures.Expires(time.Minute))
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.EqualValues(t, "expired", failed.Kind)
}

// TestValuesStreamsAndObjects puts a stream, and has a function write its result, which is
// submitted as an object.
func TestValuesStreamsAndObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register("copy", func(ctx context.Context, args []byte) ([]byte, error) {
		w, err := workers.ResultWriter(ctx)
		for range 3 {
			if err == nil {
				_, err = w.Write(args)
			}
		}
		return nil, err
	})
	args := bytes.Repeat([]byte("x"), 1<<20)
	f, err := c.Client.Submit(ctx, futures.Task{Function: "go:copy", Args: args, AsObject: true})
	require.NoError(t, err)
	put, err := c.Client.Put(ctx, strings.NewReader("a stream"), futures.PutOptions{})
	require.NoError(t, err)
	for future, want := range map[*futures.Future]int{f: 3 << 20, put: len("a stream")} {
		_, err := future.Await(ctx)
		require.NoError(t, err)
		stream, err := future.Open(ctx)
		require.NoError(t, err)
		got, err := io.Copy(io.Discard, stream)
		require.NoError(t, errors.Join(err, stream.Close()))
		require.EqualValues(t, want, got)
	}
}

// standIn runs no module, and says what it was called with.
type standIn struct{}

func (standIn) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	code, err := call.Load(ctx)
	return workers.ModuleOutcome{Stdout: fmt.Appendf(nil, "%s %v %s", code, call.Argv, call.Stdin)}, err
}

func TestModulesRunByAStandIn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	module, err := modules.Of(c.Client.Cluster()).Put(ctx, []byte("code"), "tool")
	require.NoError(t, err)
	task := futures.Task{Function: "wasm:tool", Argv: []string{"-v"}, Args: []byte("in")}
	f, err := c.Client.Submit(ctx, task)
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.ErrorContains(t, err, "RunModules", module.CID)

	c.RunModules(standIn{})
	f, err = c.Client.Submit(ctx, task)
	require.NoError(t, err)
	r, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "code [-v] in", string(r.Value))
}

// TestTransactionsOfTheTest submits a future together with a row of the test's own.
func TestTransactionsOfTheTest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	echoed(c)
	task, err := upper.Task("tea")
	require.NoError(t, err)
	var made *futures.TxFutures
	result, err := kv.Transact(ctx, c.Store, kv.Retry{}, func(tx kv.Attempt) (err error) {
		tx.Set([]byte("orders/17"), []byte("tea"))
		made, err = c.Client.SubmitTx(ctx, tx, []futures.Task{task})
		return err
	})
	require.NoError(t, err)
	made.Committed(ctx, result.Version)
	text, err := upper.Of(made.Futures[0]).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "TEA", text)
}

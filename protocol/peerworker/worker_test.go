package peerworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// functions are those of the workers of tests.
var functions = map[string]workers.Function{
	"double": func(_ context.Context, args []byte) ([]byte, error) { return append(args, args...), nil },
	"fail": func(_ context.Context, args []byte) ([]byte, error) {
		switch string(args) {
		case "permanent":
			return nil, workers.Permanent(errors.New("never"))
		case "later":
			return nil, workers.RetryAfter(time.Minute, errors.New("not now"))
		case "at once":
			return nil, workers.RetryAfter(0, errors.New("again"))
		case "snooze":
			return nil, workers.Snooze(time.Hour)
		case "ages later":
			return nil, workers.RetryAfter(math.MaxInt64, errors.New("not now"))
		case "for ages":
			return nil, workers.Snooze(math.MaxInt64)
		case "panic":
			panic("oh")
		default:
			return nil, errors.New("no")
		}
	},
	"wait": func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	},
}

func TestItemsRunAndTheirResultsAreAcknowledged(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w := run(t, options(n))
	args := make([]string, 700)
	for i := range args {
		args[i] = fmt.Sprint(i)
	}
	order := goOrder("double", args...)
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	for i, o := range h.all(order.ChunkID, len(args)) {
		require.True(t, o.OK(), "%+v", o)
		require.Equal(t, args[i]+args[i], string(o.Value))
		require.Equal(t, "raw", o.Codec)
		require.Positive(t, o.Usage.WallClock)
	}
	w.idle()
	require.EqualValues(t, len(args), w.Stats().Delivered)
}

func TestFailuresSayWhatFollows(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w := run(t, options(n))
	order := goOrder("fail", "permanent", "later", "at once", "snooze", "panic", "no")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	all := h.all(order.ChunkID, 6)
	for i, want := range []protocol.Outcome{
		{Code: protocol.CodeError, Kind: "error", Message: "never", Permanent: true},
		{Code: protocol.CodeError, Kind: "error", Message: "not now"},
		{Code: protocol.CodeError, Kind: "error", Message: "again"},
		{Code: protocol.CodeAccepted},
		{Code: protocol.CodeError, Kind: "panic"},
		{Code: protocol.CodeError, Kind: "error", Message: "no"},
	} {
		require.Equal(t, want.Code, all[i].Code, "%d: %+v", i, all[i])
		require.Equal(t, want.Kind, all[i].Kind, i)
		require.Equal(t, want.Permanent, all[i].Permanent, i)
		require.Contains(t, all[i].Message, want.Message)
	}
	require.InDelta(t, time.Minute.Milliseconds(), *all[1].RetryMS, 10)
	require.Zero(t, *all[2].RetryMS)
	require.InDelta(t, time.Hour.Milliseconds(), all[3].SnoozeMS, 20_000)
	require.Nil(t, all[4].RetryMS)
	require.Nil(t, all[5].RetryMS)
	require.Contains(t, all[4].Message, "oh")
	w.idle()
}

// TestEveryOutcomeCanBeSent ends items with what messages have no room for, beside one that is harmless.
func TestEveryOutcomeCanBeSent(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w := run(t, options(n))
	order := goOrder("fail", "ages later", "for ages", "no")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	all := h.all(order.ChunkID, 3)
	require.Equal(t, protocol.MaxTime.Milliseconds(), *all[0].RetryMS)
	require.Equal(t, protocol.MaxTime.Milliseconds(), all[1].SnoozeMS)
	require.Contains(t, all[2].Message, "no")
	w.idle()
}

// TestOutcomesThatNoMessageCarries are such as the journal of an earlier version may have: they become failures,
// and hold up nothing.
func TestOutcomesThatNoMessageCarries(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	began, end := make(chan struct{}), make(chan struct{})
	w, _ := counted(t, n, options(n), func() {
		began <- struct{}{}
		<-end
	})
	order := goOrder("count", "a", "b", "c")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	for range 3 {
		<-began
	}
	c := w.chunk(chunkName{headID, order.ChunkID})
	for i, o := range []protocol.Outcome{
		{Code: protocol.CodeError, Kind: "exit", ExitCode: math.MaxUint32},
		{Code: protocol.CodeOK, Value: []byte("fine")},
		{Code: protocol.CodeOK, Codec: strings.Repeat("x", protocol.MaxName+1)},
	} {
		w.runner.mu.Lock()
		x := w.runner.items[c.ids[i]]
		w.runner.mu.Unlock()
		w.runner.over(x, o, 1, false)
	}
	all := h.all(order.ChunkID, 3)
	require.Equal(t, "fine", string(all[1].Value))
	for i, field := range map[int]string{0: "exit_code", 2: "codec"} {
		require.Equal(t, protocol.CodeError, all[i].Code)
		require.Contains(t, all[i].Message, "can't be sent to the head")
		require.Contains(t, all[i].Message, field)
	}
	close(end)
	w.idle()
}

// TestFunctionsThatNoHeadCanOrder are refused.
func TestFunctionsThatNoHeadCanOrder(t *testing.T) {
	t.Parallel()
	w, err := New(options(newMemory()))
	require.NoError(t, err)
	require.ErrorIs(t, w.Register("a..b", functions["double"]), layout.ErrBadName)
	require.NoError(t, w.Register("a.b", functions["double"]))
}

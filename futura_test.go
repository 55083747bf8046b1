package futura_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// TestMain is the main of a process that TestStepsOfKilledProcesses starts, too.
func TestMain(m *testing.M) {
	steps := os.Getenv(killedVariable)
	if steps == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := beKilled(steps, killedProgramsOf(os.Getenv(killedPrograms))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestNodeOpensAndClosesAll opens a store twice: a future that was submitted by
// a node without a worker runs in the next one.
func TestNodeOpensAndClosesAll(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := "embedded:" + t.TempDir()
	options := []futura.Option{futura.ClusterName("shop"), futura.ClusterConfig(futures.Config{Retention: time.Hour})}
	first, err := futura.Open(ctx, store, options...)
	require.NoError(t, err)
	require.Nil(t, first.Worker)
	<-first.Ended()
	require.Equal(t, time.Hour, first.Client.Cluster().Config().Retention)
	require.Equal(t, "shop", first.Client.Cluster().Name())
	f, err := greet.Submit(ctx, first.Client, "you")
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())

	var log bytes.Buffer
	options = append(options, futura.Function(greet.Bind(hello)), futura.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	second, err := futura.Open(ctx, store, options...)
	require.NoError(t, err)
	require.NotEmpty(t, second.Worker.ID(), "it is a member at once")
	text, err := greet.Of(second.Client.Future(f.ID())).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "hello you", text)
	select {
	case <-second.Ended():
		require.Fail(t, "the worker has ended before Close")
	default:
	}
	require.NoError(t, second.Close())
	<-second.Ended()
	require.Contains(t, log.String(), "worker registered")
}

// TestNodeSaysThatItsWorkerHasEnded takes the store away from a node.
func TestNodeSaysThatItsWorkerHasEnded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	node, err := futura.Open(t.Context(), "memory:", futura.Function(greet.Bind(hello)),
		futura.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	require.NoError(t, node.Store.Close())
	<-node.Ended()
	require.Error(t, node.Close())
	require.Contains(t, log.String(), "the worker of this process has ended")
}

func TestNodeThatCannotOpen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, err := futura.Open(ctx, "nope:")
	require.ErrorIs(t, err, kvopen.ErrBadName)
	store := "embedded:" + t.TempDir()
	_, err = futura.Open(ctx, store, futura.ClusterName("No!"))
	require.ErrorIs(t, err, futures.ErrBadName)
	_, err = futura.Open(ctx, store, futura.WorkerOptions(workers.Options{Slots: -1}))
	require.ErrorContains(t, err, "slots")
	_, err = futura.Open(ctx, store, futura.Function(greet.Bind(hello)), futura.Function(greet.Bind(hello)))
	require.ErrorContains(t, err, "already")
	members := func(context.Context, string, []workers.Member) ([]workers.MemberEnd, error) { return nil, nil }
	_, err = futura.Open(ctx, store, futura.Bundle("greet", members), futura.Function(greet.Bind(hello)))
	require.ErrorContains(t, err, "already")
	_, err = futura.Open(ctx, store, futura.Bundle("greet", nil))
	require.ErrorContains(t, err, "nil")
	node, err := futura.Open(ctx, store)
	require.NoError(t, err, "each of those has closed the store")
	require.NoError(t, node.Close())
}

// TestNodesShareAStore has one node submit and another one run. Either has the store open at
// some time.
func TestNodesShareAStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, err := os.MkdirTemp("", "fn")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	store := "embedded:" + dir
	works, err := futura.Open(ctx, store, futura.Function(greet.Bind(hello)))
	require.NoError(t, err)
	submits, err := futura.Open(ctx, store)
	require.NoError(t, err)
	for range 2 {
		text, err := greet.Call(ctx, submits.Client, "you")
		require.NoError(t, err)
		require.Equal(t, "hello you", text)
		require.NoError(t, works.Close())
		works, err = futura.Open(ctx, store, futura.Function(greet.Bind(hello)))
		require.NoError(t, err)
	}
	_, err = futura.Open(ctx, store+"?share=off")
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.NoError(t, submits.Close())
	require.NoError(t, works.Close())
	alone, err := futura.Open(ctx, store+"?share=off")
	require.NoError(t, err)
	require.NoError(t, alone.Close())
}

// counting is a tracer that counts what it is told.
type counting struct{ begun, ended atomic.Int64 }

// Submit implements futures.Tracer.
func (c *counting) Submit(ctx context.Context, tasks []futures.Task) (context.Context, func([]*futures.Future, error)) {
	c.begun.Add(int64(len(tasks)))
	return ctx, func(made []*futures.Future, _ error) { c.ended.Add(int64(len(made))) }
}

// Await implements futures.Tracer.
func (c *counting) Await(context.Context, []*futures.Future) func(error) { return func(error) {} }

func TestANodeTellsItsTracer(t *testing.T) {
	t.Parallel()
	var told counting
	node, err := futura.Open(t.Context(), "memory:", futura.Tracer(&told))
	require.NoError(t, err)
	_, err = greet.Map(t.Context(), node.Client, []string{"a", "b"})
	require.NoError(t, err)
	require.NoError(t, node.Close())
	require.EqualValues(t, 2, told.begun.Load())
	require.EqualValues(t, 2, told.ended.Load())
}

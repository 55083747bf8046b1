package futura_test

import (
	"bytes"
	"context"
	"log/slog"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	_, err = futura.Open(ctx, store, futura.Bundle("greet", nil), futura.Function(greet.Bind(hello)))
	require.ErrorContains(t, err, "already")
	node, err := futura.Open(ctx, store)
	require.NoError(t, err, "each of those has closed the store")
	_, err = futura.Open(ctx, store)
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.NoError(t, node.Close())
}

// TestNodeClosesWhileItRuns gives back a future whose function ignores its
// context.
func TestNodeClosesWhileItRuns(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	node, err := futura.Open(t.Context(), "memory:", futura.WorkerOptions(workers.Options{DrainTimeout: time.Millisecond}),
		futura.Function("block", func(ctx context.Context, _ []byte) ([]byte, error) {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	require.NoError(t, err)
	_, err = node.Client.Submit(t.Context(), futures.Task{Function: "go:block"})
	require.NoError(t, err)
	<-began
	require.NoError(t, node.Close())
}

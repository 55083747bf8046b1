package futures_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// lines is a log whose lines a test takes.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestAClientThatAwaitsSaysThatTheStoreIsAway, once, and when it is back.
func TestAClientThatAwaitsSaysThatTheStoreIsAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := storetest.New(t)
	other := newClient(t, db)
	submitted, err := other.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	store := storetest.NewSilent(db)
	clk, log := clock.NewVirtual(time.Unix(1_000_000, 0)), make(lines, 100)
	cluster, err := fdbmodel.Open(ctx, store, futures.DefaultCluster, fdbmodel.Options{Clock: clk})
	require.NoError(t, err)
	c, err := futures.FromCluster(cluster, futures.Options{NoHints: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	store.Leave() // before its first request, which is to subscribe
	awaited := make(chan struct{})
	go func() {
		defer close(awaited)
		_, _ = c.Future(submitted.ID()).Await(ctx) // it ends with ctx
	}()
	<-store.Asked()
	clk.Advance(3 * cluster.Config().Heartbeat)
	line := <-log
	require.Contains(t, line, "level=WARN")
	require.Contains(t, line, "the store does not answer")
	require.Contains(t, line, "session=")
	clk.Advance(time.Hour)
	store.Return()
	line = <-log
	require.Contains(t, line, "level=INFO")
	require.Contains(t, line, "the store answers again")
	cancel()
	<-awaited
	require.NoError(t, c.Close(context.Background()))
	close(log)
	for line := range log {
		require.False(t, strings.Contains(line, "the store"), line)
	}
}

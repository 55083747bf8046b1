package jobqueue_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestAStageInATestOfFutures runs a stage on the cluster of a test, whose jobs submit
// futures that its worker runs.
func TestAStageInATestOfFutures(t *testing.T) {
	t.Parallel()
	c := futurestest.New(t)
	price := futures.Define[string, int]("price")
	c.Register(price.Bind(func(_ context.Context, order string) (int, error) { return len(order), nil }))
	cluster := c.Client.Cluster()
	orders, err := jobqueue.NewLog(cluster, "orders", jobqueue.LogOptions[string]{})
	require.NoError(t, err)
	defer orders.Close()
	done, prices := make(chan uint64, 10), make(chan *futures.Typed[int], 10)
	stage, err := jobqueue.NewStage(cluster, orders, "price",
		func(ctx context.Context, job jobqueue.Job[string], _ *jobqueue.Output) error {
			f, err := price.Submit(ctx, c.Client, job.Value)
			prices <- f
			return err
		}, jobqueue.StageOptions{Options: jobqueue.Options{OnAdvance: func(n uint64) { done <- n }}})
	require.NoError(t, err)
	require.NoError(t, stage.Start())
	_, err = orders.Append(t.Context(), "tea", "coffee")
	require.NoError(t, err)
	for n := uint64(0); n < 2; n = <-done {
	}
	require.NoError(t, stage.Stop(t.Context()))
	for _, want := range []int{3, 6} {
		got, err := (<-prices).Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

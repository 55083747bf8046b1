package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
)

func TestRepartition(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out))
	require.Equal(t, `partition 0: 34 customers spent 244779.60
partition 1: 33 customers spent 237560.40
partition 2: 33 customers spent 237600.00
`, out.String())
}

// TestPartitionsAreWhereTheyBelong looks for each partition, and for what it came from.
func TestPartitionsAreWhereTheyBelong(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client, err := futures.New(ctx, embedded.OpenMemory(embedded.Options{}), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	var ids []futures.WorkerID
	for range 4 {
		id, stop, err := startWorker(ctx, client)
		require.NoError(t, err)
		defer stop()
		ids = append(ids, id)
	}
	old, err := load.Map(ctx, client, []Days{{0, 5}, {5, 10}})
	require.NoError(t, err)
	got, err := repartition(ctx, client, old, ids)
	require.NoError(t, err)
	var rows Rows
	for p, partition := range got {
		found, err := client.Cluster().GetMany(ctx, []futures.ID{partition.ID()})
		require.NoError(t, err)
		require.Equal(t, ids[p], found[0].Result.Worker)
		part, err := partition.Await(ctx)
		require.NoError(t, err)
		for _, row := range part {
			require.Equal(t, p, row.Customer%len(ids))
		}
		rows = append(rows, part...)
	}
	var all Rows
	for _, days := range []Days{{0, 5}, {5, 10}} {
		part, err := loadDays(ctx, days)
		require.NoError(t, err)
		all = append(all, part...)
	}
	require.ElementsMatch(t, all, rows)
	for _, partition := range old {
		_, err := client.Future(partition.ID()).Await(ctx)
		require.ErrorIs(t, err, futures.ErrNotFound)
	}
}

package top

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

func TestReaderReadsACluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{Cluster: "shop"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close(ctx))
		require.NoError(t, db.Close())
	})
	worker, err := client.Cluster().Register(ctx, layout.WorkerInfo{Name: "w", Queues: []string{"default"},
		Functions: []string{"go:g"}, Capacity: layout.Resources{Slots: 2}})
	require.NoError(t, err)
	var ids []futures.ID
	for i := range 9 {
		f, err := client.Submit(ctx, futures.Task{Function: "go:f", Key: fmt.Sprint(i)})
		require.NoError(t, err)
		ids = append(ids, f.ID())
	}
	_, err = client.Cancel(ctx, ids[3], "not wanted")
	require.NoError(t, err)

	r := NewReader(client)
	s, err := r.Read(ctx, Query{List: true, State: layout.Ready})
	require.NoError(t, err)
	require.Equal(t, "shop", s.Cluster)
	require.EqualValues(t, 8, s.Total.Ready)
	require.Equal(t, []any{1, int64(2), int64(2)}, []any{s.Alive, s.Slots, s.Free})
	require.Len(t, s.futures, 8)
	require.Len(t, s.Failed, 1)
	require.Equal(t, "8 waiting futures, and 2 free slots: futura explain says why", s.Wrong[0].Text)
	lines, err := r.Future(ctx, ids[3])
	require.NoError(t, err)
	require.Contains(t, lines[0], "failed (failed): ")
	require.Contains(t, lines[len(lines)-1], "cancelled: not wanted")
	_, err = r.Future(ctx, futures.ID{})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)

	s, err = r.Read(ctx, Query{})
	require.NoError(t, err)
	require.Nil(t, s.futures)

	require.NoError(t, worker.Leave(ctx))
	s, err = r.Read(ctx, Query{})
	require.NoError(t, err)
	require.Equal(t, "8 waiting futures, and no worker is alive", s.Wrong[0].Text)
	require.NoError(t, client.Close(ctx))
	require.NoError(t, db.Close())
	_, err = r.Read(ctx, Query{})
	require.ErrorIs(t, err, kv.ErrClosed)
}

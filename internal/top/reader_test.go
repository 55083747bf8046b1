package top

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
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
	_, err = client.Pause(ctx, futures.PauseQueue, "mail", "the provider is down")
	require.NoError(t, err)
	require.NoError(t, client.SetLaneKind(ctx, "customers", futures.LaneSettings{Width: 1}))
	require.NoError(t, client.PauseLaneKind(ctx, "customers"))

	r := NewReader(client)
	s, err := r.Read(ctx, Query{List: true, State: layout.Ready})
	require.NoError(t, err)
	require.Equal(t, "shop", s.Cluster)
	require.EqualValues(t, 8, s.Total.Ready)
	require.Equal(t, []any{1, int64(2), int64(2)}, []any{s.Alive, s.Slots, s.Free})
	require.Len(t, s.futures, 8)
	require.Len(t, s.Failed, 1)
	require.Equal(t, Problem{warn, "8 waiting futures, and 2 free slots: futura explain says why"}, s.Wrong[0])
	require.Contains(t, s.Wrong[1].Text, "the queue mail was paused ")
	require.Contains(t, s.Wrong[1].Text, " ago: the provider is down")
	require.Equal(t, Problem{warn, "lanes of customers are paused"}, s.Wrong[2])
	lines, err := r.Future(ctx, ids[3])
	require.NoError(t, err)
	require.Contains(t, lines[0], "failed (failed): ")
	require.Contains(t, lines[len(lines)-1], "cancelled: not wanted")
	_, err = r.Future(ctx, futures.ID{})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)

	r.functions, r.due = []httpapi.ActivityFunction{{Function: "go:kept"}}, time.Now().Add(time.Hour)
	s, err = r.Read(ctx, Query{})
	require.NoError(t, err)
	require.Equal(t, "go:kept", s.Functions[0].Function, "the hour is read less often")
	require.Nil(t, s.futures)

	require.NoError(t, worker.Leave(ctx))
	s, err = r.Read(ctx, Query{})
	require.NoError(t, err)
	require.Equal(t, Problem{bad, "8 waiting futures, and no worker is alive"}, s.Wrong[0])
	require.NoError(t, client.Close(ctx))
	require.NoError(t, db.Close())
	_, err = r.Read(ctx, Query{})
	require.ErrorIs(t, err, kv.ErrClosed)
}

func TestWrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	attempts := func(name string, done, failed int64) httpapi.ActivityFunction {
		f := httpapi.ActivityFunction{Function: name, Queue: "default"}
		f.Succeeded, f.FailedAttempts = done, failed
		return f
	}
	s := &Snapshot{At: now, Free: 1, Alive: 2, Total: layout.QueueCounts{Ready: 1, Claimed: 1},
		Workers: []httpapi.Worker{{ID: "a"}, {Name: "b", Alive: true, Draining: true}, {Alive: true}},
		Functions: []httpapi.ActivityFunction{attempts("go:often", 9, 1), attempts("go:rarely", 10, 1),
			attempts("wasm:bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", 0, 1)},
		logs: []httpapi.JobLog{{Queue: "orders", Consumers: []httpapi.JobConsumer{
			{Name: "x", Failing: 7, Error: "full", Parked: 3}, {Name: "y", Parked: 2}, {Name: "z"}}}},
		pauses: []futures.Pause{{What: "function", Name: "go:f", At: now.Add(-3 * time.Hour)}},
		kinds:  []futures.LaneKind{{Name: "k"}, {Name: "l", Paused: true}},
	}
	require.Equal(t, []Problem{
		{bad, "1 worker died; what they held is being taken back"},
		{bad, "go:often in the queue default fails: 1 of 10 attempts in the last hour"},
		{bad, "wasm:bafybe…y55fbzdi in the queue default fails: 1 of 1 attempts in the last hour"},
		{bad, "consumer x of the job log orders is held by job 7: full"},
		{warn, "consumer y of the job log orders has parked 2 jobs"},
		{warn, "worker b stops, and takes no more futures"},
		{warn, "the function go:f was paused 3h ago"},
		{warn, "lanes of l are paused"},
	}, s.wrong())
	require.Equal(t, []Problem{}, (&Snapshot{}).wrong())
}

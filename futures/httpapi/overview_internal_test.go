package httpapi

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

func TestWrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	attempts := func(name string, done, failed int64) ActivityFunction {
		f := ActivityFunction{Function: name, Queue: "default"}
		f.Succeeded, f.FailedAttempts = done, failed
		return f
	}
	busy := OverviewQueue{QueueCounts: activity.QueueCounts{Ready: 1, Claimed: 1}}
	o := &Overview{At: now, Free: 1, Alive: 2, Dead: 1, Total: busy,
		Workers: []Worker{{ID: "a"}, {Name: "b", Alive: true, Draining: true}, {Alive: true}},
		Functions: []ActivityFunction{attempts("go:often", 9, 1), attempts("go:rarely", 10, 1),
			attempts("wasm:bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", 0, 1)},
		logs: []JobLog{{Queue: "orders", Consumers: []JobConsumer{
			{Name: "x", Failing: 7, Error: "full", Parked: 3}, {Name: "y", Parked: 2}, {Name: "z"}}}},
		pauses: []futures.Pause{{What: "function", Name: "go:f", At: now.Add(-3 * time.Hour), Reason: "why"}},
		kinds:  []futures.LaneKind{{Name: "k"}, {Name: "l", Paused: true}},
	}
	const failed = "/api/v1/futures?function="
	require.Equal(t, []Trouble{
		{Bad, "1 worker died; what they held is being taken back", "/api/v1/workers"},
		{Bad, "go:often in the queue default fails: 1 of 10 attempts in the last hour",
			failed + "go%3Aoften&queue=default&state=failed"},
		{Bad, "wasm:bafybe…y55fbzdi in the queue default fails: 1 of 1 attempts in the last hour",
			failed + "wasm%3Abafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi&queue=default&state=failed"},
		{Bad, "consumer x of the job log orders is held by job 7: full", "/api/v1/jobs/orders"},
		{Warn, "consumer y of the job log orders has parked 2 jobs", "/api/v1/jobs/orders"},
		{Warn, "worker b stops, and takes no more futures", "/api/v1/workers"},
		{Warn, "the function go:f was paused 3h ago: why", "/api/v1/pauses"},
		{Warn, "lanes of l are paused", "/api/v1/lanes/l"},
	}, o.wrong())
	require.Equal(t, []Trouble{}, (&Overview{}).wrong())

	others := attempts(otherQueues, 0, 1)
	others.Queue = otherQueues
	require.Equal(t, "/api/v1/futures?state=failed", (&Overview{Functions: []ActivityFunction{others}}).wrong()[0].See)

	o = &Overview{Total: OverviewQueue{QueueCounts: activity.QueueCounts{Ready: 2}}}
	require.Equal(t, []Trouble{{Bad, "2 waiting futures, and no worker is alive", "/api/v1/workers"}}, o.wrong())
	o.Alive, o.Free = 1, 3
	require.Equal(t, []Trouble{{Warn, "2 waiting futures, and 3 free slots: futura explain says why",
		"/api/v1/futures?state=ready"}}, o.wrong())
}

// TestOldestOfAllQueues is in a queue that is not shown by itself.
func TestOldestOfAllQueues(t *testing.T) {
	t.Parallel()
	now := time.Now()
	counts := layout.Counts{
		{Queue: "small", State: layout.Ready}: 1, {Queue: "left", State: layout.Ready}: 0,
	}
	oldest := map[string]time.Time{"small": now.Add(-time.Hour), "left": now.Add(-2 * time.Hour)}
	for i := range 60 {
		name := "large" + strconv.Itoa(i)
		counts[layout.CountKey{Queue: name, State: layout.Ready}], oldest[name] = 2, now
	}
	o := &Overview{}
	o.sum(counts, oldest)
	require.NotNil(t, o.Total.OldestReady)
	require.True(t, o.Total.OldestReady.Equal(oldest["small"]))
}

// TestRarelyRead: what costs more is kept for a while.
func TestRarelyRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close(ctx))
		require.NoError(t, db.Close())
	})
	r := NewOverviewReader(client)
	r.functions, r.due = []ActivityFunction{{Function: "go:kept"}}, time.Now().Add(time.Hour)
	o, err := r.Read(ctx)
	require.NoError(t, err)
	require.Equal(t, "go:kept", o.Functions[0].Function)
	r.due = time.Now()
	o, err = r.Read(ctx)
	require.NoError(t, err)
	require.Empty(t, o.Functions)
}

package system

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// runs counts the runs of futures by worker.
type runs struct {
	mu sync.Mutex
	by map[futures.ID][]string
}

func newRuns() *runs { return &runs{by: map[futures.ID][]string{}} }

// function returns the name of the worker that ran it.
func (r *runs) function(who string) workers.Function {
	return func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.by[info.ID] = append(r.by[info.ID], who)
		return []byte(who), nil
	}
}

func (r *runs) of(id futures.ID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[id]
}

// TestTenFuturesAndManyWorkers has 200 workers wait for ten futures: each is
// realized once, by one that ran it.
func TestTenFuturesAndManyWorkers(t *testing.T) {
	t.Parallel()
	const many, few = 200, 10
	p := newPlant(t, "memory:")
	log := newRuns()
	for n := range many {
		who := fmt.Sprintf("worker-%d", n)
		p.start(workers.Options{Name: who, Slots: 1, Poll: time.Minute}, map[string]workers.Function{"f": log.function(who)})
	}
	tasks := make([]futures.Task, few)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:f"}
	}
	all, err := p.client.SubmitMany(p.ctx, tasks)
	require.NoError(t, err)
	results, err := p.client.AwaitAll(p.ctx, all)
	require.NoError(t, err)
	for i, f := range all {
		require.Contains(t, log.of(f.ID()), string(results[i].Value))
	}
	counts, err := p.client.Cluster().Counts(p.ctx)
	require.NoError(t, err)
	require.EqualValues(t, few, counts.Total(layout.Realized))
	require.Zero(t, counts.Total(layout.Claimed)+counts.Total(layout.Ready))
	p.check()
}

// TestTwoClustersDoNotSeeEachOther has the same ids, functions, queues,
// addresses and module in two clusters of one store.
func TestTwoClustersDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	db, err := kvopen.Open(context.Background(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plants := map[string]*plant{"one": plantOn(t, db, "one"), "two": plantOn(t, db, "two")}
	ids, err := plants["one"].client.Cluster().DrawIDs(30)
	require.NoError(t, err)
	log := newRuns()
	handles := map[string][]*futures.Future{}
	for name, p := range plants {
		p.put(looping())
		tasks := make([]futures.Task, len(ids))
		for i, id := range ids {
			tasks[i] = futures.Task{Function: "go:f", ID: id}
		}
		handles[name], err = p.client.SubmitMany(p.ctx, tasks)
		require.NoError(t, err)
		for _, f := range handles[name] {
			require.False(t, f.Existed())
		}
	}
	address := workers.Options{Address: "10.0.0.1:7000", Slots: 2}
	stop := plants["one"].start(address, map[string]workers.Function{"f": log.function("one")})
	_, err = plants["one"].client.AwaitAll(plants["one"].ctx, handles["one"])
	require.NoError(t, err)
	counts, err := plants["two"].client.Cluster().Counts(plants["two"].ctx)
	require.NoError(t, err)
	require.EqualValues(t, len(ids), counts.Total(layout.Ready), "the other cluster's are as they were")
	_, err = handles["two"][0].Cancel(plants["two"].ctx, "")
	require.NoError(t, err)
	plants["two"].start(address, map[string]workers.Function{"f": log.function("two")})
	results, err := plants["two"].client.AwaitAll(plants["two"].ctx, handles["two"])
	require.ErrorIs(t, err, futures.ErrCancelled)
	require.Empty(t, results[0].Value)
	for i, id := range ids {
		row, err := plants["one"].client.Cluster().Get(plants["one"].ctx, id)
		require.NoError(t, err)
		require.Equal(t, "one", string(row.Result.Value))
		require.Contains(t, log.of(id), "one")
		if i > 0 {
			require.Equal(t, "two", string(results[i].Value))
			require.Contains(t, log.of(id), "two")
		}
	}
	stop()
	require.NoError(t, fdbmodel.Wipe(context.Background(), db, "one"))
	require.EqualValues(t, len(ids), plants["two"].check().Futures)
	_, err = plants["two"].client.Cluster().ResolveFunction(context.Background(), "wasm:"+plantCID(t))
	require.NoError(t, err, "its module is still there")
}

func plantCID(t *testing.T) string {
	cid, err := modules.CID(looping())
	require.NoError(t, err)
	return cid
}

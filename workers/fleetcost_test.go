package workers

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// meteredStore counts what is asked of a store, which it has be as one that many
// processes share.
type meteredStore struct {
	kv.Database
	transactions, reads, mutations atomic.Int64
}

func (d *meteredStore) Begin(o kv.Options) kv.Tx {
	d.transactions.Add(1)
	return meteredTx{d.Database.Begin(o), d}
}

type meteredTx struct {
	kv.Tx
	db *meteredStore
}

type meteredReader struct {
	kv.Reader
	db *meteredStore
}

func (t meteredTx) Snapshot() kv.Reader { return meteredReader{t.Tx.Snapshot(), t.db} }

func (t meteredTx) Get(key []byte) kv.Pending[[]byte] { return meteredReader{t.Tx, t.db}.Get(key) }

func (t meteredTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return meteredReader{t.Tx, t.db}.GetRange(r, o)
}

func (r meteredReader) Get(key []byte) kv.Pending[[]byte] {
	r.db.reads.Add(1)
	return r.Reader.Get(key)
}

func (r meteredReader) GetRange(span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	r.db.reads.Add(1)
	return r.Reader.GetRange(span, o)
}

func (t meteredTx) Set(key, value []byte) {
	t.db.mutations.Add(1)
	t.Tx.Set(key, value)
}

func (t meteredTx) Clear(key []byte) {
	t.db.mutations.Add(1)
	t.Tx.Clear(key)
}

func (t meteredTx) ClearRange(r kv.Range) {
	t.db.mutations.Add(1)
	t.Tx.ClearRange(r)
}

func (t meteredTx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.db.mutations.Add(1)
	t.Tx.Atomic(op, key, param)
}

// idleCost is what an idle worker takes: of the store in a minute, and of its process.
type idleCost struct{ transactions, reads, mutations, goroutines, kilobytes float64 }

// footprint returns the goroutines of the process, and the bytes that it holds, garbage of
// others among them: they are shown and not compared.
func footprint() (goroutines int, bytes uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse
}

// idleCostOf measures idle workers for some minutes, beside a janitor of its own process.
// It runs in a bubble.
func idleCostOf(t *testing.T, n, minutes int, fleet func(*fdbmodel.Cluster) *Fleet) (c idleCost) {
	t.Helper()
	raw := embedded.OpenMemory(embedded.Options{})
	db := &meteredStore{Database: raw}
	ctx, stop := context.WithCancel(t.Context())
	open := func(db kv.Database) *fdbmodel.Cluster {
		cluster, err := fdbmodel.Open(ctx, db, "test", fdbmodel.Options{Config: layout.Config{Shards: 16}})
		require.NoError(t, err)
		return cluster
	}
	pass := func(d time.Duration) { require.NoError(t, clock.Sleep(ctx, clock.Real{}, d)) }
	ended := make(chan error, n+1)
	beside := open(&meteredStore{Database: raw})
	go func() { ended <- RunJanitor(ctx, beside, JanitorOptions{}) }()
	pass(time.Second)
	cluster := open(db)
	shared := fleet(cluster)
	goroutines, bytes := footprint()
	all := make([]*Worker, n)
	for i := range all {
		var err error
		all[i], err = FromCluster(cluster, Options{Slots: 8, Remote: remoteFunc(nil), Fleet: shared})
		require.NoError(t, err)
		go func() { ended <- all[i].Run(ctx) }()
		pass(10 * time.Millisecond)
	}
	pass(2 * time.Minute) // until each has polled, and joined the others
	after, held := footprint()
	c.goroutines, c.kilobytes = float64(after-goroutines)/float64(n), (float64(held)-float64(bytes))/1024/float64(n)
	before := []int64{db.transactions.Load(), db.reads.Load(), db.mutations.Load()}
	pass(time.Duration(minutes) * time.Minute)
	per := float64(n * minutes)
	c.transactions = float64(db.transactions.Load()-before[0]) / per
	c.reads = float64(db.reads.Load()-before[1]) / per
	c.mutations = float64(db.mutations.Load()-before[2]) / per
	members, err := cluster.Workers(ctx)
	require.NoError(t, err)
	require.Len(t, members, n)
	for _, m := range members {
		require.True(t, m.Alive)
		require.Less(t, m.Silence(time.Now()), cluster.Config().DeadAfter/2)
	}
	for _, w := range all {
		require.Zero(t, w.Stats().Lost)
	}
	stop()
	for range n + 1 {
		require.NoError(t, <-ended)
	}
	require.NoError(t, raw.Close())
	return c
}

// TestFleetOfThousand compares idle members of a fleet with idle workers that have none,
// by what they ask of a store that many processes share. All time passes in a bubble.
func TestFleetOfThousand(t *testing.T) {
	if storetest.OnServer {
		t.Skip("time in a bubble does not wait for a server")
	}
	members, minutes := 100, 2
	if long() {
		members, minutes = 1000, 30
	}
	bubble.Test(t, func(t *testing.T) {
		none := func(*fdbmodel.Cluster) *Fleet { return nil }
		alone, plain := idleCostOf(t, 1, minutes, none), idleCostOf(t, 20, minutes, none)
		member := idleCostOf(t, members, minutes, NewFleet)
		few := idleCostOf(t, 10, minutes, NewFleet)
		for name, c := range map[string]idleCost{"worker alone": alone, "one of 20 workers": plain,
			fmt.Sprintf("one of %d members", members): member,
			"one of 10 members":                       few} {
			t.Logf("%-20s %6.2f transactions %7.2f reads %5.2f mutations a minute, %5.2f goroutines, %5.1f KB",
				name, c.transactions, c.reads, c.mutations, c.goroutines, c.kilobytes)
		}
		for _, c := range []idleCost{member, few} {
			require.Less(t, c.transactions, alone.transactions/8)
			require.Less(t, c.reads, alone.reads/2)
			require.Less(t, c.mutations, plain.mutations)
			require.Less(t, c.goroutines, plain.goroutines)
		}
		require.Less(t, member.transactions, 1.5)
		require.Less(t, member.reads, alone.reads/8)
		require.Less(t, plain.reads, alone.reads/8) // those of a kind share the polls
		require.LessOrEqual(t, member.goroutines, 4.0)
	})
}

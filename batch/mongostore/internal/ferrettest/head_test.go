package ferrettest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/mongostore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// Settings of a process that is a head until it is killed.
const (
	headCluster = "FUTURA_HEAD_CLUSTER"
	headServer  = "FUTURA_HEAD_SERVER"
)

// headMain is that process.
func headMain() error {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, os.Getenv(headCluster), kvopen.Options{})
	if err != nil {
		return err
	}
	cluster, err := fdbmodel.Open(ctx, db, "kill", fdbmodel.Options{})
	if err != nil {
		return err
	}
	s, err := patientOpen(ctx, mongostore.Options{URI: os.Getenv(headServer)})
	if err != nil {
		return err
	}
	return newHead(cluster, s).Run(ctx)
}

func newHead(cluster *fdbmodel.Cluster, s batch.Store) *head.Head {
	return head.New(head.Options{
		Store: s, Dispatcher: head.NewCluster(cluster), BootDelay: time.Millisecond, Look: 50 * time.Millisecond,
		Backoff: time.Millisecond,
	})
}

// startCluster serves a cluster with two workers, and returns it with its
// address.
func startCluster(t *testing.T, l *batchtest.Ledger) (*fdbmodel.Cluster, string) {
	db, address := storetest.Shared(t)
	cluster, err := fdbmodel.Open(context.Background(), db, "kill", fdbmodel.Options{})
	require.NoError(t, err)
	for range 2 {
		w, err := workers.FromCluster(cluster, workers.Options{Slots: 2})
		require.NoError(t, err)
		require.NoError(t, w.Register("run", l.Run))
		storetest.Background(t, w.Run)
		<-w.Ready()
	}
	return cluster, address
}

// TestHeadKilledAgainAndAgain kills heads at random points of a batch, and lets
// two at a time work on it at the end. No item is lost or tried too often, and
// what is over stays as it is.
func TestHeadKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	items, kills := 200, 5
	if os.Getenv("FUTURA_LONG") == "1" {
		items, kills = 5000, 20
	}
	p := startServer(t)
	s := open(t, p.uri())
	p.indexKeys(t)
	log := new(batchtest.Ledger)
	cluster, address := startCluster(t, log)
	// The batch is created by a head that never runs: others find it.
	made, _, err := newHead(cluster, s).Submit(t.Context(), log.Request(items))
	require.NoError(t, err)
	w := &watched{over: map[int]string{}}
	var over atomic.Int64
	p.set(func(p *proxy) { p.changed = countOver(&over) })
	batchtest.Kill(t, items, kills, 20*time.Minute, func() int { return int(over.Load()) },
		func(until int) { require.GreaterOrEqual(t, w.look(t, s, made.ID), until) },
		headCluster+"="+address, headServer+"="+p.uri())
	another := open(t, p.uri()) // before a head takes all of the server's time
	storetest.Background(t, newHead(cluster, s).Run)
	storetest.Background(t, newHead(cluster, another).Run)
	require.Eventually(t, func() bool {
		b, err := s.Get(context.Background(), made.ID)
		require.NoError(t, err)
		return b.Status == batch.Done
	}, 20*time.Minute, 100*time.Millisecond)
	require.Equal(t, items, w.look(t, s, made.ID))
	require.EqualValues(t, items, over.Load())
	log.Compare(t, s, made.ID, items, true)
}

// countOver counts the items that are over, once each time that one becomes so.
func countOver(n *atomic.Int64) func(collection string, update bson.Raw) {
	return func(collection string, update bson.Raw) {
		status, err := update.LookupErr("$set", "status")
		if collection == itemsOf && err == nil && batch.Status(status.Int32()).Over() {
			n.Add(1)
		}
	}
}

// watched are the results of items that were seen to be over.
type watched struct{ over map[int]string }

// look counts the items that are over, and checks that none changed since.
func (w *watched) look(t *testing.T, s batch.Store, id string) int {
	items, err := s.Items(context.Background(), id, 0, batch.MaxItems, batch.Done, batch.PermanentlyFailed)
	require.NoError(t, err)
	now := map[int]string{}
	for _, item := range items {
		now[item.Index] = fmt.Sprintf("%v %+v", item.Status, *item.Result)
	}
	for index, was := range w.over {
		require.Equal(t, was, now[index], "item %d changed after it was over", index)
	}
	w.over = now
	return len(now)
}

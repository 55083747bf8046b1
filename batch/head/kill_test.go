package head_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// killStore names the store of a process that is a head until it is killed.
const killStore = "FUTURA_HEAD_KILL_STORE"

func TestMain(m *testing.M) {
	if store := os.Getenv(killStore); store != "" {
		fmt.Fprintln(os.Stderr, headMain(store))
		os.Exit(1)
	}
	storetest.Main(m)
}

// killPatience bounds how long the items between two kills may take.
const killPatience = 5 * time.Minute

func killOptions(cluster *fdbmodel.Cluster) head.Options {
	return head.Options{
		Store:      futurestore.New(cluster, futurestore.Options{Backoff: layout.Backoff{Base: time.Millisecond}}),
		Dispatcher: head.NewCluster(cluster), BootDelay: time.Millisecond, Look: 20 * time.Millisecond,
	}
}

func headMain(store string) error {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	cluster, err := fdbmodel.Open(ctx, db, "kill", fdbmodel.Options{})
	if err != nil {
		return err
	}
	return head.New(killOptions(cluster)).Run(ctx)
}

// TestHeadKilledAgainAndAgain kills heads at random points of a batch. Each item
// ends once, with the result of its own run, after as many attempts as it may
// have.
func TestHeadKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	items, kills := 1000, 5
	if storetest.OnServer {
		items = 500
	}
	if os.Getenv("FUTURA_LONG") == "1" {
		items, kills = 5000, 20
	}
	db, address := storetest.Shared(t)
	cluster, err := fdbmodel.Open(context.Background(), db, "kill", fdbmodel.Options{})
	require.NoError(t, err)

	log := new(batchtest.Ledger)
	for range 2 {
		w, err := workers.FromCluster(cluster, workers.Options{Slots: 2})
		require.NoError(t, err)
		require.NoError(t, w.Register("run", log.Run))
		storetest.Background(t, w.Run)
		<-w.Ready()
	}
	// The batch is made by a head that is never run: others find it.
	o := killOptions(cluster)
	made, _, err := head.New(o).Submit(t.Context(), log.Request(items))
	require.NoError(t, err)
	over := func() int {
		p, err := o.Store.Progress(context.Background(), made.ID)
		require.NoError(t, err)
		return p[batch.Done] + p[batch.PermanentlyFailed]
	}
	batchtest.Kill(t, items, kills, killPatience, over, func(int) {}, killStore+"="+address)
	stop := storetest.Background(t, head.New(o).Run)
	require.Eventually(t, func() bool {
		b, err := o.Store.Get(context.Background(), made.ID)
		require.NoError(t, err)
		return b.Status == batch.Done
	}, killPatience, 5*time.Millisecond)
	stop()
	log.Compare(t, o.Store, made.ID, items, false)
	report, err := audit.Check(context.Background(), cluster, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

package workers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// heldCommits are a store in which commits with a tag last until their contexts end, once that is asked for. They land
// if land is set.
type heldCommits struct {
	kv.Database
	tag  string
	land bool
	hold atomic.Bool
	held chan struct{}
}

func (d *heldCommits) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == d.tag && d.hold.Load() {
		return heldCommit{tx, d}
	}
	return tx
}

type heldCommit struct {
	kv.Tx
	of *heldCommits
}

func (t heldCommit) Commit(ctx context.Context) (kv.Committed, error) {
	if t.of.land {
		_, _ = t.Tx.Commit(ctx) // what it says is lost
	} else {
		t.Cancel()
	}
	t.of.held <- struct{}{}
	<-ctx.Done()
	return kv.Committed{}, errors.Join(kv.ErrUnknownResult, ctx.Err())
}

// TestAWorkerThatIsToStopWhileItRegisters has stopped as it was asked to. If its commit has landed, it is a member that
// is found dead.
func TestAWorkerThatIsToStopWhileItRegisters(t *testing.T) {
	t.Parallel()
	for name, land := range map[string]bool{"landed": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &heldCommits{Database: storetest.New(t), tag: "futura-register", land: land, held: make(chan struct{}, 1)}
			b := bedOn(t, db, layout.Config{}, nil)
			db.hold.Store(true)
			w, err := FromCluster(b.cluster, Options{Slots: 1})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(b.ctx)
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			<-db.held
			stop()
			require.NoError(t, <-ended)
			members, err := b.cluster.Workers(b.ctx)
			require.NoError(t, err)
			if !land {
				require.Empty(t, members)
				return
			}
			require.Len(t, members, 1)
			_, err = b.cluster.ForceReap(b.ctx, members[0].ID)
			require.NoError(t, err)
			members, err = b.cluster.Workers(b.ctx)
			require.NoError(t, err)
			require.Empty(t, members)
		})
	}
}

// TestAWorkerThatIsToStopWhileItRegistersAgain has stopped as it was asked to.
func TestAWorkerThatIsToStopWhileItRegistersAgain(t *testing.T) {
	t.Parallel()
	db := &heldCommits{Database: storetest.New(t), tag: "futura-register", held: make(chan struct{}, 1)}
	b := bedOn(t, db, layout.Config{}, nil)
	w := b.start(Options{Slots: 1}, map[string]Function{"echo": echo})
	db.hold.Store(true)
	b.declareDead(w.ID())
	<-db.held
	w.end()
	require.NoError(t, w.err)
}

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

// heldCommits are a store in which commits with a tag last until their contexts end, once that is asked for.
type heldCommits struct {
	kv.Database
	tag  string
	hold atomic.Bool
	held chan struct{}
}

func (d *heldCommits) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == d.tag && d.hold.Load() {
		return heldCommit{tx, d.held}
	}
	return tx
}

type heldCommit struct {
	kv.Tx
	held chan struct{}
}

func (t heldCommit) Commit(ctx context.Context) (kv.Committed, error) {
	t.Cancel()
	t.held <- struct{}{}
	<-ctx.Done()
	return kv.Committed{}, errors.Join(kv.ErrUnknownResult, ctx.Err())
}

// TestAWorkerThatIsToStopWhileItRegisters has stopped as it was asked to.
func TestAWorkerThatIsToStopWhileItRegisters(t *testing.T) {
	t.Parallel()
	db := &heldCommits{Database: storetest.New(t), tag: "futura-register", held: make(chan struct{}, 1)}
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

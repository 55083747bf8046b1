package reference_test

import (
	"sync"
	"testing"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
	"github.com/stretchr/testify/require"
)

// aged is a store with a clock that tests move.
type aged struct {
	*reference.Database
	mu  sync.Mutex
	now time.Time
}

func open() *aged {
	a := &aged{now: time.Unix(0, 0)}
	a.Database = reference.Open(reference.Options{Now: func() time.Time {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.now
	}})
	return a
}

func (a *aged) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.now.Add(kv.TxLifetime + time.Millisecond)
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, kvtest.Options{
		New:         func(testing.TB) kv.Database { return open() },
		ExpireTx:    func(db kv.Database) { db.(*aged).expire() },
		ManyWatches: true,
	})
}

func TestConformanceWithFaults(t *testing.T) {
	kvtest.Run(t, kvtest.Options{
		New: func(testing.TB) kv.Database {
			return faultkv.Wrap(reference.Open(reference.Options{}), faultkv.Everywhere(1, 0.05))
		},
		Faults: true,
	})
}

func TestClose(t *testing.T) {
	db := reference.Open(reference.Options{})
	tx := db.Begin(kv.Options{})
	w := tx.Watch([]byte("a"))
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
	<-w.Done()
	require.ErrorIs(t, w.Err(), kv.ErrClosed)
	_, err := tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrClosed)
	_, err = db.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrClosed)
}

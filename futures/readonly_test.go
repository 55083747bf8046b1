package futures_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

// readOnly is a store that refuses to commit what was written, while it is full.
type readOnly struct {
	kv.Database
	full atomic.Bool
}

type readOnlyTx struct {
	kv.Tx
	of    *readOnly
	wrote bool
}

func (d *readOnly) Begin(o kv.Options) kv.Tx { return &readOnlyTx{Tx: d.Database.Begin(o), of: d} }

func (t *readOnlyTx) Set(key, value []byte) {
	t.wrote = true
	t.Tx.Set(key, value)
}

func (t *readOnlyTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.wrote && t.of.full.Load() {
		t.Tx.Cancel()
		return kv.Committed{}, kv.ErrReadOnly
	}
	return t.Tx.Commit(ctx)
}

// TestAwaitOnAFullDisk awaits a future that is over beside one that is not, by a
// client that can't subscribe to either.
func TestAwaitOnAFullDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := &readOnly{Database: storetest.New(t)}
	c := newClient(t, db)
	over, err := c.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("done")})
	require.NoError(t, err)
	require.Equal(t, 1, newExecutor(t, c, echo).all(t))
	open, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	db.full.Store(true)
	reader := newClient(t, db)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = reader.Future(open.ID()).Await(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	r, err := reader.Future(over.ID()).Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "ran done", string(r.Value))

	db.full.Store(false)
	require.Equal(t, 1, newExecutor(t, c, echo).all(t))
	_, err = reader.Future(open.ID()).Await(ctx)
	require.NoError(t, err)
}

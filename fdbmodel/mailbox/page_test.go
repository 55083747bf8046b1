package mailbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// watchedStore counts transactions and the watches that are open, and fails some reads of ranges.
type watchedStore struct {
	kv.Database
	begun, open, failing int
}

type watchedTx struct {
	kv.Tx
	store *watchedStore
}

type watchedReader struct {
	kv.Reader
	store *watchedStore
}

type countedWatch struct {
	kv.Watch
	store *watchedStore
}

func (s *watchedStore) Begin(o kv.Options) kv.Tx {
	s.begun++
	return &watchedTx{s.Database.Begin(o), s}
}

func (t *watchedTx) Snapshot() kv.Reader { return watchedReader{t.Tx.Snapshot(), t.store} }

func (t *watchedTx) Watch(key []byte) kv.Watch {
	t.store.open++
	return countedWatch{t.Tx.Watch(key), t.store}
}

func (w countedWatch) Cancel() {
	w.store.open--
	w.Watch.Cancel()
}

func (r watchedReader) GetRange(span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if r.store.failing > 0 {
		r.store.failing--
		return kv.Ready(kv.Page{}, kv.ErrUnavailable)
	}
	return r.Reader.GetRange(span, o)
}

// TestMailIsReadInPages reads each page in one transaction, and leaves a watch at the last one alone. Mail that could
// not be read though its watch was set is read again.
func TestMailIsReadInPages(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	store := &watchedStore{Database: s.Faults}
	c, err := fdbmodel.Open(s.Ctx, store, "unknown", fdbmodel.Options{Clock: s.Clock})
	require.NoError(t, err)
	box := mailbox.Open(c, "a")
	const page = 100
	for range 2*page + 1 {
		end(s, "a")
	}
	for i, want := range []int{page, page, 1, 0} {
		if i == 3 {
			store.failing = 1
		}
		before := store.begun
		notices, watch, err := box.Listen(s.Ctx)
		require.NoError(t, err)
		require.Len(t, notices, want)
		require.Equal(t, want < page, watch != nil)
		if i < 3 {
			require.Equal(t, 1, store.begun-before)
		}
		if watch != nil {
			require.Equal(t, 1, store.open)
			watch.Cancel()
		}
		require.Zero(t, store.open)
	}
}

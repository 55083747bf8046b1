package remote

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// slowStore holds up its first commit, whatever becomes of the caller.
type slowStore struct {
	kv.Database
	first atomic.Bool
	began chan struct{}
	goOn  chan struct{}
	// second is sent a value by each further commit.
	second chan struct{}
}

func (s *slowStore) Begin(o kv.Options) kv.Tx { return &slowTx{s.Database.Begin(o), s} }

type slowTx struct {
	kv.Tx
	store *slowStore
}

func (t *slowTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.store.first.CompareAndSwap(false, true) {
		close(t.store.began)
		<-t.store.goOn
		ctx = context.WithoutCancel(ctx)
	} else {
		t.store.second <- struct{}{}
	}
	return t.Tx.Commit(ctx)
}

// TestCommitInDoubtEndsBeforeItsRetry cuts a connection while a commit of it is
// under way: its client is not served before that is committed.
func TestCommitInDoubtEndsBeforeItsRetry(t *testing.T) {
	t.Parallel()
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	slow := &slowStore{
		Database: store, began: make(chan struct{}), goOn: make(chan struct{}), second: make(chan struct{}, 10),
	}
	comes := make(chan struct{}, 10)
	log := slog.NewTextHandler(writerFunc(func(line []byte) {
		if bytes.Contains(line, []byte("reconnected while its previous connection ends")) {
			comes <- struct{}{}
		}
	}), &slog.HandlerOptions{Level: slog.LevelDebug})
	at, _ := serve(t, slow, ServerOptions{Logger: slog.New(log)})
	p := newProxy(t, at)
	db := dial(t, p.at)
	done := make(chan error, 1)
	go func() {
		_, err := kv.Transact(context.Background(), db, kv.Retry{}, func(a kv.Attempt) error {
			if a.MaybeCommitted {
				mark, err := a.Get([]byte("mark")).Wait(context.Background())
				if err != nil || mark != nil {
					return err
				}
			}
			a.AddReadConflictKey([]byte("mark"))
			a.Set([]byte("mark"), []byte{1})
			a.Atomic(kv.Add, []byte("sum"), []byte{1})
			return nil
		})
		done <- err
	}()
	<-slow.began
	p.cut()
	select {
	case <-comes:
	case <-slow.second:
		require.Fail(t, "the retry was served beside the commit in doubt")
	}
	close(slow.goOn)
	require.NoError(t, <-done)
	require.Equal(t, "\x01", get(t, store, "sum"))
}

// writerFunc implements io.Writer.
type writerFunc func([]byte)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

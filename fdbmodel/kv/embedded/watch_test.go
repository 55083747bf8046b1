package embedded

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

// TestMillionArms arms a lone watch a million times while its row is changed.
func TestMillionArms(t *testing.T) {
	if os.Getenv("FUTURA_LONG") != "1" {
		t.Skip("FUTURA_LONG=1 arms a million watches")
	}
	t.Parallel()
	kvtest.ArmDuringChanges(t, kvtest.Options{New: func(t testing.TB) kv.Database {
		s := OpenMemory(Options{})
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}}, 1_000_000)
}

// TestWatchThatBeginsDuringASync arms a watch after the change that it waits for
// was put in order, and before the change is on the disk.
func TestWatchThatBeginsDuringASync(t *testing.T) {
	t.Parallel()
	syncing, release := make(chan struct{}), make(chan struct{})
	var holding atomic.Bool
	fs := &faultFS{FS: vfs.NewMem(), syncing: func(do func() error) error {
		if holding.CompareAndSwap(true, false) {
			close(syncing)
			<-release
		}
		return do()
	}}
	s := open(t, "store", Options{FS: fs})
	write(t, s, "z", "") // begins the log
	holding.Store(true)
	committed := make(chan error, 1)
	go func() {
		tx := s.Begin(kv.Options{})
		tx.Set([]byte("a"), []byte("1"))
		_, err := tx.Commit(context.Background())
		committed <- err
	}()
	<-syncing
	tx := s.Begin(kv.Options{})
	watch := tx.Watch([]byte("a"))
	_, err := tx.Commit(context.Background())
	require.NoError(t, err)
	select {
	case <-watch.Done():
		require.Fail(t, "the watch shows a change that may be lost")
	default:
	}
	close(release)
	require.NoError(t, <-committed)
	write(t, s, "b", "") // is published after what came before
	select {
	case <-watch.Done():
		require.NoError(t, watch.Err())
	default:
		require.Fail(t, "the watch has not fired")
	}
}

// TestAWatchWaitsOnce has a row be written again and again with the value that a watch has seen, and each time before
// the commit before is visible.
func TestAWatchWaitsOnce(t *testing.T) {
	t.Parallel()
	s := open(t, "store", Options{FS: vfs.NewMem(), Linger: time.Hour})
	write(t, s, "a", "1")
	tx := s.Begin(kv.Options{})
	w := tx.Watch([]byte("a"))
	commit(t, tx)
	again := s.Begin(kv.Options{NoSync: true})
	again.Set([]byte("a"), []byte("1"))
	commit(t, again)
	for range 10 {
		s.watches.published([]*watch{w.(*watch), w.(*watch)})
	}
	require.Len(t, s.watches.pending, 1)
	write(t, s, "a", "2")
	<-w.Done()
	require.NoError(t, w.Err())
}

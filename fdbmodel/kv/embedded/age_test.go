package embedded

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// awaitCommitting returns once a transaction is on its way to the sequencer.
func awaitCommitting(tx kv.Tx) {
	t := tx.(*transaction)
	for {
		t.mu.Lock()
		state := t.state
		t.mu.Unlock()
		if state != txOpen {
			return
		}
		runtime.Gosched()
	}
}

func TestVersionThatIsTooOldAlsoWhileItIsKept(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := OpenMemory(Options{Clock: virtual})
	defer s.Close()
	write(t, s, "a", "1")
	first := s.Begin(kv.Options{})
	defer first.Cancel()
	version, err := first.ReadVersion(context.Background())
	require.NoError(t, err)
	write(t, s, "a", "2")
	at := func() error {
		tx := s.Begin(kv.Options{})
		defer tx.Cancel()
		tx.SetReadVersion(version)
		_, err := tx.Get([]byte("a")).Wait(context.Background())
		return err
	}
	virtual.Advance(s.options.TxLifetime)
	require.NoError(t, at())
	virtual.Advance(1)
	require.ErrorIs(t, at(), kv.ErrTooOld)
}

// TestCommitThatGrowsOldOnItsWay holds a commit up until what it read at has
// been dropped.
func TestCommitThatGrowsOldOnItsWay(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := OpenMemory(Options{Clock: virtual})
	defer s.Close()
	tx := s.Begin(kv.Options{})
	_, err := tx.Get([]byte("a")).Wait(context.Background())
	require.NoError(t, err)
	tx.Set([]byte("b"), nil)
	write(t, s, "c", "1")

	s.commitLock.Lock()
	failed := make(chan error, 1)
	go func() {
		_, err := tx.Commit(context.Background())
		failed <- err
	}()
	awaitCommitting(tx)
	virtual.Advance(2 * s.options.TxLifetime)
	s.sequencer.collect(virtual.Now())
	s.commitLock.Unlock()
	require.ErrorIs(t, <-failed, kv.ErrTooOld)
	require.Nil(t, read(t, s, "b"))
}

// TestAbandonedCommitKeepsItsMemory gives up commits that are under way, and
// fills the memory of the next transaction while they are.
func TestAbandonedCommitKeepsItsMemory(t *testing.T) {
	t.Parallel()
	s := open(t, "store", Options{FS: vfs.NewMem()})
	committed := 0
	for n := range 50 {
		key, value := fmt.Sprintf("abandoned %02d", n), fmt.Sprintf("value %02d", n)
		other := fmt.Sprintf("something %02d", n)
		ctx, cancel := context.WithCancel(context.Background())
		tx := s.Begin(kv.Options{})
		tx.Set([]byte(key), []byte(value))
		s.commitLock.Lock()
		go func() {
			awaitCommitting(tx)
			cancel()
		}()
		_, err := tx.Commit(ctx)
		require.ErrorIs(t, err, kv.ErrUnknownResult)
		next := s.Begin(kv.Options{})
		next.Set([]byte(other), []byte("another"))
		s.commitLock.Unlock()
		commit(t, next)
		require.Equal(t, "another", string(read(t, s, other)))
		if got := read(t, s, key); got != nil {
			require.Equal(t, value, string(got))
			committed++
		}
	}
	require.Positive(t, committed)
	rest := contents(t, s)
	require.GreaterOrEqual(t, len(rest), 50+committed, "others may have committed since")
	for n := range 50 {
		if got, found := rest[fmt.Sprintf("abandoned %02d", n)]; found {
			require.Equal(t, fmt.Sprintf("value %02d", n), got)
		}
	}
}

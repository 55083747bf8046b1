package embedded

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/bubble"
)

// inTurn begins a transaction that takes turns with those of its tag.
func inTurn(s *Store, tag string) kv.Tx { return s.Begin(kv.Options{Tag: tag, Turns: true}) }

// meet has two transactions of a tag meet.
func meet(t *testing.T, s *Store, tag string) {
	t.Helper()
	a, b := inTurn(s, tag), inTurn(s, tag)
	for _, tx := range []kv.Tx{a, b} {
		_, err := tx.Get([]byte("x")).Wait(context.Background())
		require.NoError(t, err)
		tx.Set([]byte("x"), []byte(tag))
	}
	commit(t, a)
	_, err := b.Commit(context.Background())
	require.ErrorIs(t, err, kv.ErrConflict)
}

// reading reads a key in a goroutine of its own.
func reading(tx kv.Tx) (read func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = tx.Get([]byte("x")).Wait(context.Background())
	}()
	return func() bool {
		synctest.Wait()
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// TestTurns: transactions of a tag read one after the other for a second after a conflict, and each reads
// what the one before it wrote.
func TestTurns(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := OpenMemory(Options{})
		a, b := inTurn(s, "t"), inTurn(s, "t")
		require.True(t, reading(a)() && reading(b)(), "they have not met")
		a.Cancel()
		b.Cancel()

		meet(t, s, "t")
		first, second, third := inTurn(s, "t"), inTurn(s, "t"), inTurn(s, "t")
		require.True(t, reading(first)())
		secondReads := reading(second)
		require.False(t, secondReads(), "the first has the turn")
		thirdReads := reading(third)
		require.False(t, thirdReads())
		others := []kv.Tx{inTurn(s, "u"), s.Begin(kv.Options{Tag: "t"})}
		for _, tx := range others {
			require.True(t, reading(tx)(), "it takes no turns with them")
			tx.Cancel()
		}
		first.Set([]byte("x"), []byte("first"))
		commit(t, first)
		require.True(t, secondReads())
		require.False(t, thirdReads())
		v, err := second.Get([]byte("x")).Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, []byte("first"), v)
		second.Set([]byte("x"), []byte("second"))
		commit(t, second)
		require.True(t, thirdReads())
		third.Cancel()
		fourth := inTurn(s, "t")
		require.True(t, reading(fourth)(), "the one before it was cancelled")
		fourth.Cancel()
		blind := inTurn(s, "t")
		blind.Set([]byte("x"), nil)
		commit(t, blind)

		<-time.After(turnsFor)
		late, later := inTurn(s, "t"), inTurn(s, "t")
		require.True(t, reading(late)() && reading(later)(), "they have not met for a second")
		late.Cancel()
		later.Cancel()
		require.NoError(t, s.Close())
	})
}

// TestATurnIsTakenFromOneThatStops: a transaction that does not go on holds each other one up once, for a quarter
// of a second, and may end as it likes. One that is cancelled while it waits leaves the turn alone.
func TestATurnIsTakenFromOneThatStops(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := OpenMemory(Options{})
		meet(t, s, "t")
		stopped, next := inTurn(s, "t"), inTurn(s, "t")
		require.True(t, reading(stopped)())
		nextReads := reading(next)
		<-time.After(turnWait - time.Millisecond)
		require.False(t, nextReads())
		<-time.After(time.Millisecond)
		require.True(t, nextReads())

		gone, after := inTurn(s, "t"), inTurn(s, "t")
		goneReads := reading(gone)
		require.False(t, goneReads(), "the turn is another's now")
		gone.Cancel()
		afterReads := reading(after)
		require.False(t, afterReads())
		next.Set([]byte("x"), []byte("next"))
		commit(t, next)
		require.True(t, goneReads())
		require.True(t, afterReads())
		after.Cancel()

		stopped.Set([]byte("x"), []byte("stopped"))
		_, err := stopped.Commit(t.Context())
		require.ErrorIs(t, err, kv.ErrConflict)
		require.NoError(t, s.Close())
	})
}

// TestATurnReadsACommitThatLingers: the one before it may have committed with NoSync.
func TestATurnReadsACommitThatLingers(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{Linger: time.Hour})
	meet(t, s, "t")
	first := s.Begin(kv.Options{Tag: "t", Turns: true, NoSync: true})
	_, err := first.Get([]byte("x")).Wait(t.Context())
	require.NoError(t, err)
	first.Set([]byte("x"), []byte("first"))
	commit(t, first)
	require.Equal(t, []byte("t"), read(t, s, "x"), "it is not on disk")
	second := inTurn(s, "t")
	v, err := second.Get([]byte("x")).Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, []byte("first"), v)
	second.Set([]byte("x"), []byte("second"))
	commit(t, second)
}

// TestTurnsOfManyTags: tags that a client makes up are forgotten, and bounded meanwhile.
func TestTurnsOfManyTags(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := OpenMemory(Options{})
		for i := range 3 * maxTurns {
			meet(t, s, fmt.Sprint(i))
		}
		require.Len(t, s.turns.byTag, maxTurns)
		<-time.After(turnsFor)
		meet(t, s, "one")
		require.Len(t, s.turns.byTag, 1)
		require.NoError(t, s.Close())
	})
}

// TestReadsAtOnce says which transactions would wait for a turn.
func TestReadsAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := OpenMemory(Options{})
		defer s.Close()
		atOnce := kv.TraitsOf(s).ReadsAtOnce
		require.True(t, atOnce(kv.Options{Tag: "t", Turns: true}))
		meet(t, s, "t")
		require.False(t, atOnce(kv.Options{Tag: "t", Turns: true}))
		require.True(t, atOnce(kv.Options{Tag: "t"}))
		require.True(t, atOnce(kv.Options{Tag: "other", Turns: true}))
		<-time.After(turnsFor)
		require.True(t, atOnce(kv.Options{Tag: "t", Turns: true}))
	})
}

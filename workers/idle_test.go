package workers

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// commonStore is one that other processes reach too. It counts the commits of a tag.
type commonStore struct {
	kv.Database
	tag string

	mu                 sync.Mutex
	commits, conflicts int
}

type countedTx struct {
	kv.Tx
	store *commonStore
}

func (s *commonStore) Traits() kv.Traits {
	traits := kv.TraitsOf(s.Database)
	traits.Exclusive = false
	if wait := traits.WaitConflict; wait != nil {
		traits.WaitConflict = func(ctx context.Context, tx kv.Tx) error {
			if counted, ok := tx.(countedTx); ok {
				tx = counted.Tx
			}
			return wait(ctx, tx)
		}
	}
	return traits
}

func (s *commonStore) Begin(o kv.Options) kv.Tx {
	if o.Tag == s.tag {
		return countedTx{s.Database.Begin(o), s}
	}
	return s.Database.Begin(o)
}

func (t countedTx) Commit(ctx context.Context) (kv.Committed, error) {
	c, err := t.Tx.Commit(ctx)
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if t.store.commits++; errors.Is(err, kv.ErrConflict) {
		t.store.conflicts++
	}
	return c, err
}

func (s *commonStore) counts() (commits, conflicts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits, s.conflicts
}

// until waits while the clock is stopped, except where done moves it.
func (b *bed) until(done func() bool) {
	b.t.Helper()
	for give := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		require.True(b.t, time.Now().Before(give), "it did not come")
	}
}

// TestABusyWorkerDoesNotRegisterAsIdle has a worker run one future after the other, on a store
// that others reach too: by hints of its process, and then woken through the store.
func TestABusyWorkerDoesNotRegisterAsIdle(t *testing.T) {
	t.Parallel()
	store := &commonStore{Database: storetest.New(t), tag: "futura-idle"}
	b := bedOn(t, store, layout.Config{}, clock.NewVirtual(epoch))
	early := false // the worker registered while this function ran
	b.start(Options{Poll: 1000 * time.Hour, Slots: 4}, map[string]Function{"echo": echo,
		"look": func(context.Context, []byte) ([]byte, error) {
			before, _ := store.counts()
			for end := time.Now().Add(100 * time.Millisecond); !early && time.Now().Before(end); runtime.Gosched() {
				now, _ := store.counts()
				early = now > before
			}
			return nil, nil
		}})
	registered := func(times int) { b.until(func() bool { commits, _ := store.counts(); return commits == times }) }
	registered(1)
	for range 20 {
		id := b.one("go:echo")
		b.until(func() bool { return b.rowOver(id) })
	}
	registered(1)
	b.until(func() bool {
		b.clock.Advance(hintTime)
		commits, _ := store.counts()
		return commits == 2
	})

	other, err := fdbmodel.Open(b.ctx, store, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	for i := range 20 {
		function := "go:echo"
		if i%10 == 0 {
			function = "go:look"
		}
		answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: function}}})
		require.NoError(t, err)
		b.until(func() bool { return b.rowOver(answers[0].ID) })
		registered(3 + i)
	}
	require.False(t, early)
	_, conflicts := store.counts()
	require.Zero(t, conflicts)
}

// TestAWorkerWaitsForHintsInTurn has a client that submits anew a while after each end, then
// also one whose hints do not reach the worker.
func TestAWorkerWaitsForHintsInTurn(t *testing.T) {
	t.Parallel()
	if storetest.OnServer {
		t.Skip("a server's time is not that of the test")
	}
	inBubble(t, func(t *testing.T) {
		store := &commonStore{Database: storetest.New(t), tag: "futura-idle"}
		b := bedOn(t, store, layout.Config{}, nil)
		b.start(Options{Poll: time.Hour}, map[string]Function{"echo": echo})
		ends := func(id layout.ID, pause time.Duration) (took time.Duration) {
			for begun := time.Now(); !b.rowOver(id); took = time.Since(begun) {
				require.Less(t, took, time.Minute)
				<-time.After(100 * time.Microsecond)
			}
			<-time.After(pause)
			return took
		}
		rounds := func(n int, pause time.Duration) (registered int) {
			before, _ := store.counts()
			for range n {
				ends(b.one("go:echo"), pause)
			}
			after, _ := store.counts()
			return after - before
		}
		rounds(3, 2*hintTime)
		require.Zero(t, rounds(20, 2*hintTime), "it knows when the next one comes")
		rounds(3, hintTimeMax)
		require.Equal(t, 20, rounds(20, hintTimeMax), "it does not wait longer than it may")
		rounds(3, 2*hintTime)

		other, err := fdbmodel.Open(b.ctx, store, "test", fdbmodel.Options{})
		require.NoError(t, err)
		late := 0
		for range hintless / 3 {
			answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:echo"}}})
			require.NoError(t, err)
			if ends(answers[0].ID, 2*hintTime) > hintTime {
				late++
			}
			ends(b.one("go:echo"), hintTime/2)
		}
		require.Less(t, late, hintless/12, "clients without hints are not kept waiting each time")
	})
}

// TestMoreRoomLeadsToALookWhereItIsWanted has functions end beside one that fits only when
// they have.
func TestMoreRoomLeadsToALookWhereItIsWanted(t *testing.T) {
	t.Parallel()
	b := bedOn(t, &commonStore{Database: storetest.New(t)}, layout.Config{}, clock.NewVirtual(epoch))
	gate := make(chan struct{})
	wait := func(context.Context, []byte) ([]byte, error) {
		<-gate
		return nil, nil
	}
	b.start(Options{Slots: 4, CPU: 4}, map[string]Function{"echo": echo, "wait": wait})
	needs := func(function string, cpu int64) layout.ID {
		return b.submit(fdbmodel.Submission{Spec: layout.Spec{Function: function,
			Requirements: layout.Requirements{CPU: cpu}}})[0]
	}
	first := needs("go:wait", 3)
	b.until(func() bool { row := b.row(first); return row.State() == layout.Claimed })
	large := needs("go:echo", 2)
	small := needs("go:echo", 1)
	b.until(func() bool { return b.rowOver(small) }) // the claim that took it passed over the large one
	gate <- struct{}{}
	b.until(func() bool { return b.rowOver(large) })
}

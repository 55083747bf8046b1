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

// TestABusyWorkerDoesNotRegisterAsIdle has a worker run one future after the other, on a store
// that others reach too: by hints of its process, and then woken through the store.
func TestABusyWorkerDoesNotRegisterAsIdle(t *testing.T) {
	t.Parallel()
	store := &commonStore{Database: storetest.New(t), tag: "futura-idle"}
	b := bedOn(t, store, layout.Config{}, clock.NewVirtual(epoch))
	b.start(Options{Poll: 1000 * time.Hour}, map[string]Function{"echo": echo})
	// The clock is stopped, except where the test moves it.
	until := func(done func() bool) {
		t.Helper()
		give := time.Now().Add(awaitBound)
		for !done() {
			require.Less(t, time.Now(), give)
			runtime.Gosched()
		}
	}
	registered := func(times int) { until(func() bool { commits, _ := store.counts(); return commits == times }) }
	registered(1)
	for range 20 {
		id := b.one("go:echo")
		until(func() bool { return b.rowOver(id) })
	}
	registered(1)
	until(func() bool {
		b.clock.Advance(hintTime)
		commits, _ := store.counts()
		return commits == 2
	})

	other, err := fdbmodel.Open(b.ctx, store, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	for i := range 20 {
		answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:echo"}}})
		require.NoError(t, err)
		until(func() bool { return b.rowOver(answers[0].ID) })
		registered(3 + i)
	}
	_, conflicts := store.counts()
	require.Zero(t, conflicts)
}

// TestMoreRoomLeadsToALookWhereItIsWanted has functions end beside one that fits only when
// they have.
func TestMoreRoomLeadsToALookWhereItIsWanted(t *testing.T) {
	t.Parallel()
	b := bedOn(t, &commonStore{Database: storetest.New(t)}, layout.Config{}, clock.NewVirtual(epoch))
	gate := make(chan struct{})
	b.start(Options{Slots: 4, CPU: 4}, map[string]Function{"echo": echo, "wait": func(context.Context, []byte) ([]byte, error) {
		<-gate
		return nil, nil
	}})
	needs := func(function string, cpu int64) layout.ID {
		return b.submit(fdbmodel.Submission{Spec: layout.Spec{Function: function,
			Requirements: layout.Requirements{CPU: cpu}}})[0]
	}
	first := needs("go:wait", 3)
	b.await("the first to run", func() bool { row := b.row(first); return row.State() == layout.Claimed })
	large := needs("go:echo", 2)
	gate <- struct{}{}
	b.awaitOver(first, large)
}

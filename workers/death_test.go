package workers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

func TestPausedWorkerThatWasReapedChangesNothing(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	late := newBlocker(false)
	paused := b.start(Options{Slots: 1}, map[string]Function{"work": late.run})
	old := paused.ID()
	id := b.one("go:work")
	b.begins(late)
	paused.freeze()
	b.start(Options{Slots: 1}, map[string]Function{
		"work": func(context.Context, []byte) ([]byte, error) { return []byte("in time"), nil },
	})
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, 1, row.Attempts.Suspicion())
	close(late.end)
	b.await("the return of the function", func() bool { return paused.Stats().Running == 0 })
	paused.thaw()
	b.await("the late end, and a new membership", func() bool { return paused.Stats().Lost == 1 && paused.ID() != old })
	require.Equal(t, row, b.row(id))
	require.Equal(t, "in time", string(row.Result.Value))
	b.await("the new membership in the store", func() bool {
		m, found := b.member(paused.ID())
		_, stillThere := b.member(old)
		return found && m.Alive && !stillThere
	})
	b.awaitOver(b.many(20, "go:work")...)
}

// TestIdleWorkerIsWokenForWhatIsReaped has an idle worker that never polls, and a
// worker that vanishes with a future.
func TestIdleWorkerIsWokenForWhatIsReaped(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	defer close(work.end)
	victim := b.start(Options{Slots: 1}, map[string]Function{"work": work.run})
	id := b.one("go:work")
	b.begins(work)
	const never = 1e6 * time.Hour
	b.start(Options{Slots: 1, Poll: never}, map[string]Function{"work": echo})
	b.await("the other one to be idle", func() bool {
		tx := b.db.Begin(kv.Options{})
		defer tx.Cancel()
		page, err := tx.GetRange(kv.Prefix(b.cluster.Keys().IdleQueue(layout.DefaultQueue)), kv.RangeOptions{}).Wait(b.ctx)
		require.NoError(t, err)
		return len(page.Items) == 1
	})
	victim.crash()
	b.awaitOver(id)
	require.Equal(t, 1, b.row(id).Attempts.Suspicion())
	require.Less(t, b.clock.Now().Sub(epoch), never/2)
}

func TestReapedWorkerKeepsTheSlotOfAStuckFunction(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	stuck := newBlocker(false)
	w := b.start(Options{Slots: 2}, map[string]Function{"stuck": stuck.run, "echo": echo})
	old := w.ID()
	id := b.one("go:stuck", func(s *fdbmodel.Submission) { s.Spec.Timeout = time.Hour })
	b.begins(stuck)
	b.declareDead(old)
	b.await("a new membership", func() bool { return w.ID() != old })
	// The same future runs again, beside the function that is stuck.
	again := b.begins(stuck)
	require.Equal(t, id, again.ID)
	require.NotEqual(t, old, again.Worker)
	require.Zero(t, w.Stats().Free.Slots)
	close(stuck.end)
	b.awaitOver(id)
	require.Equal(t, layout.Realized, stateOf(b, id))
	b.await("free slots", func() bool { return w.Stats().Free.Slots == 2 })
}

// declareDead acts as a janitor that saw no heartbeat.
func (b *bed) declareDead(id layout.WorkerID) {
	b.await("a death", func() bool {
		m, found := b.member(id)
		if !found {
			return true
		}
		dead, err := b.cluster.DeclareDead(b.ctx, id, m.Beat)
		require.NoError(b.t, err)
		if dead {
			_, err = b.cluster.ReapClaims(b.ctx, id)
			require.NoError(b.t, err)
		}
		return dead
	})
}

func TestHeirOfAnAddress(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	big, small := newBlocker(true), newBlocker(true)
	o := Options{Address: "10.0.0.1:7000", Slots: 3, CPU: 4000}
	victim := b.start(o, map[string]Function{"big": big.run, "small": small.run})
	bigID := b.one("go:big", func(s *fdbmodel.Submission) { s.Spec.Requirements.CPU = 4000 })
	smallIDs := b.many(2, "go:small")
	b.begins(big)
	b.begins(small)
	b.begins(small)
	victim.crash()
	<-victim.done
	killed := b.clock.Now()
	require.EqualValues(t, 3, b.counts()[layout.Claimed])

	o.CPU = 1000
	heir := b.start(o, map[string]Function{"big": echo, "small": echo})
	_, there := b.member(victim.ID())
	require.False(t, there)
	b.awaitOver(smallIDs...)
	require.Less(t, b.clock.Now().Sub(killed), b.cluster.Config().DeadAfter)
	for _, id := range append(smallIDs, bigID) {
		require.Equal(t, 1, b.row(id).Attempts.Suspicion())
		require.Zero(t, b.row(id).Attempts.Crashes+b.row(id).Attempts.Failed)
	}
	require.Equal(t, heir.ID(), b.row(smallIDs[0]).Result.Worker)
	b.await("the return of the big one", func() bool { return stateOf(b, bigID) == layout.Ready })
	explanation, err := inspect.Explain(b.ctx, b.cluster, bigID)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonInfeasible, explanation.Reason)
	require.Zero(t, b.counts()[layout.Claimed])

	b.start(Options{Slots: 1, CPU: 4000}, map[string]Function{"big": echo})
	b.awaitOver(bigID)
	require.Equal(t, layout.Realized, stateOf(b, bigID))
}

func TestVanishedWorkerIsReapedByAnother(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	stuck := newBlocker(true)
	victim := b.start(Options{Slots: 4}, map[string]Function{"work": stuck.run})
	ids := b.many(20, "go:work")
	for range 4 {
		b.begins(stuck)
	}
	victim.crash()
	<-victim.done
	require.NoError(t, victim.err)
	require.EqualValues(t, 4, b.counts()[layout.Claimed])
	other := b.start(Options{}, map[string]Function{"work": echo})
	b.awaitOver(ids...)
	b.await("the end of the dead worker's records", func() bool { _, there := b.member(victim.ID()); return !there })
	b.await("the count of what was reaped", func() bool { return other.Stats().Reaped == 4 })
	deaths := 0
	for _, id := range ids {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		deaths += row.Attempts.Suspicion()
		require.Zero(t, row.Attempts.Crashes)
	}
	require.Equal(t, 4, deaths)
}

// tripwire is a store that fails for good after some reaping transactions.
type tripwire struct {
	kv.Database
	left atomic.Int64
}

var errTripped = errors.New("the process is dead")

func (d *tripwire) Begin(o kv.Options) kv.Tx {
	return &tripwireTx{Tx: d.Database.Begin(o), of: d, reaps: o.Tag == "futura-reap"}
}

type tripwireTx struct {
	kv.Tx
	of    *tripwire
	reaps bool
}

func (t *tripwireTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.of.left.Load() <= 0 || t.reaps && t.of.left.Add(-1) <= 0 {
		return kv.Committed{}, errTripped
	}
	return t.Tx.Commit(ctx)
}

func TestJanitorThatDiesMidwayThroughAReap(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	dead, err := b.cluster.Register(b.ctx, layout.WorkerInfo{
		Functions: []string{"go:work"}, Capacity: layout.Resources{Slots: 100},
	})
	require.NoError(t, err)
	ids := b.many(60, "go:work")
	for held := 0; held < len(ids); {
		answer, err := dead.Claim(b.ctx, fdbmodel.ClaimRequest{Free: dead.Info().Capacity, Max: 6})
		require.NoError(t, err)
		held += len(answer.Futures)
	}
	db := &tripwire{Database: b.db}
	db.left.Store(5)
	cluster, err := fdbmodel.Open(b.ctx, db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	first, err := FromCluster(cluster, Options{Seam: &seam.Worker{Manual: true}})
	require.NoError(t, err)
	for range 1000 {
		// What the dead store refuses is an error of the step, or of its janitor.
		_, _ = first.step(b.ctx, b.clock.Now())
		b.clock.Advance(b.cluster.Config().Heartbeat / 2)
		if db.left.Load() <= 0 {
			break
		}
	}
	first.crash()
	require.LessOrEqual(t, db.left.Load(), int64(0))
	m, there := b.member(dead.ID())
	require.True(t, there)
	require.False(t, m.Alive)
	require.Positive(t, m.Claims)
	require.Positive(t, b.counts()[layout.Delayed])

	b.start(Options{}, map[string]Function{"work": echo})
	b.awaitOver(ids...)
	for _, id := range ids {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Equal(t, 1, row.Attempts.Suspicion())
	}
	b.await("the end of the dead", func() bool {
		members, err := b.cluster.Workers(b.ctx)
		require.NoError(t, err)
		return len(members) == 1
	})
}

// TestDeathsFailAFuture: the first one only makes it a poison candidate.
func TestDeathsFailAFuture(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	deadly := newBlocker(true)
	id := b.one("go:deadly")
	for i := range 1 + fdbmodel.MaxCrashes {
		require.Equal(t, max(0, i-2), b.row(id).Attempts.Crashes, "the last death was not noticed yet")
		w := b.start(Options{Address: "10.0.0.1:7000", Slots: 1}, map[string]Function{"deadly": deadly.run})
		b.begins(deadly)
		require.Equal(t, layout.Claimed, stateOf(b, id), fmt.Sprint(i))
		w.crash()
		<-w.done
	}
	b.start(Options{Address: "10.0.0.1:7000", Slots: 1}, map[string]Function{"deadly": echo})
	b.awaitOver(id)
	require.Equal(t, layout.KindLost, b.row(id).Exception.Kind)
}

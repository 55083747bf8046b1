package workers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

func TestDrainLetsFunctionsEnd(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(true)
	w := b.start(Options{Slots: 2, DrainTimeout: time.Hour}, map[string]Function{"work": work.run})
	ids := b.many(5, "go:work")
	b.begins(work)
	b.begins(work)
	w.stop()
	rounds := 0
	b.await("some heartbeats", func() bool { rounds++; return rounds > 100 })
	m, there := b.member(w.ID())
	require.True(t, there)
	require.Positive(t, m.Heartbeat.Count)
	require.True(t, m.Heartbeat.Draining)
	close(work.end)
	<-w.done
	require.NoError(t, w.err)
	require.Equal(t, map[layout.State]int64{layout.Realized: 2, layout.Ready: 3}, nonZero(b.counts()))
	for _, id := range ids {
		row := b.row(id)
		require.Zero(t, row.Attempts)
		require.Equal(t, row.State() == layout.Realized, row.Claim != nil)
	}
	_, there = b.member(w.ID())
	require.False(t, there)
}

// A worker leaves only after it has written how a function ended, even if that is being put
// together when nothing runs any more.
func TestDrainAwaitsWhatIsBeingSettled(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(true)
	w := b.start(Options{DrainTimeout: time.Hour}, map[string]Function{"work": work.run})
	id := b.one("go:work")
	b.begins(work)
	m := w.membership
	m.progress.mu.Lock() // the end takes the last progress with it
	w.stop()
	close(work.end)
	b.await("the end of the function", func() bool { return m.closing.Load() && len(w.slots.runningOf(m)) == 0 })
	rounds := 0
	b.await("some heartbeats", func() bool { rounds++; return rounds > 60 })
	_, there := b.member(w.ID())
	m.progress.mu.Unlock()
	require.True(t, there)
	<-w.done
	require.NoError(t, w.err)
	require.Equal(t, layout.Realized, stateOf(b, id))
}

func TestDrainGivesBackWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	heeds, ignores := newBlocker(true), newBlocker(false)
	causes := make(chan error, 1)
	w := b.start(Options{Slots: 2, DrainTimeout: time.Minute}, map[string]Function{
		"heeds": func(ctx context.Context, args []byte) ([]byte, error) {
			_, err := heeds.run(ctx, args)
			causes <- err
			return nil, err
		},
		"ignores": ignores.run,
	})
	ids := []layout.ID{b.one("go:heeds"), b.one("go:ignores")}
	b.begins(heeds)
	b.begins(ignores)
	stopped := b.clock.Now()
	w.end()
	require.GreaterOrEqual(t, b.clock.Now().Sub(stopped), time.Minute)
	require.ErrorIs(t, <-causes, ErrStopping)
	for _, id := range ids {
		row := b.row(id)
		require.Equal(t, layout.Ready, row.State())
		require.Zero(t, row.Attempts)
	}
	require.EqualValues(t, 2, w.Stats().Relinquished)
	// The function's late result is discarded.
	close(ignores.end)
	b.await("its return", func() bool { return w.Stats().Running == 0 })
	require.Equal(t, layout.Ready, stateOf(b, ids[1]))
	next := b.start(Options{}, map[string]Function{"heeds": echo, "ignores": echo})
	b.awaitOver(ids...)
	require.Equal(t, next.ID(), b.row(ids[1]).Result.Worker)
}

// TestDrainingWorkerIsNoJanitor has a delayed future become ready while the worker that was the
// janitor waits for a function to end.
func TestDrainingWorkerIsNoJanitor(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	holder := func() layout.WorkerID {
		_, id, err := maintenance.Of(b.cluster).Present(b.ctx)
		require.NoError(t, err)
		return id
	}
	w := b.start(Options{Slots: 1, DrainTimeout: 1000 * time.Hour}, map[string]Function{"work": work.run})
	b.one("go:work")
	b.begins(work)
	b.await("the role", func() bool { return holder() == w.ID() })
	next := b.start(Options{Slots: 1}, map[string]Function{"work": work.run})
	end := sync.OnceFunc(func() { close(work.end) })
	t.Cleanup(end)
	stopped := b.clock.Now()
	w.stop()
	b.await("the next janitor", func() bool { return holder() == next.ID() })
	require.Less(t, b.clock.Now().Sub(stopped), b.cluster.Config().DeadAfter)
	require.Equal(t, 1, w.Stats().Running)
	end()
	w.end()
	require.Equal(t, next.ID(), holder())
}

func TestStopWhilePaused(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	w := b.start(Options{Slots: 1}, map[string]Function{"work": work.run})
	id := b.one("go:work")
	b.begins(work)
	w.freeze()
	close(work.end)
	w.end()
	require.Equal(t, layout.Realized, stateOf(b, id))
}

// TestPauseClaimsNoMore checks that a paused worker stays a member, finishes
// its functions, and claims again after Resume.
func TestPauseClaimsNoMore(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	w := b.start(Options{Slots: 1}, map[string]Function{"work": work.run})
	member := w.ID()
	running := b.one("go:work")
	b.begins(work)
	w.Pause()
	close(work.end)
	b.awaitOver(running)
	waiting := b.one("go:work")
	other := b.start(Options{Slots: 1, Queues: []string{"other"}}, map[string]Function{"echo": echo})
	elsewhere := b.one("go:echo", func(s *fdbmodel.Submission) { s.Spec.Queue = "other" })
	b.awaitOver(elsewhere)
	beaten := b.clock.Now()
	b.await("two dead-after times", func() bool {
		return b.clock.Now().Sub(beaten) > 2*b.cluster.Config().DeadAfter
	})
	require.Equal(t, layout.Ready, stateOf(b, waiting))
	require.Equal(t, member, w.ID())
	m, found := b.member(member)
	require.True(t, found && m.Alive)
	require.Zero(t, other.Stats().Reaped)
	w.Resume()
	b.awaitOver(waiting)
}

// TestDrainingWorkerTakesNoHints has a worker with a free slot that waits for a
// function to end: it is not in the ring of idle workers.
func TestDrainingWorkerTakesNoHints(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	w := b.start(Options{Slots: 2, DrainTimeout: 1000 * time.Hour}, map[string]Function{"work": work.run})
	idle := func() bool {
		tx := b.db.Begin(kv.Options{})
		defer tx.Cancel()
		value, err := tx.Get(b.cluster.Keys().Idle(layout.DefaultQueue, w.ID())).Wait(b.ctx)
		require.NoError(t, err)
		return value != nil
	}
	b.one("go:work")
	b.begins(work)
	b.await("a worker with a free slot to be idle", idle)
	w.stop()
	b.await("it to leave the ring", func() bool { return !idle() })
	require.Equal(t, 1, w.Stats().Running)
	close(work.end)
	w.end()
}

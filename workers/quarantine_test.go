package workers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// mortal is a worker that is started again whenever it dies.
type mortal struct {
	bed   *bed
	seam  seam.Worker
	w     *Worker
	began map[layout.ID]int // runs by future
}

// live starts the worker anew, at the address of its dead self. Its function
// kill ends it.
func (m *mortal) live(o Options) {
	m.seam = seam.Worker{Manual: true}
	o.Seam, o.Address = &m.seam, "10.0.0.1:1"
	w, err := FromCluster(m.bed.cluster, o)
	require.NoError(m.bed.t, err)
	run := func(kill bool) Function {
		return func(ctx context.Context, _ []byte) ([]byte, error) {
			info, _ := InfoFrom(ctx)
			m.began[info.ID]++
			if kill {
				m.seam.Vanish()
			}
			return nil, nil
		}
	}
	require.NoError(m.bed.t, w.Register("innocent", run(false)))
	require.NoError(m.bed.t, w.Register("poison", run(true)))
	m.w = w
}

// step lets the worker act once, and time pass.
func (m *mortal) step() {
	now := m.bed.clock.Now()
	next, err := m.seam.Step(m.bed.ctx, now)
	require.NoError(m.bed.t, err)
	m.bed.clock.Advance(max(min(next.Sub(now), time.Second), time.Millisecond))
}

// TestNothingIsChargedThatNeverStarted kills a worker between its claims and its
// runs, again and again.
func TestNothingIsChargedThatNeverStarted(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	futures, enough := 600, 100
	if storetest.OnServer && !long() {
		futures, enough = 100, 10
	}
	ids := b.many(futures, "go:innocent")
	m := &mortal{bed: b, began: map[layout.ID]int{}}
	o := Options{Slots: 16}
	m.live(o)
	for isCurrent := 0; b.counts()[layout.Realized] < int64(len(ids)); {
		m.step()
		// What it has claimed runs in its next step.
		if _, _, waiting := m.w.slots.status(); waiting > 0 && isCurrent < 40 && len(m.began) > isCurrent*10 {
			isCurrent++
			m.seam.Vanish()
			m.live(o)
		}
	}
	died := 0
	for _, id := range ids {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.LessOrEqual(t, row.Attempts.Crashes, m.began[id]-1)
		died += row.Attempts.Suspicion()
	}
	require.Greater(t, died, enough)
}

// TestPoisonFailsAlone has one future that kills each worker that runs it, among
// others that run beside it in goroutines of their own.
func TestPoisonFailsAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		const slots = 16
		var mu sync.Mutex
		var present *running
		var deaths atomic.Int64
		kill := make(chan struct{}, 100)
		functions := map[string]Function{
			"innocent": func(ctx context.Context, _ []byte) ([]byte, error) {
				// It takes a while, so that others run beside it.
				return nil, clock.Sleep(ctx, b.clock, 100*time.Millisecond)
			},
			"poison": func(ctx context.Context, _ []byte) ([]byte, error) {
				mu.Lock()
				w := present
				mu.Unlock()
				w.crash()
				deaths.Add(1)
				kill <- struct{}{}
				<-ctx.Done()
				return nil, nil
			},
		}
		start := func() {
			mu.Lock()
			defer mu.Unlock()
			present = b.start(Options{Slots: slots, Address: "10.0.0.1:1"}, functions)
		}
		subs := make([]fdbmodel.Submission, 60)
		for i := range subs {
			subs[i] = b.describe("go:innocent")
		}
		const poison = 7
		subs[poison] = b.describe("go:poison")
		ids := b.submit(subs...)
		start()
		b.await("the end of all", func() bool {
			select {
			case <-kill:
				<-present.done
				start()
			default:
			}
			counts := b.counts()
			return counts[layout.Realized]+counts[layout.Failed] == int64(len(ids))
		})
		require.EqualValues(t, 1+fdbmodel.MaxCrashes, deaths.Load())
		for i, id := range ids {
			row := b.row(id)
			if i == poison {
				require.Equal(t, layout.KindLost, row.Exception.Kind)
				require.Equal(t, fdbmodel.MaxCrashes, row.Attempts.Crashes)
				continue
			}
			require.Equal(t, layout.Realized, row.State(), "%+v", row)
			require.Less(t, row.Attempts.Crashes, fdbmodel.MaxCrashes)
		}
	})
}

// unfinished is a store in which no future ends until it is let.
type unfinished struct {
	kv.Database
	let chan struct{}
}

func (u *unfinished) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-finish" {
		<-u.let
	}
	return u.Database.Begin(o)
}

// TestQuarantineLastsUntilTheEndIsWritten has the store be slow to end a poison candidate: if
// another function killed the process meanwhile, the candidate would be charged.
func TestQuarantineLastsUntilTheEndIsWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		store := &unfinished{Database: storetest.New(t), let: make(chan struct{})}
		b := bedOn(t, store, layout.Config{}, clock.NewVirtual(epoch))
		candidate, other := newBlocker(false), newBlocker(false)
		id := b.one("go:candidate", later)
		b.addDeaths(id, quarantineFrom)
		w := b.start(Options{Slots: 4}, map[string]Function{"candidate": candidate.run, "other": other.run})
		require.NoError(t, b.cluster.Retry(b.ctx, id))
		b.begins(candidate)
		next := b.one("go:other")
		close(candidate.end)
		if !storetest.OnServer {
			synctest.Wait()
		}
		require.Empty(t, other.began)
		require.Equal(t, 1, w.Stats().Running)
		close(store.let)
		b.begins(other)
		require.Equal(t, layout.Realized, stateOf(b, id))
		close(other.end)
		b.awaitOver(next)
		b.wantSlots(w)
	})
}

// addDeaths gives a future some deaths of workers.
func (b *bed) addDeaths(id layout.ID, deaths int) {
	for range deaths {
		w, err := b.cluster.Register(b.ctx, layout.WorkerInfo{
			Functions: []string{"go:candidate"}, Capacity: layout.Resources{Slots: 1},
		})
		require.NoError(b.t, err)
		require.NoError(b.t, b.cluster.Retry(b.ctx, id))
		answer, err := w.Claim(b.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(b.t, err)
		require.Len(b.t, answer.Futures, 1)
		b.declareDead(w.ID())
	}
}

// hurry has a delayed future run now. Beside a slow server the clock may have come to its time.
func (b *bed) hurry(id layout.ID) {
	if err := b.cluster.Retry(b.ctx, id); err != nil {
		require.ErrorIs(b.t, err, fdbmodel.ErrTransition)
	}
}

// later is so far ahead that no virtual clock gets there beside a slow server.
func later(s *fdbmodel.Submission) { s.NotBefore = epoch.Add(1000 * time.Hour) }

// TestAPoisonCandidateRunsInQuarantine: it waits for what runs, and nothing starts before
// it has ended.
func TestAPoisonCandidateRunsInQuarantine(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	id := b.one("go:candidate", later)
	b.addDeaths(id, 2)
	before, candidate, after := newBlocker(true), newBlocker(true), newBlocker(true)
	w := b.start(Options{Slots: 4}, map[string]Function{
		"before": before.run, "candidate": candidate.run, "after": after.run,
	})
	b.one("go:before")
	b.begins(before)
	b.hurry(id)
	b.await("the claim of the candidate", func() bool { return stateOf(b, id) == layout.Claimed })
	b.one("go:after")
	require.Empty(t, candidate.began)
	close(before.end)
	b.begins(candidate)
	require.Equal(t, 1, w.Stats().Running)
	require.Empty(t, after.began)
	close(candidate.end)
	b.awaitOver(id)
	b.begins(after)
	close(after.end)
}

// TestQuarantineIsBounded: a poison candidate does not wait for ever for a function that
// does not end, nor do others for a candidate that doesn't.
func TestQuarantineIsBounded(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	id := b.one("go:candidate", later)
	b.addDeaths(id, 2)
	before, candidate, after := newBlocker(true), newBlocker(true), newBlocker(true)
	w := b.start(Options{Slots: 4}, map[string]Function{
		"before": before.run, "candidate": candidate.run, "after": after.run,
	})
	b.one("go:before")
	b.begins(before)
	b.hurry(id)
	asked := b.clock.Now()
	b.begins(candidate)
	patience := b.cluster.Config().DeadAfter
	require.GreaterOrEqual(t, b.clock.Now().Sub(asked), patience)
	b.one("go:after")
	began := b.clock.Now()
	b.begins(after)
	require.GreaterOrEqual(t, b.clock.Now().Sub(began), patience-time.Second)
	require.Equal(t, 3, w.Stats().Running)

	// The poison candidate is to blame if the worker dies now.
	w.crash()
	<-w.done
	b.start(Options{Slots: 1}, nil)
	b.await("the reaping", func() bool { return b.row(id).Attempts.Deaths.Len() == 3 })
	require.Equal(t, 1, b.row(id).Attempts.Crashes)
	b.await("the reaping of the others", func() bool { return b.counts()[layout.Claimed] == 0 })
	require.Zero(t, w.Stats().Ran)
}

// TestAPausedWorkerGivesTheDeathBack pauses workers for longer than dead-after, more
// often than a future may crash.
func TestAPausedWorkerGivesTheDeathBack(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(true)
	functions := map[string]Function{"candidate": work.run}
	id := b.one("go:candidate", later)
	b.addDeaths(id, 1)
	pair := []*running{b.start(Options{Slots: 1}, functions), b.start(Options{Slots: 1}, functions)}
	b.hurry(id)
	for range 2 * fdbmodel.MaxCrashes {
		info := b.begins(work)
		at := slices.IndexFunc(pair, func(w *running) bool { return w.ID() == info.Worker })
		require.GreaterOrEqual(t, at, 0)
		pair[at].freeze()
		b.await("the death", func() bool { _, dead := b.row(id).Attempts.Deaths.Of(info.Worker); return dead })
		require.Equal(t, 1, b.row(id).Attempts.Crashes)
		pair[at].thaw()
		b.await("the return", func() bool { _, dead := b.row(id).Attempts.Deaths.Of(info.Worker); return !dead })
		require.Zero(t, b.row(id).Attempts.Crashes)
	}
	b.begins(work)
	close(work.end)
	b.awaitOver(id)
	require.Equal(t, layout.Realized, stateOf(b, id))
}

// TestAQuarantineWithoutRoomEnds has what runs beside a poison candidate begin to wait, so that no more of its function
// may start, for what is queued behind the candidate.
func TestAQuarantineWithoutRoomEnds(t *testing.T) {
	t.Parallel()
	clk := clock.NewVirtual(epoch)
	s := newSlots(clk, layout.Resources{Slots: 2}, time.Minute, 1)
	m := &membership{values: t.Context()}
	add := func(function string, deaths ...layout.WorkerID) *job {
		f := fdbmodel.ClaimedFuture{Spec: &layout.Spec{Function: function}}
		for i, id := range deaths {
			f.Attempts.Deaths[i].Worker = id
		}
		require.Empty(t, s.admit(m, []fdbmodel.ClaimedFuture{f}, false))
		return s.queue[len(s.queue)-1]
	}
	runs := add("go:f")
	require.Equal(t, runs, s.tryTake())
	candidate, other := add("go:f", "a", "b"), add("go:other")
	require.Nil(t, s.tryTake(), "the candidate waits for what runs")
	ended := s.await(runs.ctx, runs, nil, nil)
	require.Nil(t, s.tryTake(), "no more of its function may start")
	clk.Advance(2 * time.Minute)
	s.losePatience()
	require.Equal(t, other, s.tryTake())
	ended()
	s.giveBack(runs, 0)
	s.giveBack(other, 0)
	require.Equal(t, candidate, s.tryTake())
	require.Equal(t, candidate, s.quarantine.job)
}

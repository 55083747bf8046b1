package fdbmodel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// newerRecord is a record in a possible later version of the format.
var newerRecord = []byte{layout.RecordVersion + 1, 0xc1}

// mixed is a cluster of one shard into which a newer version writes.
type mixed struct {
	t     *testing.T
	ctx   context.Context
	db    kv.Database
	clock *clock.Virtual
	c     *fdbmodel.Cluster
}

func newMixed(t *testing.T) *mixed {
	m := &mixed{
		t: t, ctx: context.Background(), db: storetest.New(t),
		clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)),
	}
	var err error
	m.c, err = fdbmodel.Open(m.ctx, m.db, "mixed", fdbmodel.Options{Clock: m.clock, Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	return m
}

func (m *mixed) submit(n int, change func(*fdbmodel.Submission)) []layout.ID {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i].Spec.Function = "go:f"
		if change != nil {
			change(&subs[i])
		}
	}
	answers, err := m.c.Submit(m.ctx, subs)
	require.NoError(m.t, err)
	ids := make([]layout.ID, n)
	for i := range answers {
		ids[i] = answers[i].ID
	}
	return ids
}

func (m *mixed) worker(id layout.WorkerID) *fdbmodel.Registration {
	w, err := m.c.Register(m.ctx, layout.WorkerInfo{ID: id, Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: 9}})
	require.NoError(m.t, err)
	return w
}

func (m *mixed) claim(w *fdbmodel.Registration) []fdbmodel.ClaimedFuture {
	answer, err := w.Claim(m.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 9}, Max: 9})
	require.NoError(m.t, err)
	return answer.Futures
}

// replace writes a key and returns a function that restores its previous value.
func (m *mixed) replace(key, value []byte) (restore func()) {
	write := func(value []byte) []byte {
		tx := m.db.Begin(kv.Options{})
		before, err := tx.Get(key).Wait(m.ctx)
		require.NoError(m.t, err)
		if value == nil {
			tx.Clear(key)
		} else {
			tx.Set(key, value)
		}
		_, err = tx.Commit(m.ctx)
		require.NoError(m.t, err)
		return before
	}
	before := write(value)
	return func() { write(before) }
}

// checkNewer asserts that an audit finds nothing but records of a newer
// version.
func (m *mixed) checkNewer(want int64) {
	m.t.Helper()
	report := modeltest.RequireSound(m.t, m.c)
	require.Equal(m.t, want, report.Newer, "%+v", report.Notes)
}

func (m *mixed) finish(w *fdbmodel.Registration, futures []fdbmodel.ClaimedFuture) {
	for i := range futures {
		outcomes, err := w.Finish(m.ctx, []fdbmodel.Completion{{Future: &futures[i], Result: &layout.Result{}}})
		require.NoError(m.t, err)
		require.Equal(m.t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
	}
}

// TestNewerFuturesAreNotClaimed mixes futures that the worker can't read with
// others: it runs the others, and leaves the unreadable ones unchanged for a
// newer worker.
func TestNewerFuturesAreNotClaimed(t *testing.T) {
	t.Parallel()
	for _, part := range []string{layout.RowSpec, layout.StateAttempts, layout.StateException} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			m := newMixed(t)
			ids := m.submit(6, nil)
			key := m.c.Keys().State(ids[2], part)
			if part == layout.RowSpec {
				key = m.c.Keys().Spec(ids[2])
			}
			restore := m.replace(key, newerRecord)
			_, err := m.c.Get(m.ctx, ids[2])
			require.ErrorIs(t, err, layout.ErrNewerRecord)
			require.ErrorContains(t, err, tuple.String(key))
			require.ErrorContains(t, err, "upgrade this process")
			w := m.worker("")
			futures := m.claim(w)
			require.Len(t, futures, 5)
			for _, f := range futures {
				require.NoError(t, f.Err)
				require.NotEqual(t, ids[2], f.ID)
			}
			m.checkNewer(1)
			m.finish(w, futures)
			require.Empty(t, m.claim(w))
			watch, err := w.EnterIdleRing(m.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 9}})
			require.NoError(t, err)
			require.NotNil(t, watch, "what it can't read does not keep it busy")
			watch.Cancel()
			m.checkNewer(1)

			restore()
			m.checkNewer(0)
			newer := m.worker("")
			futures = m.claim(newer)
			require.Len(t, futures, 1, "one that can read it claims it at once")
			outcomes, err := newer.Finish(m.ctx, []fdbmodel.Completion{{Future: &futures[0], Relinquish: true}})
			require.NoError(t, err)
			require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
			require.Empty(t, m.claim(w))
			m.clock.Advance(fdbmodel.RefusedForget)
			futures = m.claim(w)
			require.Len(t, futures, 1, "and one that could not looks again in time")
			m.finish(w, futures)
			require.NoError(t, w.Leave(m.ctx))
			require.NoError(t, newer.Leave(m.ctx))
			m.checkNewer(0)
		})
	}
}

// TestNewerFuturesOfADeadWorker are kept for a newer version's reaper, while the
// others go back at once.
func TestNewerFuturesOfADeadWorker(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*mixed, *fdbmodel.Registration){
		"reaped": func(m *mixed, w *fdbmodel.Registration) {
			janitor := maintenance.Of(m.c)
			_, held, err := janitor.Acquire(m.ctx, w.ID(), nil, 1)
			require.NoError(m.t, err)
			require.True(m.t, held)
			_, err = m.c.ReapClaims(m.ctx, w.ID())
			require.ErrorIs(m.t, err, fdbmodel.ErrTransition)
			_, role, err := janitor.Present(m.ctx)
			require.NoError(m.t, err)
			require.Equal(m.t, w.ID(), role, "it is alive")
			modeltest.DeclareDead(m.t, m.c, w.ID())
			n, err := m.c.ReapClaims(m.ctx, w.ID())
			require.NoError(m.t, err)
			require.Equal(m.t, 4, n)
			_, role, err = janitor.Present(m.ctx)
			require.NoError(m.t, err)
			require.Empty(m.t, role, "another janitor can go on with what is left of it")
		},
		"left": func(m *mixed, w *fdbmodel.Registration) { require.NoError(m.t, w.Leave(m.ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMixed(t)
			ids := m.submit(5, nil)
			w := m.worker("a")
			require.Len(t, m.claim(w), 5)
			restore := m.replace(m.c.Keys().State(ids[1], layout.StateAttempts), newerRecord)
			end(m, w)
			m.checkNewer(1)
			counts, err := m.c.Counts(m.ctx)
			require.NoError(t, err)
			require.EqualValues(t, 4, counts.Total(layout.Ready)+counts.Total(layout.Delayed))
			require.EqualValues(t, 1, counts.Total(layout.Claimed))
			n, err := m.c.ReapClaims(m.ctx, w.ID())
			require.NoError(t, err)
			require.Zero(t, n)
			restore()
			n, err = m.c.ReapClaims(m.ctx, w.ID())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			members, err := m.c.Workers(m.ctx)
			require.NoError(t, err)
			require.Empty(t, members)
			m.checkNewer(0)
		})
	}
}

// TestNewerDelayedFuturesStopNobody puts more of them at the head of the list
// than one transaction takes.
func TestNewerDelayedFuturesStopNobody(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	in := func(delay time.Duration) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) { s.NotBefore = m.c.Now().Add(delay) }
	}
	newer := m.submit(2*fdbmodel.JanitorBatch+5, in(time.Second))
	others := m.submit(fdbmodel.JanitorBatch+5, in(2*time.Second))
	late := m.submit(1, in(time.Hour))
	var restore []func()
	for _, id := range newer {
		restore = append(restore, m.replace(m.c.Keys().Spec(id), newerRecord))
	}
	restore = append(restore, m.replace(tuple.AppendString(m.c.Keys().DelayedOf(0), "no time"), []byte{}))
	m.clock.Advance(time.Minute)
	promoted := 0
	for range 4 {
		n, next, err := maintenance.Of(m.c).PromoteDue(m.ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, n, fdbmodel.JanitorBatch)
		if promoted += n; promoted == len(others) {
			require.Equal(t, m.c.Now().Add(time.Hour-time.Minute), next)
			break
		}
	}
	require.Equal(t, len(others), promoted)
	for _, id := range others {
		row, err := m.c.Get(m.ctx, id)
		require.NoError(t, err)
		require.Equal(t, layout.Ready, row.State())
	}
	for _, r := range restore {
		r()
	}
	for range 4 {
		n, _, err := maintenance.Of(m.c).PromoteDue(m.ctx)
		require.NoError(t, err)
		promoted += n
	}
	require.Equal(t, len(others)+len(newer), promoted)
	row, err := m.c.Get(m.ctx, late[0])
	require.NoError(t, err)
	require.Equal(t, layout.Delayed, row.State())
	m.checkNewer(0)
}

func TestNewerDoneEntryStopsNobody(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	w := m.worker("")
	first := m.submit(1, nil)
	m.finish(w, m.claim(w))
	page, err := m.db.Begin(kv.Options{}).GetRange(kv.Prefix(m.c.Keys().DoneOf(0)), kv.RangeOptions{}).Wait(m.ctx)
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	restore := m.replace(page.Items[0].Key, newerRecord)
	second := m.submit(1, nil)
	m.finish(w, m.claim(w))
	m.clock.Advance(m.c.Config().Retention)
	removed, next, err := maintenance.Of(m.c).ExpireDone(m.ctx)
	require.NoError(t, err)
	require.Equal(t, m.c.Now(), next, "there may be more")
	require.Equal(t, 1, removed)
	_, err = m.c.Get(m.ctx, second[0])
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	_, err = m.c.Get(m.ctx, first[0])
	require.NoError(t, err)
	restore()
	removed, _, err = maintenance.Of(m.c).ExpireDone(m.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	m.checkNewer(0)
}

// TestNewerWorkersStopNobody makes the records of a worker unreadable.
func TestNewerWorkersStopNobody(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	newer, other := m.worker("a"), m.worker("b")
	ids := m.submit(3, nil)
	require.Len(t, m.claim(newer), 3)
	m.replace(m.c.Keys().Worker(newer.ID(), layout.WorkerAlive), newerRecord)
	m.replace(m.c.Keys().Worker(newer.ID(), layout.WorkerHeartbeat), newerRecord)
	members, err := m.c.Workers(m.ctx)
	require.NoError(t, err)
	require.Len(t, members, 2)
	require.Contains(t, members[0].Unreadable, "newer version")
	require.True(t, members[0].Alive)
	require.Empty(t, members[1].Unreadable)
	e, err := inspect.Explain(m.ctx, m.c, ids[0])
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonClaimed, e.Reason)
	m.checkNewer(2)
	modeltest.DeclareDead(t, m.c, newer.ID())
	n, err := m.c.ReapClaims(m.ctx, newer.ID())
	require.NoError(t, err)
	require.Equal(t, 3, n)
	m.finish(other, m.claim(other))
	m.checkNewer(0)
}

// TestVanishedWorkerTakesOneHint has one worker that vanished while it was idle
// and one that is alive: of two hints across processes, at most one is lost.
func TestVanishedWorkerTakesOneHint(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	idle := func(id layout.WorkerID) kv.Watch {
		watch, err := m.worker(id).EnterIdleRing(m.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 9}})
		require.NoError(t, err)
		require.NotNil(t, watch)
		return watch
	}
	vanished, alive := idle("a"), idle("b")
	defer vanished.Cancel()
	defer alive.Cancel()
	m.submit(1, nil)
	m.submit(1, nil)
	<-alive.Done()
	require.NoError(t, alive.Err())
	page, err := m.db.Begin(kv.Options{}).GetRange(kv.Prefix(m.c.Keys().IdleQueue(layout.DefaultQueue)),
		kv.RangeOptions{}).
		Wait(m.ctx)
	require.NoError(t, err)
	require.Empty(t, page.Items)
	m.checkNewer(0)
}

// TestABatchThatCantBeReadHidesNoOthers lists batches of which some are of a newer version.
func TestABatchThatCantBeReadHidesNoOthers(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	for i := range 6 {
		b := &layout.BatchRecord{ID: fmt.Sprint(i), Template: []byte("{}"), CreatedAt: int64(i)}
		require.NoError(t, batches.Of(m.c).Create(m.ctx, b))
	}
	list := func(after string, limit int) (ids []string) {
		page, err := batches.Of(m.c).List(m.ctx, after, limit)
		require.NoError(t, err)
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		return ids
	}
	for _, newer := range []string{"1", "2"} {
		m.replace(m.c.Keys().BatchRecord(newer), newerRecord)
	}
	require.Equal(t, []string{"0"}, list("", 1))
	require.Equal(t, []string{"0", "3"}, list("", 2))
	require.Equal(t, []string{"0", "3", "4"}, list("", 3))
	require.Equal(t, []string{"3"}, list("0", 1))
	require.Equal(t, []string{"3", "4", "5"}, list("0", 9))
	require.Empty(t, list("5", 1))
}

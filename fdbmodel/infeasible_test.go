package fdbmodel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

const infeasibleAfter = 10 * time.Minute

// unschedulable is a cluster whose janitor ends what no worker can run.
type unschedulable struct {
	mixed
	memory fit.Unschedulable
}

func newUnschedulable(t *testing.T, wrap func(kv.Database) kv.Database) *unschedulable {
	m := &unschedulable{mixed: mixed{
		t: t, ctx: context.Background(), db: storetest.New(t), clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)),
	}}
	if wrap != nil {
		m.db = wrap(m.db)
	}
	var err error
	m.c, err = fdbmodel.Open(m.ctx, m.db, "unschedulable", fdbmodel.Options{Clock: m.clock, Config: layout.Config{
		Shards: 4, InfeasibleAfter: infeasibleAfter,
	}})
	require.NoError(t, err)
	return m
}

// look calls EndInfeasible until it has seen the whole index.
func (m *unschedulable) look() (ended int) {
	m.t.Helper()
	for {
		n, next, err := fit.EndInfeasible(m.ctx, m.c, &m.memory)
		require.NoError(m.t, err)
		if ended += n; next.IsZero() {
			return ended
		}
	}
}

// pass lets time pass, and looks meanwhile.
func (m *unschedulable) pass(d time.Duration) (ended int) {
	m.t.Helper()
	for ; d > 0; d -= 30 * time.Second {
		m.clock.Advance(min(d, 30*time.Second))
		ended += m.look()
	}
	return ended
}

func (m *unschedulable) row(id layout.ID) *layout.Row {
	row, err := m.c.Get(m.ctx, id)
	require.NoError(m.t, err)
	return &row
}

func (m *unschedulable) check() {
	m.t.Helper()
	report, err := audit.Check(m.ctx, m.c, audit.Options{})
	require.NoError(m.t, err)
	require.Empty(m.t, report.Problems)
}

// TestWhatNoWorkerCanRunEnds submits futures that lack something, among others,
// and has each end with the reason, and not before its time.
func TestWhatNoWorkerCanRunEnds(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	w := m.worker("")
	wants := map[layout.ID]string{}
	add := func(want string, n int, change func(*fdbmodel.Submission)) {
		for _, id := range m.submit(n, change) {
			wants[id] = want
		}
	}
	add("", 20, nil)
	add(`No worker serves the queue "other"; they serve default. Start one that does.`, 100,
		func(s *fdbmodel.Submission) { s.Spec.Queue = "other" })
	add(`No worker of the queue "default" knows the function go:g; they know go:f. Register it with one.`, 70,
		func(s *fdbmodel.Submission) { s.Spec.Function, s.Spec.Session = "go:g", "s" })
	add("It needs 0 millicores, 5 bytes of memory and 0 milli-GPUs, and no such worker is that large; "+
		"one has 0 millicores, 0 bytes of memory and 0 milli-GPUs. Start a larger one.", 100,
		func(s *fdbmodel.Submission) { s.Spec.Requirements.RAM = 5 })
	box := mailbox.Open(m.c, "s")
	require.Zero(t, m.look())
	require.Zero(t, m.pass(infeasibleAfter-time.Second))
	require.Equal(t, 270, m.pass(time.Second))
	for id, want := range wants {
		row := m.row(id)
		if want == "" {
			require.Equal(t, layout.Ready, row.State())
			continue
		}
		require.Equal(t, layout.Failed, row.State())
		require.Equal(t, layout.KindInfeasible, row.Exception.Kind)
		require.Equal(t, "no worker could run it for 10m0s: "+want, row.Exception.Message)
	}
	notices, _, err := box.Listen(m.ctx)
	require.NoError(t, err)
	require.Len(t, notices, 70)
	require.Len(t, m.claim(w), 9)
	m.check()
}

// TestTheTimeOfUnschedulableBeginsAgain lets workers come in time, and lets nobody look
// for a while.
func TestTheTimeOfUnschedulableBeginsAgain(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	m.worker("")
	id := m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue = "other" })[0]
	require.Zero(t, m.pass(infeasibleAfter))
	able, err := m.c.Register(m.ctx, layout.WorkerInfo{Queues: []string{"other"}, Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	require.Zero(t, m.pass(time.Minute))
	require.NoError(t, able.Leave(m.ctx))
	require.Zero(t, m.pass(infeasibleAfter), "the worker was there for a while")

	m.clock.Advance(2 * time.Minute)
	require.Zero(t, m.pass(infeasibleAfter), "nobody looked for a while")

	late := m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue = "other" })[0]
	keyed := m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue, s.Key = "other", "its id tells no time" })[0]
	require.Equal(t, 1, m.pass(time.Minute))
	require.Equal(t, layout.Failed, m.row(id).State())
	require.Equal(t, layout.Ready, m.row(late).State(), "it has waited for a minute")
	require.Equal(t, layout.Ready, m.row(keyed).State(), "it has waited for a minute")
	require.NoError(t, m.c.Retry(m.ctx, id))
	require.Equal(t, 3, m.pass(infeasibleAfter), "by hand it starts over, and its time does")
	m.check()
}

// TestWhatIsPausedDoesNotEnd pauses a queue that no worker serves, and a function that none knows, and resumes both.
func TestWhatIsPausedDoesNotEnd(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	m.worker("")
	m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue = "other" })
	m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" })
	m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue, s.Spec.Function = "third", "go:g" })
	of := pauses.Of(m.c)
	set := func(do func(context.Context, string, string) error) {
		require.NoError(t, do(m.ctx, pauses.Queue, "other"))
		require.NoError(t, do(m.ctx, pauses.Function, "go:g"))
	}
	require.Zero(t, m.pass(infeasibleAfter-time.Minute))
	set(func(ctx context.Context, what, name string) error {
		_, err := of.Pause(ctx, what, name, "")
		return err
	})
	require.Zero(t, m.pass(3*infeasibleAfter))
	set(func(ctx context.Context, what, name string) error { _, err := of.Resume(ctx, what, name); return err })
	require.Equal(t, 1, m.pass(infeasibleAfter-time.Minute), "that whose queue was not paused")
	require.Equal(t, 2, m.pass(2*time.Minute))
	m.check()
}

// TestNothingEndsWithoutWorkers has no worker at all, and then one that nothing is
// known of.
func TestNothingEndsWithoutWorkers(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	m.submit(1, nil)
	require.Zero(t, m.pass(2*infeasibleAfter))
	w, err := m.c.Register(m.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	restore := m.replace(m.c.Keys().Worker(w.ID(), layout.WorkerAlive), newerRecord)
	require.Zero(t, m.pass(2*infeasibleAfter))
	restore()
	require.Zero(t, m.pass(infeasibleAfter))
	require.Equal(t, 1, m.pass(30*time.Second))
}

// TestNotInThePool has futures that wait elsewhere.
func TestNotInThePool(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	w := m.worker("")
	m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Owner, s.Spec.Function = "owner", "go:g" })
	m.submit(1, func(s *fdbmodel.Submission) {
		s.NotBefore, s.Spec.Function = m.c.Now().Add(time.Hour), "go:g"
	})
	m.submit(1, func(s *fdbmodel.Submission) { s.Assigned = w.ID() })
	require.Zero(t, m.pass(2*infeasibleAfter))
}

// racing is a store that calls a function before the first commit that ends
// infeasible futures.
type racing struct {
	kv.Database
	before func()
}

type racingTx struct {
	kv.Tx
	store *racing
}

func (r *racing) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-nofit" {
		return racingTx{r.Database.Begin(o), r}
	}
	return r.Database.Begin(o)
}

func (t racingTx) Commit(ctx context.Context) (kv.Committed, error) {
	if before := t.store.before; before != nil {
		t.store.before = nil
		before()
	}
	return t.Tx.Commit(ctx)
}

// TestClaimedMeanwhile has a worker register and claim while a janitor ends what
// it can run.
func TestClaimedMeanwhile(t *testing.T) {
	t.Parallel()
	store := &racing{}
	m := newUnschedulable(t, func(db kv.Database) kv.Database {
		store.Database = db
		return store
	})
	_, err := m.c.Register(m.ctx, layout.WorkerInfo{Functions: []string{"go:g"}, Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	id := m.submit(1, nil)[0]
	require.Zero(t, m.pass(infeasibleAfter))
	store.before = func() { require.Len(t, m.claim(m.worker("")), 1) }
	require.Zero(t, m.pass(30*time.Second))
	require.Nil(t, store.before, "the janitor was about to end it")
	require.Equal(t, layout.Claimed, m.row(id).State())
	m.check()
}

// TestUnschedulableAreFoundByKind counts the reads of a look at many of one kind, and
// finds the few behind them.
func TestUnschedulableAreFoundByKind(t *testing.T) {
	t.Parallel()
	m := newUnschedulable(t, nil)
	m.worker("")
	for i := range 30 {
		m.submit(100, func(s *fdbmodel.Submission) { s.Spec.Queue = "crowd" })
		m.submit(100, func(s *fdbmodel.Submission) { s.Spec.Requirements.CPU = int64(1 + i%3) })
	}
	last := m.submit(1, func(s *fdbmodel.Submission) { s.Spec.Queue = "last" })[0]
	_, next, err := fit.EndInfeasible(m.ctx, m.c, &m.memory)
	require.NoError(t, err)
	for calls := 1; !next.IsZero(); calls++ {
		require.Less(t, calls, 5, "whole kinds are skipped")
		_, next, err = fit.EndInfeasible(m.ctx, m.c, &m.memory)
		require.NoError(t, err)
	}
	require.Equal(t, 6001, m.pass(infeasibleAfter+30*time.Second))
	require.Equal(t, layout.Failed, m.row(last).State())
	m.check()
}

func TestRequireFit(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	spec := layout.Spec{Function: "go:f"}
	require.ErrorContains(t, fit.Require(m.ctx, m.c, []layout.Spec{spec}), "There is no worker in the cluster")
	w := m.worker("")
	require.NoError(t, fit.Require(m.ctx, m.c, []layout.Spec{spec}))
	spec.Requirements.GPU = 1
	err := fit.Require(m.ctx, m.c, []layout.Spec{{Function: "go:f"}, spec})
	require.ErrorIs(t, err, layout.ErrUnfit)
	require.ErrorContains(t, err, "It needs 0 millicores, 0 bytes of memory and 1 milli-GPUs")
	require.ErrorIs(t, fit.Require(m.ctx, m.c, []layout.Spec{{Function: "wasm:nobody"}}), fdbmodel.ErrNotFound)
	m.replace(m.c.Keys().Worker(w.ID(), layout.WorkerAlive), newerRecord)
	require.NoError(t, fit.Require(m.ctx, m.c, []layout.Spec{spec}), "nothing is known of the worker")
}

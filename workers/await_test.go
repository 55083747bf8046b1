package workers

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// waiter is a function that awaits something until it is told that it is over.
type waiter struct {
	what           taskcontext.Awaited
	began, resumed chan Info
	over           chan struct{}
}

func newWaiter() *waiter {
	return &waiter{began: make(chan Info, 1000), resumed: make(chan Info, 1000), over: make(chan struct{})}
}

func (f *waiter) run(ctx context.Context, _ []byte) ([]byte, error) {
	return f.runUntil(ctx, ctx)
}

// runUntil awaits for at most as long as a context lasts.
func (f *waiter) runUntil(ctx, wait context.Context) ([]byte, error) {
	info, _ := InfoFrom(ctx)
	ended := taskcontext.NoteAwait(wait, f.what, nil)
	f.began <- info
	select {
	case <-f.over:
	case <-wait.Done():
	}
	ended()
	f.resumed <- info
	return nil, context.Cause(ctx)
}

func (b *bed) receive(what string, from chan Info) (info Info) {
	b.t.Helper()
	b.await(what, func() bool {
		select {
		case info = <-from:
			return true
		default:
			return false
		}
	})
	return info
}

// wantSlots waits until the executors and resources of a worker are those of one
// that runs nothing.
func (b *bed) wantSlots(w *running) {
	b.t.Helper()
	b.await("free slots", func() bool {
		s := w.slots
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.running) == 0 && s.free == s.capacity && s.executors == s.capacity.Slots
	})
	require.Zero(b.t, w.slots.yielded.n)
	require.Zero(b.t, w.slots.yielded.full)
	require.Empty(b.t, w.slots.yielded.named)
	require.Empty(b.t, w.slots.yielded.resuming)
}

// resuming is how many functions want their slots back.
func (r *running) resuming() int {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	return len(r.slots.yielded.resuming)
}

func TestAwaitGivesTheSlotAway(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	parent, awaited := newWaiter(), layout.ID{15: 7}
	parent.what = func() (layout.ID, int) { return awaited, 2 }
	w := b.start(Options{Slots: 1, CPU: 1000, RAM: 1000, GPU: 1000},
		map[string]Function{"parent": parent.run, "echo": echo})
	id := b.one("go:parent", func(s *fdbmodel.Submission) {
		s.Spec.Requirements = layout.Requirements{CPU: 700, RAM: 600, GPU: 500}
	})
	b.receive("the wait", parent.began)
	stats := w.Stats()
	require.Equal(t, []int{1, 1}, []int{stats.Running, stats.Awaiting})
	require.Equal(t, layout.Resources{Slots: 1, CPU: 1000, RAM: 400, GPU: 500}, stats.Free)
	child := b.one("go:echo", func(s *fdbmodel.Submission) {
		s.Spec.Requirements = layout.Requirements{CPU: 1000, RAM: 400, GPU: 500}
	})
	b.awaitOver(child)
	b.await("the heartbeat", func() bool {
		m, _ := b.member(w.ID())
		return m.Heartbeat.Awaiting == 1 && m.Heartbeat.Running == 1 && m.Heartbeat.Free.Slots == 1
	})
	m, _ := b.member(w.ID())
	require.Len(t, m.Heartbeat.Awaits, 1)
	told := m.Heartbeat.Awaits[0]
	require.Equal(t, layout.Await{ID: id, For: awaited, Count: 2, Since: told.Since}, told)
	require.Equal(t, layout.Claimed, stateOf(b, id))

	// What it keeps is named.
	large := b.one("go:echo", func(s *fdbmodel.Submission) { s.Spec.Requirements.RAM = 401 })
	e, err := inspect.Explain(b.ctx, b.cluster, large)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonStalled, e.Reason)
	require.Contains(t, e.Text, "such as memory")
	close(parent.over)
	b.awaitOver(id, large)
	b.wantSlots(w)
}

// TestWhoWaitedGoesFirst has functions end their waits while another one has the
// slot, and others wait for it.
func TestWhoWaitedGoesFirst(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	parents, other, late := newWaiter(), newBlocker(false), newBlocker(true)
	w := b.start(Options{Slots: 1}, map[string]Function{"parent": parents.run, "other": other.run, "late": late.run})
	ids := b.many(3, "go:parent")
	for range ids {
		b.receive("the wait", parents.began)
	}
	b.one("go:other")
	b.begins(other)
	behind := b.one("go:late")
	close(parents.over)
	b.await("the ends of the waits", func() bool { return w.resuming() == len(ids) })
	require.Empty(t, parents.resumed)
	require.Empty(t, late.began)
	close(other.end)
	for range ids {
		b.receive("a function that goes on", parents.resumed)
	}
	b.begins(late)
	for _, id := range ids {
		require.NotNil(t, b.row(id).Claim)
	}
	close(late.end)
	b.awaitOver(append(ids, behind)...)
	b.wantSlots(w)
}

// TestWhoWaitedIsNotStarved has a function wait for more than one that ends gives
// back: what needs less does not start before it goes on.
func TestWhoWaitedIsNotStarved(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	parent, first, second, late := newWaiter(), newBlocker(false), newBlocker(false), newBlocker(true)
	w := b.start(Options{Slots: 3, CPU: 1000}, map[string]Function{
		"parent": parent.run, "first": first.run, "second": second.run, "late": late.run,
	})
	needs := func(cpu int64) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) { s.Spec.Requirements.CPU = cpu }
	}
	large := b.one("go:parent", needs(1000))
	b.receive("the wait", parent.began)
	b.one("go:first", needs(500))
	b.begins(first)
	b.one("go:second", needs(500))
	b.begins(second)
	close(parent.over)
	b.await("the end of the wait", func() bool { return w.resuming() == 1 })
	small := b.one("go:late", needs(500))
	close(first.end)
	b.await("the end of the first", func() bool { return w.Stats().Running == 2 })
	b.await("a claim", func() bool { return stateOf(b, small) == layout.Claimed })
	require.Empty(t, late.began)
	close(second.end)
	b.receive("the function that waited", parent.resumed)
	b.begins(late)
	close(late.end)
	b.awaitOver(large, small)
	b.wantSlots(w)
}

// TestAnEndDoesNotWaitForASlot ends functions that wait, or that want their slots
// back, while another one keeps the only slot.
func TestAnEndDoesNotWaitForASlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bed, w *running, id layout.ID){
		"timeout": func(b *bed, _ *running, id layout.ID) {
			b.awaitOver(id)
			require.Equal(b.t, layout.KindTimeout, b.row(id).Exception.Kind)
		},
		"cancel": func(b *bed, _ *running, id layout.ID) {
			_, _, err := b.cluster.Cancel(b.ctx, id, "enough")
			require.NoError(b.t, err)
			b.awaitOver(id)
			require.Equal(b.t, layout.KindCancelled, b.row(id).Exception.Kind)
		},
		"stop": func(b *bed, w *running, id layout.ID) {
			w.end()
			require.Equal(b.t, layout.Ready, stateOf(b, id))
			require.Zero(b.t, b.row(id).Attempts)
		},
		"death": func(b *bed, w *running, id layout.ID) {
			first := w.ID()
			b.declareDead(first)
			b.await("a new membership", func() bool { return w.ID() != first })
			b.await("the reaping", func() bool { return stateOf(b, id) != layout.Claimed })
		},
		"crash": func(_ *bed, w *running, _ layout.ID) {
			w.crash()
			w.end()
		},
	} {
		for _, over := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := virtualBed(t)
				parent, other := newWaiter(), newBlocker(false)
				w := b.start(Options{Slots: 1, DrainTimeout: 10 * time.Second},
					map[string]Function{"parent": parent.run, "other": other.run})
				id := b.one("go:parent", func(s *fdbmodel.Submission) {
					s.Spec.Timeout = time.Minute
					s.Spec.MaxRetries = 0
				})
				b.receive("the wait", parent.began)
				b.one("go:other")
				b.begins(other)
				if over {
					close(parent.over)
					b.await("the end of the wait", func() bool { return w.resuming() == 1 })
				}
				end(b, w, id)
				b.receive("the end of the function", parent.resumed)
				close(other.end)
				b.await("the returns", func() bool { return w.Stats().Running == 0 })
				require.Zero(t, w.Stats().Awaiting)
				require.Equal(t, w.slots.capacity, w.Stats().Free)
			})
		}
	}
}

// TestAWaitThatEndsWithItsContext goes on at once, and nothing starts before
// there is a slot again.
func TestAWaitThatEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	parent, other, late := newWaiter(), newBlocker(false), newBlocker(true)
	patient, lose := context.WithCancel(b.ctx)
	rest := make(chan struct{})
	w := b.start(Options{Slots: 1}, map[string]Function{
		"parent": func(ctx context.Context, _ []byte) ([]byte, error) {
			wait, end := context.WithCancel(ctx)
			defer context.AfterFunc(patient, end)()
			value, err := parent.runUntil(ctx, wait)
			<-rest
			return value, err
		}, "other": other.run, "late": late.run,
	})
	id := b.one("go:parent")
	b.receive("the wait", parent.began)
	b.one("go:other")
	b.begins(other)
	behind := b.one("go:late")
	lose()
	b.receive("the end of the wait", parent.resumed)
	require.Zero(t, w.Stats().Awaiting)
	require.Zero(t, w.Stats().Free.Slots)
	close(other.end)
	b.await("the end of the other", func() bool { return w.Stats().Running == 1 })
	require.Empty(t, late.began)
	close(rest)
	b.begins(late)
	close(late.end)
	b.awaitOver(id, behind)
	b.wantSlots(w)
}

// TestTheBoundOfWaitingFunctions starts no more of a function of which enough
// wait, and of any other.
func TestTheBoundOfWaitingFunctions(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	log := &lines{}
	outer, inner := newWaiter(), newWaiter()
	w := b.start(Options{Slots: 2, MaxAwaiting: 3, Logger: log.logger(slog.LevelInfo)},
		map[string]Function{"outer": outer.run, "inner": inner.run, "echo": echo})
	ids := append(b.many(20, "go:outer"), b.many(20, "go:inner")...)
	children := b.many(20, "go:echo")
	// Those that had slots when the bound was reached began.
	atBound := func(f *waiter) {
		for range 3 {
			b.receive("a wait", f.began)
		}
	}
	atBound(outer)
	atBound(inner)
	b.awaitOver(children...)
	require.LessOrEqual(t, w.Stats().Running, 2*(3+1))
	b.await("the heartbeat", func() bool {
		m, _ := b.member(w.ID())
		return len(m.Heartbeat.Full) == 2
	})
	b.await("the explanation", func() bool {
		return slices.ContainsFunc(ids, func(id layout.ID) bool {
			e, err := inspect.Explain(b.ctx, b.cluster, id)
			require.NoError(t, err)
			return e.Reason == inspect.ReasonStalled && strings.Contains(e.Text, "MaxAwaiting")
		})
	})
	b.await("the line in the log", func() bool { return len(log.about(t, "all running functions wait")) > 0 })
	close(outer.over)
	close(inner.over)
	b.awaitOver(ids...)
	require.Len(t, log.about(t, "all running functions wait"), 1)
	b.wantSlots(w)
}

// TestAFunctionThatWaitsInSeveralGoroutines waits until the last wait has ended,
// also where they end in another order than they began, or outlast it.
func TestAFunctionThatWaitsInSeveralGoroutines(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	began, steps := make(chan Info, 10), make(chan func(context.Context))
	w := b.start(Options{Slots: 1}, map[string]Function{"parent": func(ctx context.Context, _ []byte) ([]byte, error) {
		began <- Info{}
		for step := range steps {
			step(ctx)
		}
		return nil, nil
	}, "echo": echo, "other": func(ctx context.Context, _ []byte) ([]byte, error) {
		began <- Info{}
		for step := range steps {
			step(ctx)
		}
		return nil, nil
	}})
	id := b.one("go:parent")
	b.receive("the begin", began)
	var first, second, third func()
	done := make(chan Info, 10)
	steps <- func(ctx context.Context) {
		first, second = taskcontext.NoteAwait(ctx, nil, nil), taskcontext.NoteAwait(ctx, nil, nil)
		done <- Info{}
	}
	b.receive("both waits", done)
	first()
	first()
	require.Equal(t, 1, w.Stats().Awaiting)
	b.awaitOver(b.one("go:echo"))
	second()
	require.Zero(t, w.Stats().Awaiting)
	require.Zero(t, w.Stats().Free.Slots)

	// A wait that begins while the function wants its slot back gives up that wish.
	steps <- func(ctx context.Context) { first = taskcontext.NoteAwait(ctx, nil, nil); done <- Info{} }
	b.receive("the wait", done)
	other := b.one("go:other")
	b.receive("the other", began)
	go func() { first(); done <- Info{} }()
	b.await("the end of the wait", func() bool { return w.resuming() == 1 })
	third = w.noteAwait(b, id)
	b.receive("the return of the first wait", done)
	require.Equal(t, 1, w.Stats().Awaiting)
	require.Zero(t, w.resuming())

	// It returns while it waits, and the other too.
	close(steps)
	b.awaitOver(id, other)
	third()
	b.wantSlots(w)
}

// noteAwait begins a wait of a running future's function.
func (r *running) noteAwait(b *bed, id layout.ID) (ended func()) {
	for _, j := range r.slots.runningOf(r.membership) {
		if j.future.ID == id {
			return taskcontext.NoteAwait(jobContext{j.ctx, j}, nil, nil)
		}
	}
	require.FailNow(b.t, "it does not run")
	return nil
}

// TestPoisonCandidatesAndWaits: a poison candidate does not wait for functions that wait,
// a function goes on only after the candidate has ended, and a candidate that waits lets
// others start.
func TestPoisonCandidatesAndWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		parent, candidate := newWaiter(), newBlocker(true)
		id := b.one("go:candidate", later)
		b.addDeaths(id, 2)
		w := b.start(Options{Slots: 4}, map[string]Function{"parent": parent.run, "candidate": candidate.run})
		before := b.one("go:parent")
		b.receive("the wait", parent.began)
		asked := b.clock.Now()
		b.hurry(id)
		b.begins(candidate)
		require.Less(t, b.clock.Now().Sub(asked), b.cluster.Config().DeadAfter)
		close(parent.over)
		b.await("the end of the wait", func() bool { return w.resuming() == 1 })
		require.Empty(t, parent.resumed)
		close(candidate.end)
		b.receive("the function that waited", parent.resumed)
		b.awaitOver(before, id)
		b.wantSlots(w)
		w.end()

		id = b.one("go:candidate", later)
		b.addDeaths(id, 2)
		parent = newWaiter()
		w = b.start(Options{Slots: 4}, map[string]Function{"candidate": parent.run, "echo": echo})
		b.hurry(id)
		b.receive("the wait of the candidate", parent.began)
		began := b.clock.Now()
		b.awaitOver(b.one("go:echo"))
		require.Less(t, b.clock.Now().Sub(began), b.cluster.Config().DeadAfter)
		close(parent.over)
		b.awaitOver(id)
		b.wantSlots(w)
	})
}

// TestAnOwnersLimitCountsWhoWaits: at most so many are under way at a time, which
// may be why the limit is there.
func TestAnOwnersLimitCountsWhoWaits(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	parent := newWaiter()
	w := b.start(Options{Slots: 4}, map[string]Function{"parent": parent.run, "echo": echo})
	var ids []layout.ID
	for range 2 {
		ids = append(ids, b.one("go:parent", func(s *fdbmodel.Submission) {
			s.Spec.Owner, s.Spec.Parallel, s.Assigned = "g", 1, w.ID()
		}))
	}
	b.receive("the wait of the first", parent.began)
	b.awaitOver(b.many(20, "go:echo")...)
	require.Empty(t, parent.began)
	close(parent.over)
	b.awaitOver(ids...)
	b.wantSlots(w)
}

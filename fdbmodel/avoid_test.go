package fdbmodel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/avoid"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// failures is a cluster whose clock stands still, with a future that fails.
type failures struct {
	*waker
	clock *clock.Virtual
	first *Registration
	id    layout.ID
}

func newFailures(t *testing.T) *failures {
	f := &failures{clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	db := storetest.New(t)
	c, err := Open(context.Background(), db, "failures", Options{Clock: f.clock, Config: layout.Config{Shards: 2}})
	require.NoError(t, err)
	f.waker = &waker{t, context.Background(), db, c}
	f.first = f.register(1, "go:f")
	answers, err := c.Submit(f.ctx, []Submission{{Spec: layout.Spec{Function: "go:f", MaxRetries: 20}}})
	require.NoError(t, err)
	f.id = answers[0].ID
	f.fail(f.first)
	return f
}

// fail has a worker claim the future and fail it: it is ready again at once.
func (f *failures) fail(r *Registration) {
	f.Helper()
	f.runs(r, true)
}

// runs requires that a worker claims the future, or that it does not, and fails it.
func (f *failures) runs(r *Registration, want bool) {
	f.Helper()
	answer, err := r.Claim(f.ctx, ClaimRequest{Free: r.info.Capacity, Max: 1})
	require.NoError(f, err)
	require.Equal(f, want, len(answer.Futures) == 1)
	for i := range answer.Futures {
		outcomes, err := r.Finish(f.ctx, []Completion{{Future: &answer.Futures[i], RetryIn: new(time.Duration),
			Exception: &layout.Exception{Kind: layout.KindError, Message: "m"}}})
		require.NoError(f, err)
		require.Equal(f, []Outcome{Applied}, outcomes)
	}
}

// TestARetryPrefersAnotherWorker has workers fail a future in turn.
func TestARetryPrefersAnotherWorker(t *testing.T) {
	t.Parallel()
	f := newFailures(t)
	f.fail(f.first) // nobody else is there
	second := f.register(1, "go:f")
	f.clock.Advance(avoid.Lifetime) // it learns of the other
	f.runs(f.first, false)
	found, err := f.first.Poll(f.ctx, ClaimRequest{Free: f.first.info.Capacity})
	require.NoError(t, err)
	require.False(t, found)
	f.fail(second)
	f.fail(f.first) // nobody is left who has not failed it
	third := f.register(1, "go:f")
	f.clock.Advance(avoid.Lifetime)
	f.runs(f.first, false)
	f.runs(second, false)

	f.clock.Advance(avoid.PreferOthers - 1)
	f.runs(second, false)
	f.clock.Advance(1)
	found, err = f.first.Poll(f.ctx, ClaimRequest{Free: f.first.info.Capacity})
	require.NoError(t, err)
	require.True(t, found)
	f.fail(f.first) // the others did not take it in time
	f.runs(f.first, false)
	f.fail(third)
	require.NoError(t, second.Leave(f.ctx))
	require.NoError(t, third.Leave(f.ctx))
	f.clock.Advance(avoid.Lifetime)
	f.fail(f.first)
}

// TestAWorkerLooksAgainForWhatItLeft has the time come when a worker may take what it left to another, before it rests.
func TestAWorkerLooksAgainForWhatItLeft(t *testing.T) {
	t.Parallel()
	f := newFailures(t)
	f.register(1, "go:f")
	f.clock.Advance(avoid.Lifetime) // it learns of the other
	idle := func() {
		watch, err := f.first.EnterIdleRing(f.ctx, ClaimRequest{Free: f.first.info.Capacity})
		require.NoError(t, err)
		require.NotNil(t, watch)
		watch.Cancel()
	}
	f.runs(f.first, false)
	idle()
	due := f.clock.Now().Add(avoid.PreferOthers)
	require.Equal(t, due, f.first.LeftUntil())
	f.clock.Advance(avoid.PreferOthers)
	require.Equal(t, due, f.first.LeftUntil(), "nobody has looked since")
	answer, err := f.first.Claim(f.ctx, ClaimRequest{Free: f.first.info.Capacity, Max: 1})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	idle()
	require.Zero(t, f.first.LeftUntil())
}

// TestOnlyThoseWhoCouldRunItArePreferred has others that could not.
func TestOnlyThoseWhoCouldRunItArePreferred(t *testing.T) {
	t.Parallel()
	f := newFailures(t)
	f.register(1, "go:g")
	_, err := f.c.Register(f.ctx, layout.WorkerInfo{
		Queues: []string{"other"}, Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1},
	})
	require.NoError(t, err)
	f.clock.Advance(avoid.Lifetime)
	f.fail(f.first)
	spec := requiring(1, "zone", "a")
	spec.MaxRetries, spec.Priority = 5, 255
	mine, other := f.labelled("zone", "a"), f.labelled("zone", "b")
	f.submit(spec)
	f.clock.Advance(avoid.Lifetime)
	for range 3 {
		f.fail(mine)
	}
	require.NotNil(t, other)
}

// TestOthersAreWokenForARetry has two workers idle in the process, or in the store,
// and then only the one that failed the future.
func TestOthersAreWokenForARetry(t *testing.T) {
	t.Parallel()
	f := newFailures(t)
	second := f.register(1, "go:f")
	spec, failed := &layout.Spec{Function: "go:f", Queue: layout.DefaultQueue}, &layout.Exception{Worker: f.first.ID()}
	wake := func() {
		var placed notify.Demands
		placed.AddRow(&layout.Row{Spec: spec, Exception: failed}, 0, 0)
		f.c.notifier.Wake(f.ctx, -1, placed)
	}
	hint := func(r *Registration) *HintRequest { return r.RequestHint(ClaimRequest{Free: r.info.Capacity}) }
	for _, last := range []*Registration{f.first, second} {
		hints := map[*Registration]*HintRequest{}
		for _, r := range []*Registration{f.first, second, last} {
			if hints[r] != nil {
				hints[r].Cancel()
			}
			hints[r] = hint(r)
		}
		wake()
		<-hints[second].C()
		require.Empty(t, hints[f.first].C())
		wake()
		<-hints[f.first].C()
	}
	_, _, err := f.c.Cancel(f.ctx, f.id, "")
	require.NoError(t, err)
	f.idle(f.first)
	f.idle(second)
	wake()
	require.Equal(t, []bool{true, false}, f.inRing(f.first, second))
	wake()
	require.Equal(t, []bool{false, false}, f.inRing(f.first, second))
}

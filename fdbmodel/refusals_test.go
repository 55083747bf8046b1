package fdbmodel

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// reject has a worker claim up to n futures and reject them. It returns how many.
func (f *failures) reject(r *Registration, n int) int {
	f.Helper()
	answer, err := r.Claim(f.ctx, ClaimRequest{Free: layout.Resources{Slots: n, CPU: int64(n)}, Max: n})
	require.NoError(f, err)
	done := make([]Completion, len(answer.Futures))
	for i := range done {
		done[i] = Completion{Future: &answer.Futures[i], Reject: true}
	}
	_, err = r.Finish(f.ctx, done)
	require.NoError(f, err)
	return len(done)
}

func (f *failures) row(id layout.ID) *layout.Row {
	f.Helper()
	row, err := f.c.Get(f.ctx, id)
	require.NoError(f, err)
	return &row
}

// newRefusals is a cluster with one future, which has not failed.
func newRefusals(t *testing.T) *failures {
	f := newFailures(t)
	_, _, err := f.c.Cancel(f.ctx, f.id, "")
	require.NoError(t, err)
	answers, err := f.c.Submit(f.ctx, []Submission{{Spec: layout.Spec{Function: "go:f"}}})
	require.NoError(t, err)
	f.id = answers[0].ID
	return f
}

// TestOthersTakeAtOnceWhatOneRejects has a worker put a future back: it passes it over until
// the backoff is over, and another one takes it at the same moment.
func TestOthersTakeAtOnceWhatOneRejects(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	require.Equal(t, 1, f.reject(f.first, 1))
	row := f.row(f.id)
	require.Equal(t, layout.Ready, row.State())
	refusal := row.Attempts.Refused[0]
	require.Equal(t, f.first.ID(), refusal.Worker)
	require.Zero(t, f.reject(f.first, 1))
	found, err := f.first.Poll(f.ctx, ClaimRequest{Free: f.first.info.Capacity})
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, refusal.Until, layout.Millis(f.first.LeftUntil()))

	second := f.register(1, "go:f")
	require.Equal(t, 1, f.reject(second, 1), "it may take it at once")
	require.Zero(t, f.reject(f.first, 1)+f.reject(second, 1))
	f.clock.Advance(time.UnixMilli(refusal.Until - 1).Sub(f.clock.Now()))
	require.Zero(t, f.reject(f.first, 1))
	f.clock.Advance(time.Millisecond)
	require.Equal(t, 1, f.reject(f.first, 1), "nobody else took it")
	require.Equal(t, 2, f.row(f.id).Attempts.Refused.Len(), "one for each worker")
}

// TestWhatFewRejectWaitsForItsBackoff has more workers put a future back than it remembers: it
// waits until the first of those that it remembers may have it again.
func TestWhatFewRejectWaitsForItsBackoff(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	for n := range layout.MaxRefusals + 1 {
		require.Equal(t, layout.Ready, f.row(f.id).State())
		require.Equal(t, 1, f.reject(f.register(1, "go:f"), 1), n)
	}
	row := f.row(f.id)
	require.Equal(t, layout.Delayed, row.State())
	require.Equal(t, layout.MaxRefusals, row.Attempts.Refused.Len())
	byUntil := func(a, b layout.Refusal) int { return cmp.Compare(a.Until, b.Until) }
	first := slices.MinFunc(row.Attempts.Refused[:], byUntil)
	require.Equal(t, first.Until, row.Attempts.Due)
	require.Less(t, first.Until, row.Attempts.Refused[layout.MaxRefusals-1].Until)
}

// TestAPeerPassesOverWhatItRejectedAtAnotherHead has a peer be another worker.
func TestAPeerPassesOverWhatItRejectedAtAnotherHead(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	peer := func(id string) *Registration {
		r, err := f.c.Register(f.ctx, layout.WorkerInfo{Functions: []string{"go:f"},
			Labels: map[string]string{layout.LabelPeer: id}, Capacity: layout.Resources{Slots: 1, CPU: 1}})
		require.NoError(t, err)
		return r
	}
	require.Equal(t, 1, f.reject(peer("p"), 1))
	require.Zero(t, f.reject(peer("p"), 1))
	require.Equal(t, 1, f.reject(peer("q"), 1))
}

// TestACrowdOfRejectionsIsBounded has a worker reject more than it may pass over, and finds
// what comes behind them.
func TestACrowdOfRejectionsIsBounded(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	const more = 7
	specs := make([]layout.Spec, maxRefusals+more-1)
	for i := range specs {
		specs[i] = layout.Spec{Function: "go:f", Priority: 9, Backoff: layout.Backoff{Base: time.Hour, Max: time.Hour}}
	}
	f.submit(specs...)
	total := 0
	for total < maxRefusals+more {
		n := f.reject(f.first, MaxClaim)
		require.NotZero(t, n)
		total += n
	}
	counts, err := f.c.Counts(f.ctx)
	require.NoError(t, err)
	require.EqualValues(t, more, counts[layout.CountKey{Queue: layout.DefaultQueue, State: layout.Delayed}])
	f.submit(layout.Spec{Function: "go:f", Priority: 1})
	require.Equal(t, 1, f.reject(f.first, 2), "what is behind them")
}

// TestWhoPutItBackIsNotWoken has both workers be idle, in the process and in the store.
func TestWhoPutItBackIsNotWoken(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	second := f.register(1, "go:f")
	f.reject(f.first, 1)
	row := f.row(f.id)
	wake := func() {
		var placed notify.Demands
		for range 2 { // there is one for each worker
			placed.AddRow(row, 0, layout.Millis(f.clock.Now()))
		}
		f.c.notifier.Wake(f.ctx, -1, placed)
	}
	hint := func(r *Registration) *HintRequest { return r.RequestHint(ClaimRequest{Free: r.info.Capacity}) }
	other, own := hint(second), hint(f.first)
	wake()
	<-other.C()
	require.Empty(t, own.C())
	own.Cancel()
	_, _, err := f.c.Cancel(f.ctx, f.id, "")
	require.NoError(t, err)
	f.idle(f.first)
	f.idle(second)
	wake()
	require.Equal(t, []bool{true, false}, f.inRing(f.first, second))
	f.clock.Advance(time.Minute)
	wake()
	require.Equal(t, []bool{false, false}, f.inRing(f.first, second), "by then it may take it")
}

// TestWhatIsOfOthersMayBeYielded has a worker leave what another one has rejected to better ones:
// until that one may have it again, it neither takes it nor is woken for it.
func TestWhatIsOfOthersMayBeYielded(t *testing.T) {
	t.Parallel()
	f := newRefusals(t)
	second := f.register(1, "go:f")
	defers := ClaimRequest{Free: second.info.Capacity, Max: 1, Defers: func(name string) bool { return name == "go:f" }}
	require.Equal(t, 1, f.reject(f.first, 1))
	row := f.row(f.id)
	until := row.Attempts.Refused[0].Until
	take := func() int {
		answer, err := second.Claim(f.ctx, defers)
		require.NoError(t, err)
		return len(answer.Futures)
	}
	require.Zero(t, take())
	require.Equal(t, until, layout.Millis(second.LeftUntil()))
	watch, err := second.EnterIdleRing(f.ctx, defers)
	require.NoError(t, err)
	defer watch.Cancel()
	wake := func(fresh *HintRequest) (in bool) {
		defer fresh.Cancel()
		var placed notify.Demands
		placed.AddRow(row, 0, layout.Millis(f.clock.Now()))
		f.c.notifier.Wake(f.ctx, -1, placed)
		require.Empty(t, fresh.C())
		return f.inRing(second)[0]
	}
	require.True(t, wake(second.RequestHint(defers)))
	f.clock.Advance(time.UnixMilli(until).Sub(f.clock.Now()))
	require.Equal(t, 1, take())
}

func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	var r layout.Refusals
	for n := range 9 {
		r = r.With(layout.Refusal{Worker: layout.WorkerID(fmt.Sprint(n % 6)), At: int64(n), Until: int64(n + 2)})
	}
	require.Equal(t, layout.MaxRefusals, r.Len())
	require.EqualValues(t, 8, r[layout.MaxRefusals-1].At)
	require.Equal(t, 1, r.Passing(9))
	again := r.With(layout.Refusal{Worker: r[0].Worker, At: 20})
	require.Equal(t, layout.MaxRefusals, again.Len())
	require.EqualValues(t, 20, again[layout.MaxRefusals-1].At)
	peer := layout.Refusals{}.With(layout.Refusal{Worker: "a", Peer: "p"}).With(layout.Refusal{Worker: "b", Peer: "p"})
	require.Equal(t, 1, peer.Len())
}

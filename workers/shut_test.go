package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestAShutFunctionOpensBelowItsBound is the model of which functions a worker claims while so many of them wait, and
// of when it looks again.
func TestAShutFunctionOpensBelowItsBound(t *testing.T) {
	t.Parallel()
	clk := clock.NewVirtual(epoch)
	s := newSlots(clk, layout.Resources{Slots: 2}, time.Second, 16)
	every := func(string) bool { return true }
	wait := func(function string, by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for range max(by, -by) {
			s.yield(function, by/max(by, -by))
		}
	}
	// looks reports whether more room has the claimer look.
	looks := func() bool {
		s.mu.Lock()
		s.feed()
		s.mu.Unlock()
		select {
		case <-s.hungry:
			return true
		default:
			return false
		}
	}
	request := func() func(string) bool {
		r := s.request(every)
		require.Positive(t, r.Max)
		if r.Runs == nil {
			return every
		}
		return r.Runs
	}

	wait("outer", 15)
	require.True(t, request()("outer"))
	s.foundNone()
	wait("outer", 1)
	runs := request()
	require.False(t, runs("outer"))
	require.True(t, runs("other"))
	require.True(t, looks(), "the claim may yet find something")
	request()
	s.foundNone()
	for range 2 {
		wait("outer", -1)
		require.False(t, looks(), "a claim would take none of it, and there is nothing else")
	}
	require.False(t, request()("outer"))
	s.foundNone()
	wait("outer", -1)
	require.True(t, looks())
	require.True(t, request()("outer"), "an eighth has gone on")

	wait("outer", 3)
	require.False(t, request()("outer"))
	s.foundNone()
	clk.Advance(openAfter)
	require.False(t, looks(), "the bound is reached")
	wait("outer", -1)
	clk.Advance(openAfter - 1)
	require.False(t, looks())
	wait("outer", 1)
	wait("outer", -1)
	clk.Advance(1)
	require.True(t, looks(), "one has gone on, a while ago")
	require.True(t, request()("outer"))

	wait("outer", 1)
	request()
	s.foundNone()
	wait("inner", 16)
	require.True(t, looks(), "others are shut")
	require.False(t, request()("inner"))
	s.foundNone()
	require.False(t, looks())
	s.admit(&membership{}, nil, false)
	require.True(t, looks(), "a claim since then had another reason to find nothing")
}

// TestAnotherFunctionRunsWhileOneIsShut has as many functions wait as may, and more of them in the pool. A future of
// another function that comes once the worker has found nothing else there runs without a poll.
func TestAnotherFunctionRunsWhileOneIsShut(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	outer := newWaiter()
	b.start(Options{Slots: 2, MaxAwaiting: 16, Poll: time.Hour}, map[string]Function{"outer": outer.run, "echo": echo})
	ids := b.many(100, "go:outer")
	for range 16 {
		b.receive("a wait", outer.began)
	}
	for range 10 {
		b.awaitOver(b.one("go:echo"))
	}
	close(outer.over)
	b.awaitOver(ids...)
}

// TestAFunctionBelowItsBoundIsClaimed has as many functions wait as may, all of one name, and ends one after the other:
// each time another one of that name begins, though the others wait on.
func TestAFunctionBelowItsBoundIsClaimed(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	outer := newWaiter()
	b.start(Options{Slots: 2, MaxAwaiting: 40}, map[string]Function{"outer": outer.run})
	ids := b.many(100, "go:outer")
	var began []layout.ID
	for range 90 {
		began = append(began, b.receive("another one", outer.began).ID)
		if n := len(began) - 40; n >= 0 {
			_, _, err := b.cluster.Cancel(b.ctx, began[n], "")
			require.NoError(t, err)
		}
	}
	close(outer.over)
	b.awaitOver(ids...)
}

package workers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
)

// TestWhatWaitsBehindALongCallIsGivenBack after as many looks as there have to be, without
// a slot that became free and without a look that came late.
func TestWhatWaitsBehindALongCallIsGivenBack(t *testing.T) {
	t.Parallel()
	const look = heldTime / heldLooks
	for name, between := range map[string]func(*slots, *clock.Virtual){
		"quiet": func(*slots, *clock.Virtual) {},
		"late":  func(_ *slots, clk *clock.Virtual) { clk.Advance(10 * look) },
		"a free one": func(s *slots, clk *clock.Virtual) {
			clk.Advance(look / 2)
			s.turned = clk.Now()
			clk.Advance(look / 2)
		},
	} {
		clk := clock.NewVirtual(epoch)
		s := newSlots(clk, layout.Resources{Slots: 1}, time.Second, 10)
		var back []*job
		s.held = func(jobs []*job) { back = append(back, jobs...) }
		s.free.Slots, s.turned = 0, clk.Now()
		old := &job{claimed: clk.Now()}
		s.queue = []*job{old}
		s.watchHeld()
		clk.Advance(look)
		between(s, clk)
		fresh := &job{claimed: clk.Now()}
		s.queue = append(s.queue, fresh)
		looks := 0
		for ; len(back) == 0; looks++ {
			require.Less(t, looks, 2*heldLooks, name)
			clk.Advance(look)
		}
		if name == "quiet" {
			require.Equal(t, heldLooks-1, looks)
			require.Equal(t, []*job{old}, back, "the other one has waited for a shorter time")
		} else {
			require.Equal(t, heldLooks, looks, name)
		}
	}
}

func TestAFreezeHoldsUpUntilItEnds(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g freeze
		require.NoError(t, g.wait(t.Context()))
		g.begin()
		passed := make(chan error, 1)
		go func() { passed <- g.wait(context.Background()) }()
		synctest.Wait()
		g.begin()
		require.Empty(t, passed)
		g.end()
		g.end()
		require.NoError(t, <-passed)
		g.begin()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, g.wait(ended), context.Canceled)
		g.end()
	})
}

// TestBundleFunctionsThatBreakTheirContract fail all of their members, and no others.
func TestBundleFunctionsThatBreakTheirContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fn   BundleFunction
		says string
	}{
		"too few": {func(context.Context, string, []Member) ([]MemberEnd, error) { return nil, nil }, "0 ends for"},
		"too many": {func(context.Context, string, []Member) ([]MemberEnd, error) {
			return make([]MemberEnd, 9), nil
		}, "9 ends for"},
		"a panic":  {func(context.Context, string, []Member) ([]MemberEnd, error) { panic("down") }, "down"},
		"an error": {func(context.Context, string, []Member) ([]MemberEnd, error) { return nil, errors.New("no") }, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := virtualBed(t)
			require.NoError(t, lanes.Of(b.cluster).SetKind(b.ctx, "k", layout.LaneKind{Bundle: "go:b"}))
			inLane := func(s *fdbmodel.Submission) { s.Spec.Lane = layout.Lane{Kind: "k", Key: "x"} }
			ids := b.submit(b.describe("go:b", inLane), b.describe("go:b", inLane), b.describe("go:b"))
			w, err := FromCluster(b.cluster, Options{Slots: 1})
			require.NoError(t, err)
			require.NoError(t, w.Register("other", echo))
			require.NoError(t, w.RegisterBundle("b", c.fn))
			ctx, stop := context.WithCancel(b.ctx)
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			defer func() {
				stop()
				require.NoError(t, <-done)
			}()
			b.awaitOver(ids...)
			for _, id := range ids {
				row := b.row(id)
				require.Equal(t, layout.Failed, row.State())
				require.Contains(t, row.Exception.Message, c.says)
			}
			other := b.one("go:other")
			b.awaitOver(other)
			require.Equal(t, layout.Realized, stateOf(b, other))
		})
	}
}

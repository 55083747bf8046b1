package p2p

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

// TestSlowTransfersTakeTurns has transfers that never end hold all places. Another one
// gets one after a turn, and each of the others again after it.
func TestSlowTransfersTakeTurns(t *testing.T) {
	t.Parallel()
	fake := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	h := &Host{clock: fake}
	all := newTurns(2)
	var slow []*turn
	for range 2 {
		one, err := h.takeTurn(t.Context(), newTurns(1), all)
		require.NoError(t, err)
		slow = append(slow, one)
	}
	fake.Advance(time.Hour)
	require.False(t, slow[0].isOver(), "nobody waits")
	got := make(chan *turn)
	go func() {
		one, err := h.takeTurn(context.Background(), newTurns(1), all)
		if err == nil {
			got <- one
		}
	}()
	require.Eventually(t, slow[0].isOver, time.Minute, time.Millisecond)
	slow[0].giveBack()
	honest := <-got
	require.False(t, slow[1].isOver(), "nobody waits any more")
	require.False(t, honest.isOver())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := h.takeTurn(ended, newTurns(1), all)
	require.Error(t, err)
	require.Zero(t, all.waiting.Load())
}

// TestTheRateOfAFetch has bytes come faster and slower than they have to.
func TestTheRateOfAFetch(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for name, c := range map[string]struct {
		bytes int64 // of each minute
		lasts time.Duration
	}{
		"none":          {0, 2 * time.Minute},
		"a byte":        {1, 2 * time.Minute},
		"half the rate": {60 * 500, 4 * time.Minute},
		"the rate":      {60 * 1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fetch{options: FetchOptions{Patience: 2 * time.Minute, Rate: 1000}}
			for took := time.Minute; took <= time.Hour; took += time.Minute {
				f.count(time.Minute, c.bytes)
				if err := f.exhausted(cut); err != nil {
					require.ErrorIs(t, err, cut)
					require.InDelta(t, c.lasts, took, float64(time.Minute))
					return
				}
			}
			require.Zero(t, c.lasts)
		})
	}
}

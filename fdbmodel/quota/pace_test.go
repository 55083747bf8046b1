package quota_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// TestPacesOfAWholeCluster has four processes reserve starts for one host, some one
// and some several at a time.
func TestPacesOfAWholeCluster(t *testing.T) {
	t.Parallel()
	db, clk := storetest.New(t), clock.NewVirtual(time.Unix(1_800_000_000, 0))
	pace := &layout.Pace{Key: "example.com", PerSecond: 10, Shared: true}
	var mu sync.Mutex
	var starts []time.Time
	var wg sync.WaitGroup
	for process := range 4 {
		c, err := fdbmodel.Open(t.Context(), db, "paces", fdbmodel.Options{Clock: clk})
		require.NoError(t, err)
		wg.Go(func() {
			for range 10 {
				first, err := quota.Of(c).ReservePace(t.Context(), pace, 1+process)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i := range 1 + process {
					starts = append(starts, first.Add(time.Duration(i)*pace.Gap()))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(starts, time.Time.Compare)
	require.Len(t, starts, 10*(1+2+3+4))
	require.Equal(t, clk.Now().UnixNano(), starts[0].UnixNano())
	for i := range starts[1:] {
		require.GreaterOrEqual(t, starts[i+1].Sub(starts[i]), 100*time.Millisecond)
	}
	require.LessOrEqual(t, starts[99].Sub(starts[0]), 10*time.Second+100*time.Millisecond*20, "few are left out")

	c, err := fdbmodel.Open(t.Context(), db, "paces", fdbmodel.Options{Clock: clk})
	require.NoError(t, err)
	other, err := quota.Of(c).ReservePace(t.Context(), &layout.Pace{Key: "other.com", PerSecond: 1}, 1)
	require.NoError(t, err)
	require.Equal(t, clk.Now().UnixNano(), other.UnixNano(), "another host waits for nobody")

	removed, err := quota.Of(c).SweepPaces(t.Context())
	require.NoError(t, err)
	require.Zero(t, removed)
	clk.Advance(time.Hour)
	first, err := quota.Of(c).ReservePace(t.Context(), pace, 1)
	require.NoError(t, err)
	require.Equal(t, clk.Now().UnixNano(), first.UnixNano(), "no burst follows a pause")
	removed, err = quota.Of(c).SweepPaces(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, removed, "that of the other host")
	for i := range 1100 {
		_, err := quota.Of(c).ReservePace(t.Context(), &layout.Pace{Key: fmt.Sprint(i), PerSecond: 1}, 1)
		require.NoError(t, err)
	}
	clk.Advance(time.Hour)
	removed, err = quota.Of(c).SweepPaces(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1101, removed)
}

// TestAPaceOfAWrongClock reserves with a clock that is a year ahead, and slow paces
// with a right one.
func TestAPaceOfAWrongClock(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	right := clock.NewVirtual(time.Unix(1_800_000_000, 0))
	wrong := clock.NewVirtual(right.Now().AddDate(1, 0, 0))
	pace := &layout.Pace{Key: "h", PerSecond: 1}
	for _, clk := range []*clock.Virtual{wrong, right} {
		c, err := fdbmodel.Open(t.Context(), db, "paces", fdbmodel.Options{Clock: clk})
		require.NoError(t, err)
		first, err := quota.Of(c).ReservePace(t.Context(), pace, 5)
		require.NoError(t, err)
		require.Equal(t, clk.Now().UnixNano(), first.UnixNano())
	}
	require.Equal(t, 24*time.Hour, (&layout.Pace{PerSecond: 1e-300}).Gap())
	require.Zero(t, (&layout.Pace{PerSecond: 1e300}).Gap())
}

// TestUnknownResultsOfPaces is TestUnknownResults for what reserves and removes paces.
func TestUnknownResultsOfPaces(t *testing.T) {
	t.Parallel()
	pace := &layout.Pace{Key: "h", PerSecond: 1}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-pace": func(s *modeltest.Stage, strike func()) {
			before, err := quota.Of(s.C).ReservePace(s.Ctx, pace, 1)
			require.NoError(s.T, err)
			strike()
			during, err := quota.Of(s.C).ReservePace(s.Ctx, pace, 1)
			require.NoError(s.T, err)
			s.Faults.Flush()
			after, err := quota.Of(s.C).ReservePace(s.Ctx, pace, 1)
			require.NoError(s.T, err)
			require.GreaterOrEqual(s.T, during.Sub(before), time.Second)
			require.GreaterOrEqual(s.T, after.Sub(during), time.Second)
		},
		"futura-pace that is swept": func(s *modeltest.Stage, strike func()) {
			_, err := quota.Of(s.C).ReservePace(s.Ctx, pace, 1)
			require.NoError(s.T, err)
			s.Clock.Advance(time.Hour)
			strike()
			_, err = quota.Of(s.C).SweepPaces(s.Ctx)
			require.NoError(s.T, err)
			s.Faults.Flush()
			removed, err := quota.Of(s.C).SweepPaces(s.Ctx)
			require.NoError(s.T, err)
			require.Zero(s.T, removed)
		},
	})
}

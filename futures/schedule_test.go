package futures_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestNextTimesOfASchedule asks for as many as there may be, and for fewer than none.
func TestNextTimesOfASchedule(t *testing.T) {
	t.Parallel()
	c, ctx := futurestest.New(t).Client, t.Context()
	_, err := c.PutSchedule(ctx, futures.Schedule{Name: "s", Every: time.Hour, Task: futures.Task{Function: "go:f"}})
	require.NoError(t, err)
	for times, want := range map[int]int{-1: 0, 0: 0, 2: 2, futures.MaxScheduleTimes + 1: futures.MaxScheduleTimes} {
		s, err := c.Schedule(ctx, "s", times)
		require.NoError(t, err)
		require.Len(t, s.Next, want)
	}
}

package clock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

func TestVirtualCallsInOrder(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	c := clock.NewVirtual(start)
	var called []string
	note := func(name string) func() { return func() { called = append(called, name) } }
	c.AfterFunc(start.Add(3*time.Second), note("third"))
	c.AfterFunc(start.Add(2*time.Second), note("second"))
	stop := c.AfterFunc(start.Add(time.Second), note("stopped"))
	c.AfterFunc(start.Add(time.Second), func() {
		note("first")()
		// A call may ask for another.
		c.AfterFunc(start, note("at once"))
	})
	stop()
	stop()
	timer := c.At(start.Add(2 * time.Second))
	c.Advance(time.Second)
	require.Equal(t, []string{"first", "at once"}, called)
	require.Empty(t, timer.C())
	c.Advance(time.Hour)
	require.Equal(t, []string{"first", "at once", "second", "third"}, called)
	require.Len(t, timer.C(), 1)
	_, waits := c.Next()
	require.False(t, waits)
}

func TestVirtualStopsACallThatIsDue(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	c := clock.NewVirtual(start)
	var stop func()
	c.AfterFunc(start.Add(time.Second), func() { stop() })
	stop = c.AfterFunc(start.Add(2*time.Second), func() { t.Error("it was stopped") })
	c.Advance(time.Minute)
}

func TestRealCallsOnceItIsTime(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Millisecond)
	called := make(chan time.Time, 1)
	stop := clock.Real{}.AfterFunc(at, func() { called <- time.Now() })
	defer stop()
	require.False(t, (<-called).Before(at))
}

func TestWait(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	c := clock.NewVirtual(start)
	require.NoError(t, clock.Wait(t.Context(), c, start))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, clock.Wait(ended, c, start), context.Canceled)
	require.ErrorIs(t, clock.Wait(ended, c, start.Add(time.Hour)), context.Canceled)
	_, waits := c.Next()
	require.False(t, waits)
	done := make(chan error)
	go func() { done <- clock.Wait(t.Context(), c, start.Add(time.Hour)) }()
	for _, waits := c.Next(); !waits; _, waits = c.Next() {
		runtime.Gosched()
	}
	c.Advance(time.Hour)
	require.NoError(t, <-done)
}

// TestRealTimesAreMeasuredByAClockThatIsNeverSet checks that they have a monotonic
// reading, by which Go subtracts times and waits for them.
func TestRealTimesAreMeasuredByAClockThatIsNeverSet(t *testing.T) {
	t.Parallel()
	now := clock.Real{}.Now()
	require.NotEqual(t, now.String(), now.Round(0).String())
}

package bank

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

// movedClock is the machine's clock, set ahead by some seconds, or back. As on a machine whose clock is set, this
// changes the time, and no duration.
type movedClock struct{ ahead atomic.Int64 }

// Now implements clock.Clock.
func (c *movedClock) Now() time.Time { return setAhead(time.Now(), c.ahead.Load()) }

// At implements clock.Clock.
func (c *movedClock) At(t time.Time) clock.Timer {
	return clock.Real{}.At(time.Now().Add(t.Sub(c.Now())))
}

// AfterFunc implements clock.Clock.
func (c *movedClock) AfterFunc(t time.Time, f func()) (stop func()) {
	return clock.Real{}.AfterFunc(time.Now().Add(t.Sub(c.Now())), f)
}

// setAhead changes the wall time of t and leaves its monotonic one, which no function of package time does. The first
// word of a time that has both holds a bit that says so, 33 bits of seconds and 30 of nanoseconds.
func setAhead(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}

func TestAMovedClockChangesNoDuration(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int64{0, 1, -1, 3600, -3600, 365 * 86400} {
		now := time.Now()
		moved := setAhead(now, seconds)
		require.Zero(t, moved.Sub(now))
		require.Equal(t, time.Duration(seconds)*time.Second, moved.Round(0).Sub(now.Round(0)))
	}
	c := &movedClock{}
	c.ahead.Store(-3600)
	before := c.Now()
	c.ahead.Store(3600)
	<-c.At(before.Add(time.Millisecond)).C()
	require.GreaterOrEqual(t, c.Now().Sub(before), time.Millisecond)
	require.Less(t, c.Now().Sub(before), time.Hour)
	stored := time.UnixMicro(time.Now().Add(time.Minute).UnixMicro())
	<-c.At(stored).C() // it has passed, by this clock
}

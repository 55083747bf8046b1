package fdbmodel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestARunningFutureCountsOnce has a store whose readings don't show the last claim yet,
// and an end that a reading has shown before it is noted.
func TestARunningFutureCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	_, err := w.c.SetLimits(w.ctx, func(l *layout.Limits) { l.Running = 1 })
	require.NoError(t, err)
	may := func() int {
		n, _, err := w.c.MayClaim(w.ctx, 9)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 1, may())
	seen := w.c.limiter.reading.version
	w.c.noteClaimed(1, seen+1_000_000) // not shown yet
	require.Zero(t, may())
	w.c.limiter.forget()
	require.Zero(t, may(), "the new reading does not show the claim")
	w.c.limiter.claims = nil
	w.c.limiter.forget()
	require.Equal(t, 1, may())
	w.c.noteClaimed(1, w.c.limiter.reading.version+1_000_000)
	w.c.noteClaimed(-1, w.c.limiter.reading.version)
	require.Zero(t, may(), "the reading has shown that end")
	require.NotEqual(t, kv.NoVersion, seen)
}

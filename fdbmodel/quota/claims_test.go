package quota

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// TestARunningFutureCountsOnce has a store whose readings don't show the last claim yet,
// and an end that a reading has shown before it is noted.
func TestARunningFutureCountsOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c, err := fdbmodel.Open(ctx, db, "c", fdbmodel.Options{})
	require.NoError(t, err)
	q := Of(c)
	_, err = q.Set(ctx, func(l *Limits) { l.Running = 1 })
	require.NoError(t, err)
	may := func() int {
		n, _, err := q.MayClaim(ctx, 9)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 1, may())
	seen := q.limiter.reading.version
	q.noteClaimed(1, seen+1_000_000) // not shown yet
	require.Zero(t, may())
	q.limiter.forget()
	require.Zero(t, may(), "the new reading does not show the claim")
	q.limiter.claims = nil
	q.limiter.forget()
	require.Equal(t, 1, may())
	q.noteClaimed(1, q.limiter.reading.version+1_000_000)
	q.noteClaimed(-1, q.limiter.reading.version)
	require.Zero(t, may(), "the reading has shown that end")
	require.NotEqual(t, kv.NoVersion, seen)
}

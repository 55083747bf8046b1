package quota

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/internal/bubble"
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

// TestAReadingHoldsUpNoCallPastItsTime has a store that does not answer the one call which reads for all.
func TestAReadingHoldsUpNoCallPastItsTime(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, memory := t.Context(), embedded.OpenMemory(embedded.Options{})
		defer func() { require.NoError(t, memory.Close()) }()
		db := faultkv.Wrap(memory, faultkv.Options{})
		c, err := fdbmodel.Open(ctx, db, "c", fdbmodel.Options{})
		require.NoError(t, err)
		q := Of(c)
		_, err = q.Set(ctx, func(l *Limits) { l.Pending, l.Running = 1000, 1000 })
		require.NoError(t, err)

		var reads atomic.Int32
		stall := func() (end func()) {
			answers := make(chan struct{})
			db.SetOptions(faultkv.Options{Latency: time.Second, Sleep: func(ctx context.Context, _ time.Duration) error {
				reads.Add(1)
				select {
				case <-answers:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}})
			return func() { close(answers) }
		}
		first := make(chan error, 1)
		ask := func() {
			go func() { first <- q.Admit(ctx, 1) }()
			synctest.Wait()
		}
		end := stall()
		ask()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, q.Admit(short, 1), context.DeadlineExceeded)
		_, _, err = q.MayClaim(short, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		q.noteClaimed(1, 1) // does not wait
		end()
		require.NoError(t, <-first)

		end = stall()
		ask()
		q.limiter.forget()
		end()
		require.NoError(t, <-first)
		before := reads.Load()
		require.NoError(t, q.Admit(ctx, 1))
		require.Greater(t, reads.Load(), before, "a reading that was forgotten while it was made is made again")
		before = reads.Load()
		require.NoError(t, q.Admit(ctx, 1))
		require.Equal(t, before, reads.Load(), "one that was not serves the next call")
	})
}

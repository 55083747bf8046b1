package workers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// TestPipelineOfARemote has a remote with four slots run futures at a distance of 10 ms.
// Short ones are sent before slots are free, so that they take a fraction of what four at
// a time would; of long ones never more than there are slots.
func TestPipelineOfARemote(t *testing.T) {
	t.Parallel()
	const slots, n, distance = 4, 2000, 10 * time.Millisecond
	for name, c := range map[string]struct {
		runs  time.Duration
		check func(t *testing.T, most int64, took time.Duration)
	}{
		"short": {10 * time.Microsecond, func(t *testing.T, most int64, took time.Duration) {
			require.Greater(t, most, int64(10*slots))
			require.Less(t, took, n/slots*distance/4)
		}},
		"long": {time.Second, func(t *testing.T, most int64, _ time.Duration) {
			require.Equal(t, int64(slots), most)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "far", fdbmodel.Options{})
				require.NoError(t, err)
				var running, most, ended atomic.Int64
				e := &elsewhere{run: func(ctx context.Context, _ workers.RemoteCall) (workers.RemoteOutcome, error) {
					raise(&most, running.Add(1))
					defer running.Add(-1)
					defer ended.Add(1)
					err := clock.Sleep(ctx, clock.Real{}, distance+c.runs)
					return workers.RemoteOutcome{RunTime: c.runs}, err
				}}
				w, err := workers.FromCluster(cluster, workers.Options{Slots: slots, Remote: e})
				require.NoError(t, err)
				subs := make([]fdbmodel.Submission, n)
				for i := range subs {
					subs[i] = farFuture(layout.Spec{})
				}
				_, err = cluster.Submit(context.Background(), subs)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(context.Background())
				over := make(chan error, 1)
				start := time.Now()
				go func() { over <- w.Run(ctx) }()
				for ended.Load() < n && time.Since(start) < time.Hour {
					_ = clock.Sleep(ctx, clock.Real{}, distance)
				}
				took := time.Since(start)
				require.EqualValues(t, n, ended.Load())
				c.check(t, most.Load(), took)
				cancel()
				require.NoError(t, <-over)
			})
		})
	}
}

// raise has a maximum be at least n.
func raise(most *atomic.Int64, n int64) {
	for known := most.Load(); n > known && !most.CompareAndSwap(known, n); {
		known = most.Load()
	}
}

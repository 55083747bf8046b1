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

// serial is a remote that may run one after the other what it gets, or keep the limits of
// owners.
type serial struct {
	elsewhere
	is, keeps bool
}

func (s *serial) Serial() bool      { return s.is }
func (s *serial) KeepsLimits() bool { return s.keeps }

// TestLimitOfAnOwnerElsewhere has a remote run futures of an owner of which one may run at
// a time. A remote that keeps that by itself, or runs one after the other, is given
// short ones ahead, and no long ones; others are given one after the other.
func TestLimitOfAnOwnerElsewhere(t *testing.T) {
	t.Parallel()
	const slots, n, distance = 8, 200, 10 * time.Millisecond
	for name, c := range map[string]struct {
		serial bool
		keeps  bool
		runs   time.Duration
		check  func(t *testing.T, most int64)
	}{
		"serial, short": {true, false, 100 * time.Microsecond, func(t *testing.T, most int64) {
			require.Greater(t, most, int64(slots))
		}},
		"serial, long": {true, false, time.Second, func(t *testing.T, most int64) { require.EqualValues(t, 1, most) }},
		"parallel": {false, false, 100 * time.Microsecond, func(t *testing.T, most int64) {
			require.EqualValues(t, 1, most)
		}},
		"limits, short": {false, true, 100 * time.Microsecond, func(t *testing.T, most int64) {
			require.Greater(t, most, int64(slots))
		}},
		"limits, long": {false, true, time.Second, func(t *testing.T, most int64) { require.EqualValues(t, 1, most) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "far", fdbmodel.Options{})
				require.NoError(t, err)
				var given, most, ended atomic.Int64
				turn := make(chan struct{}, 1) // a Mutex would hold up virtual time
				r := &serial{is: c.serial, keeps: c.keeps}
				r.run = func(ctx context.Context, _ workers.RemoteCall) (workers.RemoteOutcome, error) {
					raise(&most, given.Add(1))
					defer given.Add(-1)
					defer ended.Add(1)
					err := clock.Sleep(ctx, clock.Real{}, distance)
					turn <- struct{}{}
					defer func() { <-turn }()
					if err == nil {
						err = clock.Sleep(ctx, clock.Real{}, c.runs)
					}
					return workers.RemoteOutcome{RunTime: c.runs}, err
				}
				w, err := workers.FromCluster(cluster, workers.Options{Slots: slots, Remote: r})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(context.Background())
				over := make(chan error, 1)
				go func() { over <- w.Run(ctx) }()
				<-w.Ready()
				subs := make([]fdbmodel.Submission, n)
				for i := range subs {
					subs[i] = farFuture(layout.Spec{Owner: "batch", Parallel: 1})
					subs[i].Assigned = w.ID()
				}
				_, err = cluster.Submit(context.Background(), subs)
				require.NoError(t, err)
				for start := time.Now(); ended.Load() < n && time.Since(start) < time.Hour; {
					_ = clock.Sleep(ctx, clock.Real{}, distance)
				}
				require.EqualValues(t, n, ended.Load())
				c.check(t, most.Load())
				cancel()
				require.NoError(t, <-over)
			})
		})
	}
}

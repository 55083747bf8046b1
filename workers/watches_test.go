package workers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// fullOfWatches is a store that has no room for another watch.
type fullOfWatches struct {
	*storetest.Unwatched
	begun *atomic.Int64 // transactions that enter the ring
}

func (d fullOfWatches) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-idle" {
		d.begun.Add(1)
	}
	return d.Unwatched.Begin(o)
}

// TestAnIdleWorkerWithoutAWatchPolls: a worker that gets no watch enters the ring
// again after a poll, not at once, and hints of its process still wake it.
func TestAnIdleWorkerWithoutAWatchPolls(t *testing.T) {
	t.Parallel()
	db := fullOfWatches{storetest.NewUnwatched(storetest.New(t)), &atomic.Int64{}}
	b := bedOn(t, db, layout.Config{Heartbeat: 20 * time.Millisecond, DeadAfter: time.Minute}, nil)
	w := b.start(Options{Poll: time.Hour}, map[string]Function{"f": func(context.Context, []byte) ([]byte, error) {
		return nil, nil
	}})
	b.await("some heartbeats in the ring", func() bool {
		m, _ := b.member(w.ID())
		return db.begun.Load() > 0 && m.Heartbeat.Count > 10
	})
	require.EqualValues(t, 1, db.begun.Load())
	b.awaitOver(b.one("go:f"))
}

// TestAWorkerWithoutAWatchPollsMoreOften for what others submit, whose hints do not reach it.
func TestAWorkerWithoutAWatchPollsMoreOften(t *testing.T) {
	t.Parallel()
	if storetest.OnServer {
		t.Skip("a server's time is not that of the test")
	}
	db := fullOfWatches{storetest.NewUnwatched(storetest.New(t)), &atomic.Int64{}}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	b.start(Options{Poll: time.Hour}, map[string]Function{"echo": echo})
	b.until(func() bool {
		b.clock.Advance(ringDelay)
		return db.begun.Load() > 0
	})
	other, err := fdbmodel.Open(b.ctx, db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	answers, err := other.Submit(b.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:echo"}}})
	require.NoError(t, err)
	began := b.clock.Now()
	b.until(func() bool {
		b.clock.Advance(time.Second)
		return b.rowOver(answers[0].ID)
	})
	require.Less(t, b.clock.Now().Sub(began), time.Hour/2)
}

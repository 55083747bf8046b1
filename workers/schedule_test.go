package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// TestJanitorFiresSchedules has a janitor sleep until a schedule is due.
func TestJanitorFiresSchedules(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	j := b.joinedJanitor()
	from := b.clock.Now().Add(10500 * time.Millisecond)
	_, _, err := schedule.Of(b.cluster).Put(b.ctx, schedule.Record{
		Name: "often", Every: 1700 * time.Millisecond, From: layout.Millis(from), Spec: layout.Spec{Function: "go:echo"},
	}, true)
	require.NoError(t, err)
	const times = 10
	for last := from.Add((times - 1) * 1700 * time.Millisecond); !b.clock.Now().After(last); {
		next := j.step(b.ctx, b.clock.Now())
		b.clock.Advance(max(time.Millisecond, next.Sub(b.clock.Now())))
	}
	s, err := schedule.Of(b.cluster).Get(b.ctx, "often")
	require.NoError(t, err)
	require.EqualValues(t, times, s.State.Fired)
	for _, run := range s.State.Runs {
		require.Equal(t, run.At, run.FiredAt, "it fires when it is due, not at the next interval")
	}
	require.EqualValues(t, times, b.counts()[layout.Ready])
}

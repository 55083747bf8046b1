package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestObserverSeesWhatStandsStill(t *testing.T) {
	t.Parallel()
	o := observer[string]{gap: 5 * time.Second}
	now := epoch
	look := func(after time.Duration, value string) time.Duration {
		now = now.Add(after)
		return o.look("a", []byte(value), now)
	}
	require.Zero(t, look(0, "1"))
	require.Equal(t, 4*time.Second, look(4*time.Second, "1"))
	require.Equal(t, 8*time.Second, look(4*time.Second, "1"))
	require.Zero(t, look(4*time.Second, "2"))
	// An observer that was stopped for an hour has seen nothing of it.
	require.Equal(t, 5*time.Second, look(time.Hour, "2"))
	require.Equal(t, 5*time.Second, look(-time.Hour, "2"))
	o.keep(map[string]bool{"b": true})
	require.Empty(t, o.seen)
	require.Zero(t, look(time.Second, "2"))
}

func TestObserverNeverSeesMoreThanThereWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gap := time.Duration(rapid.Int64Range(1, 100).Draw(t, "gap"))
		o := observer[int]{gap: gap}
		now, changed, looks := epoch, epoch, 0
		last := byte(0)
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 200).Draw(t, "wait")))
			value := rapid.ByteRange(0, 1).Draw(t, "value")
			if value != last || looks == 0 {
				changed, looks, last = now, 0, value
			}
			still := o.look(1, []byte{value}, now)
			require.LessOrEqual(t, still, now.Sub(changed))
			require.LessOrEqual(t, still, time.Duration(looks)*gap)
			looks++
		}
	})
}

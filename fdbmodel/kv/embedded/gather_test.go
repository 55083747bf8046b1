package embedded

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGatheringWaitsForThoseWhoComeBack(t *testing.T) {
	t.Parallel()
	var urgent atomic.Int64
	g := gathering{limit: time.Hour, expected: 8}
	urgent.Store(3)
	go func() {
		for range 5 {
			urgent.Add(1)
		}
	}()
	g.wait(&urgent)
	require.EqualValues(t, 8, urgent.Load())
	require.Zero(t, g.rest)

	// The batches wait for a lone committer, not this.
	urgent.Store(0)
	g.expected = 1
	g.wait(&urgent)
}

func TestGatheringInVainRests(t *testing.T) {
	t.Parallel()
	var urgent atomic.Int64
	g := gathering{expected: 2}
	g.synced(time.Hour)
	require.Equal(t, gatherMax, g.limit)
	g.synced(0)
	waits := 0
	for range 1000 {
		if g.rest == 0 {
			waits++
		}
		g.wait(&urgent)
	}
	require.Greater(t, waits, 1000/(gatherRests+1))
	require.Less(t, waits, 1000/gatherRests+8)

	// Once they come back it waits each time.
	urgent.Store(2)
	for g.rest > 0 {
		g.wait(&urgent)
	}
	g.wait(&urgent)
	require.Zero(t, g.rests)
	require.Zero(t, g.rest)
}

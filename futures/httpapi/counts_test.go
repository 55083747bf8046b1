package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
)

// TestQueuesThatAreShownAreFew counts more queues and owners than are shown.
func TestQueuesThatAreShownAreFew(t *testing.T) {
	t.Parallel()
	found, want := layout.Counts{}, int64(0)
	for i := range 5000 {
		for _, owner := range []string{"", "a"} {
			found[layout.CountKey{Queue: fmt.Sprint("q", i), Owner: owner, State: layout.Ready}] = int64(i)
			want += int64(i)
		}
	}
	shown := countsOf(found)
	for _, list := range [][]Count{shown.all, shown.queues} {
		require.Len(t, list, maxQueues+1)
		require.Equal(t, otherQueues, list[0].Queue)
		got := int64(0)
		for _, c := range list {
			got += c.Futures
		}
		require.Equal(t, want, got)
	}
	require.Equal(t, Count{Queue: "q4999", State: "ready", Futures: 2 * 4999}, shown.queues[maxQueues])
	require.Equal(t, Count{Queue: "q4999", Owner: "a", State: "ready", Futures: 4999}, shown.all[maxQueues])
}

// TestSlowCountsAreShared asks at once for counters that take a second to read.
func TestSlowCountsAreShared(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := 0
		var failed error
		s := &sharedCounts{from: func(context.Context) (layout.Counts, error) {
			n++
			if failed == nil {
				<-time.After(time.Second)
			}
			return layout.Counts{{Queue: "q", State: layout.Ready}: int64(n)}, failed
		}}
		ask := func() int64 {
			found, err := s.read(t.Context())
			require.NoError(t, err)
			return found.queues[0].Futures
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { require.LessOrEqual(t, ask(), int64(2)) })
		}
		all.Wait()
		require.LessOrEqual(t, n, 2)
		before := n
		require.EqualValues(t, before, ask())
		<-time.After(2 * countRest * time.Second)
		require.EqualValues(t, before+1, ask())
		<-time.After(2 * countRest * time.Second)
		failed = errors.New("no store")
		_, err := s.read(t.Context())
		require.ErrorIs(t, err, failed)
		failed = nil
		require.EqualValues(t, before+3, ask(), "an error is not kept")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		<-time.After(2 * countRest * time.Second)
		_, err = s.read(ctx)
		require.ErrorIs(t, err, context.Canceled)
		<-time.After(2 * time.Second)
	})
}

// TestFastCountsAreThoseOfTheMoment changes counters while they are read.
func TestFastCountsAreThoseOfTheMoment(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		now := int64(1)
		s := &sharedCounts{from: func(context.Context) (layout.Counts, error) {
			seen := now
			<-time.After(time.Millisecond)
			return layout.Counts{{Queue: "q", State: layout.Ready}: seen}, nil
		}}
		var all sync.WaitGroup
		all.Go(func() { _, _ = s.read(t.Context()) })
		synctest.Wait()
		now = 2
		found, err := s.read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, found.queues[0].Futures)
		all.Wait()
	})
}

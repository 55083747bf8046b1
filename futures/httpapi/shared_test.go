package httpapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bubble"
)

// TestSlowReadingsAreShared asks at once for what takes a second to read.
func TestSlowReadingsAreShared(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := 0
		var failed error
		s := &shared[int64]{from: func(context.Context) (int64, error) {
			n++
			if failed == nil {
				<-time.After(time.Second)
			}
			return int64(n), failed
		}}
		ask := func() int64 {
			found, err := s.read(t.Context())
			require.NoError(t, err)
			return found
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { require.LessOrEqual(t, ask(), int64(2)) })
		}
		all.Wait()
		require.LessOrEqual(t, n, 2)
		before := n
		require.EqualValues(t, before, ask())
		<-time.After(2 * readingRest * time.Second)
		require.EqualValues(t, before+1, ask())
		<-time.After(2 * readingRest * time.Second)
		failed = errors.New("no store")
		_, err := s.read(t.Context())
		require.ErrorIs(t, err, failed)
		failed = nil
		require.EqualValues(t, before+3, ask(), "an error is not kept")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		<-time.After(2 * readingRest * time.Second)
		_, err = s.read(ctx)
		require.ErrorIs(t, err, context.Canceled)
		<-time.After(2 * time.Second)
	})
}

// TestFastReadingsAreThoseOfTheMoment changes what is read meanwhile.
func TestFastReadingsAreThoseOfTheMoment(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		now := int64(1)
		s := &shared[int64]{from: func(context.Context) (int64, error) {
			seen := now
			<-time.After(time.Millisecond)
			return seen, nil
		}}
		var all sync.WaitGroup
		all.Go(func() { _, _ = s.read(t.Context()) })
		synctest.Wait()
		now = 2
		found, err := s.read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, found)
		all.Wait()
	})
}

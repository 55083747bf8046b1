package budget

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := New(10)
	require.NoError(t, b.Acquire(t.Context(), 6))
	require.False(t, b.TryAcquire(5))
	require.True(t, b.TryAcquire(4))
	ended, end := context.WithCancel(t.Context())
	end()
	err := b.Acquire(ended, 1)
	require.ErrorIs(t, err, ErrExceeded)
	require.ErrorIs(t, err, context.Canceled)
	b.Release(6)
	require.NoError(t, b.Acquire(ended, 6), "what is free needs no wait")
}

func TestMoreThanTheBudgetIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, New(10).Acquire(t.Context(), 11), ErrExceeded)
}

func TestNilBudgetHoldsEverything(t *testing.T) {
	t.Parallel()
	var b *Bytes
	require.NoError(t, b.Acquire(t.Context(), 1<<60))
	require.True(t, b.TryAcquire(1<<60))
	b.Release(1 << 60)
}

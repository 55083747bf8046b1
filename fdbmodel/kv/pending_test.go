package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func TestPending(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	ctx, cancel := context.WithCancel(t.Context())

	value, err := kv.Ready(7, failed).Wait(ctx)
	require.Equal(t, 7, value)
	require.ErrorIs(t, err, failed)

	value, err = kv.Pending[int]{}.Wait(ctx)
	require.Zero(t, value)
	require.NoError(t, err)

	asked := 0
	later := kv.Later(func(ctx context.Context) (int, error) {
		asked++
		return asked, ctx.Err()
	})
	require.Zero(t, asked)
	value, err = later.Wait(ctx)
	require.Equal(t, 1, value)
	require.NoError(t, err)

	cancel()
	_, err = later.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	retryable := []error{kv.ErrConflict, kv.ErrTooOld, kv.ErrFutureVersion, kv.ErrUnavailable, kv.ErrUnknownResult}
	for _, err := range retryable {
		require.True(t, kv.Retryable(errors.Join(errors.New("while claiming"), err)))
		require.Equal(t, err == kv.ErrUnknownResult, kv.MaybeCommitted(err))
	}
	for _, err := range []error{
		nil, context.Canceled, kv.ErrKeyTooLarge, kv.ErrValueTooLarge, kv.ErrTxTooLarge, kv.ErrIllegalKey,
		kv.ErrBadStampOffset, kv.ErrUnreadable, kv.ErrUsed, kv.ErrTooManyWatches, kv.ErrCancelled, kv.ErrClosed,
		kv.ErrStoreFailed, kv.ErrStoreInUse, kv.ErrCorrupt, kv.ErrNotBuilt,
	} {
		require.False(t, kv.Retryable(err))
		require.False(t, kv.MaybeCommitted(err))
	}
}

//go:build fdb

package fdbkv

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func TestErrorsAreTranslated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codes          []int
		read, onCommit error
	}{
		{[]int{1020}, kv.ErrConflict, kv.ErrConflict},
		{[]int{1007}, kv.ErrTooOld, kv.ErrTooOld},
		{[]int{1009}, kv.ErrFutureVersion, kv.ErrFutureVersion},
		{[]int{1037, 1038, 1042, 1051, 1078, 1213, 1223}, kv.ErrUnavailable, kv.ErrUnavailable},
		{[]int{1021}, kv.ErrUnknownResult, kv.ErrUnknownResult},
		{[]int{1039}, kv.ErrUnavailable, kv.ErrUnknownResult},
		{[]int{1025}, kv.ErrUsed, kv.ErrUnknownResult},
		{[]int{1032}, kv.ErrTooManyWatches, kv.ErrTooManyWatches},
		{[]int{1036}, kv.ErrUnreadable, kv.ErrUnreadable},
		{[]int{2004, 2005}, kv.ErrIllegalKey, kv.ErrIllegalKey},
		{[]int{2017}, kv.ErrUsed, kv.ErrUsed},
		{[]int{2101}, kv.ErrTxTooLarge, kv.ErrTxTooLarge},
		{[]int{2102}, kv.ErrKeyTooLarge, kv.ErrKeyTooLarge},
		{[]int{2103}, kv.ErrValueTooLarge, kv.ErrValueTooLarge},
	} {
		for _, code := range c.codes {
			cause := fmt.Errorf("wrapped: %w", fdb.Error{Code: code})
			require.ErrorIs(t, translate(cause), c.read, "code %d", code)
			require.ErrorIs(t, translateCommit(cause), c.onCommit, "code %d", code)
			require.Equal(t, kv.MaybeCommitted(c.onCommit), kv.MaybeCommitted(translateCommit(cause)), "code %d", code)
		}
	}
	require.ErrorIs(t, translateCommit(fdb.Error{Code: 1031}), kv.ErrUnknownResult)
	for _, err := range []error{nil, errors.New("other"), fdb.Error{Code: 1031}, fdb.Error{Code: 9999}} {
		require.Equal(t, err, translate(err))
	}
}

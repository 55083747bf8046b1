package kv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestLocalOfAnAttempt is what each attempt remembers, and forgets for the next.
func TestLocalOfAnAttempt(t *testing.T) {
	t.Parallel()
	type key struct{ name string }
	db := &script{commits: []error{kv.ErrConflict, kv.ErrConflict}}
	retry := kv.Retry{Random: func() float64 { return 0 }}
	result, err := kv.Transact(t.Context(), db, retry, func(tx kv.Attempt) error {
		local := kv.LocalOf(tx)
		require.Nil(t, local.Value(key{"a"}), "attempt %d", tx.Number)
		require.Zero(t, local.NextOrder())
		require.Equal(t, uint16(1), local.NextOrder())
		local.Set(key{"a"}, tx.Number)
		require.Equal(t, tx.Number, kv.LocalOf(tx).Value(key{"a"}))
		require.Nil(t, local.Value(key{"b"}))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, result.Attempts)
	require.Nil(t, kv.LocalOf(db.Begin(kv.Options{})), "no attempt of Transact")
}

package kv_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
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

// TestAFailedAttemptCannotCommit with the first error, or with that of a key that is too large where nothing is
// remembered.
func TestAFailedAttemptCannotCommit(t *testing.T) {
	t.Parallel()
	full, other := errors.New("full"), errors.New("other")
	db := &script{}
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		kv.Fail(tx, full)
		kv.Fail(tx, other)
		require.Equal(t, full, kv.LocalOf(tx).Failed())
		return nil
	})
	require.Equal(t, full, err)
	again := true
	_, err = kv.Transact(t.Context(), db, kv.Retry{Random: func() float64 { return 0 }}, func(tx kv.Attempt) error {
		if again {
			kv.Fail(tx, kv.ErrConflict)
		}
		again = false
		return nil
	})
	require.NoError(t, err, "the next attempt has not failed")

	store := reference.Open(reference.Options{})
	tx := store.Begin(kv.Options{})
	kv.Fail(tx, full)
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrKeyTooLarge)
}

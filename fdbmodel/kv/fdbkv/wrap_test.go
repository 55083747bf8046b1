//go:build fdb

package fdbkv_test

import (
	"errors"
	"testing"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
)

func TestWrapWritesWithTheOwner(t *testing.T) {
	t.Parallel()
	db := open(t)
	set(t, db, key(t, "n"), "\x01")
	_, err := db.Native().Transact(func(tr fdb.Transaction) (any, error) {
		tr.Set(fdb.Key(key(t, "user")), []byte("theirs"))
		tx := fdbkv.Wrap(tr)
		value, err := tx.Get(key(t, "n")).Wait(t.Context())
		if err != nil {
			return nil, err
		}
		tx.Set(key(t, "ours"), append([]byte("ours"), value...))
		tx.Cancel()
		_, err = tx.Commit(t.Context())
		require.ErrorIs(t, err, fdbkv.ErrNotOwner)
		w := tx.Watch(key(t, "n"))
		<-w.Done()
		require.ErrorIs(t, w.Err(), fdbkv.ErrNotOwner)
		return nil, tx.Err()
	})
	require.NoError(t, err)
	require.Equal(t, "theirs", get(t, db, key(t, "user")))
	require.Equal(t, "ours\x01", get(t, db, key(t, "ours")))
}

func TestWrapIsRetriedByTheOwner(t *testing.T) {
	t.Parallel()
	db := open(t)
	attempts := 0
	_, err := db.Native().Transact(func(tr fdb.Transaction) (any, error) {
		attempts++
		tx := fdbkv.Wrap(tr)
		if attempts == 1 {
			tx.SetReadVersion(1)
		}
		_, err := tx.Get(key(t, "a")).Wait(t.Context())
		require.True(t, err == nil || errors.Is(err, kv.ErrTooOld))
		tx.Set(key(t, "a"), []byte("x"))
		return nil, err
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, attempts, 2)
	require.Equal(t, "x", get(t, db, key(t, "a")))
}

func TestWrapTellsMistakes(t *testing.T) {
	t.Parallel()
	_, err := open(t).Native().Transact(func(tr fdb.Transaction) (any, error) {
		tx := fdbkv.Wrap(tr)
		require.NoError(t, tx.Err())
		tx.Set(make([]byte, kv.MaxKeySize+1), nil)
		_, err := tx.Commit(t.Context())
		require.ErrorIs(t, err, kv.ErrKeyTooLarge)
		return nil, tx.Err()
	})
	require.ErrorIs(t, err, kv.ErrKeyTooLarge)
}

package embedded

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func commit(t testing.TB, tx kv.Tx) kv.Committed {
	t.Helper()
	c, err := tx.Commit(context.Background())
	require.NoError(t, err)
	return c
}

func read(t testing.TB, db kv.Database, key string) []byte {
	t.Helper()
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	v, err := tx.Get([]byte(key)).Wait(context.Background())
	require.NoError(t, err)
	return v
}

func write(t testing.TB, db kv.Database, key, value string) kv.Committed {
	t.Helper()
	tx := db.Begin(kv.Options{})
	tx.Set([]byte(key), []byte(value))
	return commit(t, tx)
}

func TestMemoryBasics(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := OpenMemory(Options{})
	defer s.Close()
	first := write(t, s, "a", "1")
	require.Greater(t, first.Version, kv.Version(0))
	require.Equal(t, []byte("1"), read(t, s, "a"))
	require.Nil(t, read(t, s, "b"))

	x, y := s.Begin(kv.Options{}), s.Begin(kv.Options{})
	for _, tx := range []kv.Tx{x, y} {
		_, err := tx.Get([]byte("a")).Wait(ctx)
		require.NoError(t, err)
		tx.Set([]byte("a"), []byte("2"))
	}
	second := commit(t, x)
	require.Greater(t, second.Version, first.Version)
	_, err := y.Commit(ctx)
	require.ErrorIs(t, err, kv.ErrConflict)
	require.NoError(t, kv.TraitsOf(s).WaitConflict(ctx, y))

	old := s.Begin(kv.Options{})
	old.SetReadVersion(first.Version)
	v, err := old.Get([]byte("a")).Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, []byte("1"), v)
	old.Cancel()
	require.NoError(t, s.Close())
	_, err = s.Begin(kv.Options{}).Get([]byte("a")).Wait(ctx)
	require.ErrorIs(t, err, kv.ErrClosed)
}

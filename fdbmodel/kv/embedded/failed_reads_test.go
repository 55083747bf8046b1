package embedded

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// allCold returns a store whose 2,000 rows lie in one table alone.
func allCold(t *testing.T, fs vfs.FS) *Store {
	s := open(t, "store", Options{FS: fs, Inline: true, CheckpointBytes: 1 << 40, Memory: 1})
	fill(t, s, 2000)
	require.NoError(t, s.Checkpoint(context.Background()))
	require.Zero(t, s.index.tree.size)
	return s
}

// rowsFrom reads the keys of a range that begins with a key.
func rowsFrom(tx kv.Reader, key string, o kv.RangeOptions) (keys []string, more bool, err error) {
	page, err := tx.GetRange(kv.Range{Begin: []byte(key), End: []byte{0xff}}, o).Wait(context.Background())
	for _, item := range page.Items {
		keys = append(keys, string(item.Key))
	}
	return keys, page.More, err
}

// damageBlock damages the second block of the only table.
func damageBlock(t *testing.T, s *Store, fs vfs.FS) {
	table := s.index.base.tables[0]
	f, err := fs.OpenReadWrite(table.dir.file(rowsName(table.File)), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 100), tableBlockSize*3/2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestRowsOfADamagedBlockCanBeReplaced by writes that don't read them, with a checkpoint.
func TestRowsOfADamagedBlockCanBeReplaced(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := allCold(t, fs)
	before := s.Stats()
	damageBlock(t, s, fs)
	const cleared, written = "key000200", "key000201"
	for _, key := range []string{cleared, written} {
		tx := s.Begin(kv.Options{})
		_, err := tx.Get([]byte(key)).Wait(t.Context())
		tx.Cancel()
		require.ErrorIs(t, err, kv.ErrCorrupt)
	}
	tx := s.Begin(kv.Options{})
	tx.Clear([]byte(cleared))
	tx.Set([]byte(written), make([]byte, 100))
	commit(t, tx)
	require.NoError(t, s.Checkpoint(t.Context()))
	require.Nil(t, read(t, s, cleared))
	require.Equal(t, make([]byte, 100), read(t, s, written))
	require.Equal(t, before.Keys-1, s.Stats().Keys)
	require.Equal(t, before.Bytes-109, s.Stats().Bytes)
}

// TestReadThatFailsLeavesNoRows to the next read of its transaction, or of one that has its memory after it.
func TestReadThatFailsLeavesNoRows(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := allCold(t, fs)
	damageBlock(t, s, fs)
	tx := s.Begin(kv.Options{})
	defer tx.Cancel()
	_, _, err := rowsFrom(tx, "key000000", kv.RangeOptions{})
	require.ErrorIs(t, err, kv.ErrCorrupt)
	keys, _, err := rowsFrom(tx, "key001998", kv.RangeOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"key001998", "key001999"}, keys)
}

// TestPageOfRowsThatAreNotThereYet goes on to one that is: memory has a row that is newer than the reader, and only
// the tables know that there was none before.
func TestPageOfRowsThatAreNotThereYet(t *testing.T) {
	t.Parallel()
	s := allCold(t, vfs.NewMem())
	old := s.Begin(kv.Options{})
	defer old.Cancel()
	_, err := old.ReadVersion(context.Background())
	require.NoError(t, err)
	write(t, s, "key000010 new", "1")
	s.warmFrom([]byte("key000010"))
	require.False(t, s.index.isCold([]byte("key000010 new")))

	keys, more, err := rowsFrom(old, "key000010 new", kv.RangeOptions{Bytes: 1})
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, []string{"key000011"}, keys)
	keys, more, err = rowsFrom(old, "key000010", kv.RangeOptions{Bytes: 110})
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, []string{"key000010", "key000011"}, keys, "a row that is not there counts nothing")
}

// TestReadsThatMeetTheEndOfTheStore say so: what lies in tables is not gone.
func TestReadsThatMeetTheEndOfTheStore(t *testing.T) {
	t.Parallel()
	s := allCold(t, vfs.NewMem())
	s.index.coldRead = func([]byte) { require.NoError(t, s.Close()) }
	tx := s.Begin(kv.Options{})
	defer tx.Cancel()
	keys, _, err := rowsFrom(tx, "", kv.RangeOptions{})
	require.ErrorIs(t, err, kv.ErrClosed, "%d rows", len(keys))
	_, err = s.index.lookup([]byte("key000000"), s.line.published(), &s.line)
	require.ErrorIs(t, err, kv.ErrClosed)
}

package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// contents returns all rows.
func contents(t testing.TB, db kv.Database) map[string]string {
	t.Helper()
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.Snapshot().GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(context.Background())
	require.NoError(t, err)
	rows := map[string]string{}
	for _, item := range page.Items {
		rows[string(item.Key)] = string(item.Value)
	}
	return rows
}

func TestReopenKeepsEverything(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]bool{"pipeline": false, "inline": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			s := open(t, dir, Options{Inline: inline})
			for i := range 200 {
				tx := s.Begin(kv.Options{NoSync: i%7 == 0})
				tx.Set(fmt.Appendf(nil, "key%d", i), fmt.Appendf(nil, "value%d", i))
				tx.Set(nil, []byte("empty key"))
				if i%5 == 0 {
					tx.ClearRange(kv.Range{Begin: fmt.Appendf(nil, "key%d", i/2), End: fmt.Appendf(nil, "key%d", i/2+2)})
				}
				tx.Atomic(kv.Add, []byte("n"), []byte{1, 0})
				tx.SetVersionstampedKey(append([]byte("s/"), make([]byte, kv.StampSize)...), 2, nil)
				commit(t, tx)
				if i == 100 {
					require.NoError(t, s.Checkpoint(context.Background()))
				}
			}
			want := contents(t, s)
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			require.Equal(t, "\xc8\x00", want["n"])
			require.Equal(t, "empty key", want[""])
			require.Equal(t, want, contents(t, open(t, dir, Options{Inline: inline})))
		})
	}
}

func TestVersionsJumpAtEachOpening(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	last := kv.Version(0)
	for range 3 {
		s := open(t, "store", Options{FS: fs})
		tx := s.Begin(kv.Options{})
		v, err := tx.ReadVersion(context.Background())
		require.NoError(t, err)
		require.GreaterOrEqual(t, v, last+versionJump)
		last = write(t, s, "a", "b").Version
		require.NoError(t, s.Close())
	}
}

func TestOneStoreAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, path := range []string{dir, dir + "/.", link} {
		_, err := Open(context.Background(), path, Options{})
		require.ErrorIs(t, err, kv.ErrStoreInUse)
		require.ErrorContains(t, err, dir)
	}
	require.NoError(t, s.Close())
	require.NoError(t, open(t, dir, Options{}).Close())
}

func TestPathIsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(context.Background(), path, Options{})
	require.ErrorContains(t, err, path+" is not a directory")
}

func TestLoneNoSyncCommitIsPublished(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{Linger: time.Hour})
	tx := s.Begin(kv.Options{NoSync: true})
	tx.Set([]byte("a"), []byte("1"))
	c := commit(t, tx)

	require.Nil(t, read(t, s, "a"))
	own := s.Begin(kv.Options{})
	own.SetReadVersion(c.Version)
	v, err := own.Get([]byte("a")).Wait(context.Background())
	require.NoError(t, err)
	require.Equal(t, []byte("1"), v)
	own.Cancel()

	write(t, s, "b", "2")
	require.Equal(t, []byte("1"), read(t, s, "a"))
}

// TestALingeringCommitDoesNotHoldUpThoseThatConflictWithIt has one linger for ever, unless another
// asks for its sync.
func TestALingeringCommitDoesNotHoldUpThoseThatConflictWithIt(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{Linger: time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	write(t, s, "a", "0")
	late := s.Begin(kv.Options{})
	_, err := late.Get([]byte("a")).Wait(ctx)
	require.NoError(t, err)
	lingering := s.Begin(kv.Options{NoSync: true})
	lingering.Set([]byte("a"), []byte("1"))
	commit(t, lingering)
	late.Set([]byte("a"), []byte("2"))
	_, err = late.Commit(ctx)
	require.ErrorIs(t, err, kv.ErrConflict)
	require.NoError(t, s.waitConflict(ctx, late))
	require.Equal(t, []byte("1"), read(t, s, "a"))
}

// TestSegmentsHaveZerosBehindTheirRecords so that a sync need not make the file
// longer, within the size of a segment.
func TestSegmentsHaveZerosBehindTheirRecords(t *testing.T) {
	t.Parallel()
	const limit = 24 << 10
	mem := vfs.NewMem()
	s := open(t, "store", Options{FS: mem, Inline: true, SegmentSize: limit})
	ahead := 0
	for i := range 100 {
		write(t, s, fmt.Sprint("key", i), string(make([]byte, 100)))
		content := files(t, mem)[lastSegment(files(t, mem))]
		require.LessOrEqual(t, len(content), limit)
		if records := int(s.Stats().LogBytes); len(content) > records {
			require.Equal(t, make([]byte, len(content)-records), content[records:])
			ahead++
		}
	}
	require.Greater(t, ahead, 90)
	require.Equal(t, 1, s.Stats().Segments)
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, "store", Options{FS: mem})))
}

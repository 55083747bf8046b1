package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestSnapshotsOfABusyStore takes snapshots of a store whose files come and go: each one has a beginning of its
// commits.
func TestSnapshotsOfABusyStore(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"warm": {SegmentSize: 4 << 10, CheckpointBytes: 16 << 10},
		"cold": {SegmentSize: 4 << 10, CheckpointBytes: 8 << 10, Memory: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, o)
			const keys = 50
			var acknowledged atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			var writer sync.WaitGroup
			writer.Go(func() {
				for i := int64(1); ctx.Err() == nil; i++ {
					tx := s.Begin(kv.Options{})
					value := fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", int(i%300)))
					tx.Set([]byte("last"), value)
					tx.Set(fmt.Appendf(nil, "key%d", i%keys), value)
					commit(t, tx)
					acknowledged.Store(i)
				}
			})
			for n := 0; n < 25 || s.Stats().Checkpoints < 5; n++ {
				atLeast := acknowledged.Load()
				taken, err := Snapshot(t.Context(), dir, Options{})
				require.NoError(t, err)
				rows := contents(t, taken)
				require.NoError(t, taken.Close())
				last := numberIn(t, rows["last"])
				require.GreaterOrEqual(t, last, atLeast)
				for key := range int64(keys) {
					if newest := last - ((last-key)%keys+keys)%keys; newest > 0 {
						require.Equal(t, newest, numberIn(t, rows[fmt.Sprintf("key%d", key)]))
					}
				}
			}
			stop()
			writer.Wait()
			require.NoError(t, s.Close())
			require.Equal(t, acknowledged.Load(), numberIn(t, contents(t, open(t, dir, o))["last"]))
		})
	}
}

// numberIn is the number that a value begins with, 0 for none.
func numberIn(t *testing.T, value string) int64 {
	text, _, _ := strings.Cut(value, " ")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// TestWhatIsLeftOfSnapshotsIsRemoved: a process that was killed has left one, and another one is in use.
func TestWhatIsLeftOfSnapshotsIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	write(t, s, "a", "1")
	names := func() (names []string) {
		found, err := os.ReadDir(path.Join(dir, snapshotsName))
		require.NoError(t, err)
		for _, entry := range found {
			if entry.Name() != lockName {
				names = append(names, entry.Name())
			}
		}
		return names
	}
	used, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	one := names()
	require.Len(t, one, 1)
	left := directory{fs: privateFS{vfs.Default}, path: path.Join(dir, snapshotsName, "killed"+snapshotSuffix)}
	require.NoError(t, directory{fs: left.fs, path: dir}.copyTo(t.Context(), left, ""))
	another, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	two := names()
	require.Len(t, two, 2)
	require.Subset(t, two, one)
	require.NotContains(t, two, "killed"+snapshotSuffix)
	require.Equal(t, "1", string(read(t, used, "a")))
	require.NoError(t, used.Close())
	require.NoError(t, used.Close())
	require.NoError(t, another.Close())
	require.Empty(t, names())
}

// TestSnapshotsTakeNoRoom: the files of one are those of the store, and opening it writes nothing.
func TestSnapshotsTakeNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	write(t, s, "a", strings.Repeat("x", 10_000))
	require.NoError(t, s.Checkpoint(t.Context()))
	taken, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	for _, table := range s.disk.journal.manifest.Tables {
		own, err := os.Stat(path.Join(dir, rowsName(table.File)))
		require.NoError(t, err)
		linked, err := os.Stat(path.Join(taken.(*Store).disk.journal.dir.path, rowsName(table.File)))
		require.NoError(t, err)
		require.True(t, os.SameFile(own, linked))
	}
	require.False(t, taken.(*Store).disk.journal.doubtful())
	require.NoError(t, taken.Close())
	require.NoError(t, s.Close())
}

// TestFailuresOfSnapshots fails each call of the disk in turn, on one without links: nothing is left, and the store
// goes on.
func TestFailuresOfSnapshots(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New()
	s := open(t, "store", Options{FS: disk, Inline: true, SegmentSize: 4 << 10})
	for i := range 20 {
		write(t, s, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	require.NoError(t, s.Checkpoint(t.Context()))
	write(t, s, "last", "1")
	want := contents(t, s)
	for fails, calls := 1, 0; ; fails++ {
		calls = 0
		disk.Before = func(faultdisk.Call) error {
			if calls++; calls == fails {
				return syscall.EIO
			}
			return nil
		}
		taken, err := Snapshot(t.Context(), "store", Options{FS: disk})
		disk.Before = nil
		if err == nil { // it could do without the call
			require.Equal(t, want, contents(t, taken))
			require.NoError(t, taken.Close())
		} else {
			require.ErrorIs(t, err, syscall.EIO, "call %d", fails)
		}
		for _, name := range disk.Names("store") {
			require.NotContains(t, name, snapshotSuffix, "call %d", fails)
		}
		if calls < fails {
			require.Greater(t, fails, 20)
			break
		}
	}
	write(t, s, "last", "2")
	require.NoError(t, s.Close())
}

// TestSnapshotsOfDamage: a snapshot does not hide that acknowledged commits are missing.
func TestSnapshotsOfDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	write(t, s, "a", "1")
	require.NoError(t, s.Checkpoint(t.Context()))
	write(t, s, "b", "second")
	m := s.disk.journal.manifest.clone()
	fs := privateFS{vfs.Default}
	damage := func(name string, change func() error, want string) {
		file := path.Join(dir, name)
		require.NoError(t, fs.Link(file, file+".aside"))
		require.NoError(t, change())
		_, err := Snapshot(t.Context(), dir, Options{})
		require.ErrorIs(t, err, kv.ErrCorrupt)
		require.ErrorContains(t, err, want)
		require.NoError(t, fs.Rename(file+".aside", file))
	}
	last := segmentName(m.Segments[len(m.Segments)-1].File)
	first := rowsName(m.Tables[0].File)
	damage(first, func() error { return fs.Remove(path.Join(dir, first)) }, ".rows")
	for _, cut := range []string{"", "second"} {
		damage(last, func() error {
			file := path.Join(dir, last)
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			left, _, found := strings.Cut(string(content), cut)
			require.True(t, found)
			return errors.Join(fs.Remove(file), directory{fs: fs, path: dir}.write(last, []byte(left)))
		}, "was synced up to record")
	}
	j := s.disk.journal
	written, err := os.ReadFile(path.Join(dir, markName))
	require.NoError(t, err)
	later := mark{segment: j.manifest.NextFile, known: attestation{seq: j.next}}.encode(j.store)
	require.NoError(t, os.WriteFile(path.Join(dir, markName), later[:], privateMode))
	_, err = Snapshot(t.Context(), dir, Options{})
	require.ErrorIs(t, err, kv.ErrCorrupt)
	require.NoError(t, os.WriteFile(path.Join(dir, markName), written, privateMode))
	taken, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "second"}, contents(t, taken))
	require.NoError(t, taken.Close())
	require.NoError(t, s.Close())
	_, err = Snapshot(t.Context(), t.TempDir(), Options{})
	require.ErrorContains(t, err, "it holds no store")
	_, err = Snapshot(t.Context(), dir, Options{Only: "another"})
	require.ErrorIs(t, err, kv.ErrUnavailable)
}

// TestSnapshotsOfALargeLog leave the rows of the log to a table, and merge none: those of the store are no concern of
// theirs.
func TestSnapshotsOfALargeLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range mergeWidth - 1 {
		write(t, s, fmt.Sprint("table", i), strings.Repeat("x", 1000))
		require.NoError(t, s.Checkpoint(t.Context()))
	}
	write(t, s, "table9", strings.Repeat("x", 2000))
	taken, err := snapshotWithin(t.Context(), dir, Options{}.withDefaults(), 1)
	require.NoError(t, err)
	require.Len(t, taken.disk.journal.manifest.Tables, mergeWidth)
	require.Equal(t, contents(t, s), contents(t, taken))
	write(t, taken, "table9", "lost")
	require.NoError(t, taken.Close())
}

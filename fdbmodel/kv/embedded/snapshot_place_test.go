package embedded

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestSnapshotsOfNothingMakeNothing: what is no store is left as it is.
func TestSnapshotsOfNothingMakeNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := Snapshot(t.Context(), dir, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	_, err = Snapshot(t.Context(), dir, Options{Only: "gone"})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, found)
}

// TestSnapshotsLeaveOtherDirectoriesAlone: somebody may keep copies of the store beside them.
func TestSnapshotsLeaveOtherDirectoriesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	write(t, s, "a", "1")
	kept := filepath.Join(dir, snapshotsName, "20261130")
	require.NoError(t, os.MkdirAll(kept, 0o700))
	taken, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.NoError(t, taken.Close())
	require.DirExists(t, kept)
}

// TestSnapshotsKnowTheirPlace: one is removed although the process has gone to another directory.
func TestSnapshotsKnowTheirPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, open(t, dir, Options{}), "a", "1")
	t.Chdir(filepath.Dir(dir))
	taken, err := Snapshot(t.Context(), filepath.Base(dir), Options{})
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, taken.Close())
	all := filepath.Join(dir, snapshotsName)
	require.NoError(t, filepath.WalkDir(all, func(name string, _ os.DirEntry, _ error) error {
		require.False(t, strings.HasSuffix(name, rowsSuffix) || strings.HasSuffix(name, segmentSuffix), name)
		return nil
	}))
}

// TestASnapshotIsRemovedOnce: what was made after it stays when it is closed again.
func TestASnapshotIsRemovedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	write(t, s, "a", "1")
	first, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.NoError(t, first.Close())
	second, err := Snapshot(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.NoError(t, first.Close())
	manifests, err := filepath.Glob(filepath.Join(dir, snapshotsName, "*", manifestName))
	require.NoError(t, err)
	require.Len(t, manifests, 1)
	require.NoError(t, second.Close())
}

// TestSnapshotsAreMadeOneByOne begins one while another is made, on a file system that locks files alone.
func TestSnapshotsAreMadeOneByOne(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New()
	s := open(t, "store", Options{FS: disk, Inline: true})
	write(t, s, "a", "1")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	begun := false
	disk.Before = func(c faultdisk.Call) error {
		if c.Op == "create" && strings.HasSuffix(c.Path, segmentSuffix) && !begun {
			begun = true
			_, err := Snapshot(over, "store", Options{FS: disk})
			require.ErrorIs(t, err, context.Canceled)
		}
		return nil
	}
	taken, err := Snapshot(t.Context(), "store", Options{FS: disk})
	require.NoError(t, err)
	require.True(t, begun)
	require.Equal(t, map[string]string{"a": "1"}, contents(t, taken))
	require.NoError(t, taken.Close())
}

// TestSnapshotsHaveWhatWasAcknowledged: those of an open store also have what was not synced before.
func TestSnapshotsHaveWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no sync":  {Linger: time.Hour},
		"sync off": {SyncOff: true, SyncInterval: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), o)
			tx := s.Begin(kv.Options{NoSync: true})
			tx.Set([]byte("a"), []byte("1"))
			commit(t, tx)
			taken, err := kv.TraitsOf(s).Snapshot(t.Context())
			require.NoError(t, err)
			require.Equal(t, map[string]string{"a": "1"}, contents(t, taken))
			require.NoError(t, taken.Close())
		})
	}
}

// TestSnapshotsOfAnOpenStoreAreOfNoOther has another store be in its place.
func TestSnapshotsOfAnOpenStoreAreOfNoOther(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, Options{})
	write(t, s, "a", "1")
	other := open(t, dir+".other", Options{})
	write(t, other, "a", "another")
	require.NoError(t, other.Close())
	require.NoError(t, os.Rename(dir, dir+".moved"))
	require.NoError(t, os.Rename(dir+".other", dir))
	_, err := kv.TraitsOf(s).Snapshot(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
}

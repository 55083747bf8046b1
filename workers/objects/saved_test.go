package objects

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// savedFiles returns the files of objects that were saved in a directory.
func savedFiles(t *testing.T, dir string) (files []string) {
	all, err := filepath.Glob(filepath.Join(dir, savedPrefix+"*", "*"))
	require.NoError(t, err)
	for _, one := range all {
		if filepath.Base(one) != savedList {
			files = append(files, one)
		}
	}
	return files
}

// TestSavedObjectsComeBack saves objects, and restores those of one realm: each comes back
// until it is taken, a torn one has another name, and a directory without a list is left.
func TestSavedObjectsComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Memory: 1 << 20})
	contents := [][]byte{[]byte("small"), bytes.Repeat([]byte("large"), 300_000), []byte("another")}
	var all []Saved
	for i, content := range contents {
		ref, err := s.PutBytes(t.Context(), content, PutOptions{})
		require.NoError(t, err)
		all = append(all, Saved{string(rune('a' + i)), ref.Hash.String(), ref.Size})
	}
	all = append(all, Saved{"b again", all[1].Hash, all[1].Size}, Saved{"gone", all[0].Hash[1:] + "0", 1})
	saved, err := s.Save(t.Context(), "realm", all)
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, all[:4], saved)
	require.Len(t, savedFiles(t, dir), 3)
	torn := filepath.Join(filepath.Dir(savedFiles(t, dir)[0]), all[2].Hash)
	require.NoError(t, os.Truncate(torn, 3))
	require.NoError(t, os.Mkdir(filepath.Join(dir, savedPrefix+"under-way"), 0o700))

	next := open(t, Options{Dir: dir, Memory: 8 << 20})
	restore := func(realm string, want func(Saved) bool) (owners []string) {
		require.NoError(t, Restore(dir, realm, func(one Saved, read func() (io.ReadCloser, error)) (bool, error) {
			owners = append(owners, one.Owner)
			if !want(one) {
				return false, nil
			}
			f, err := read()
			require.NoError(t, err)
			defer f.Close()
			ref, err := next.Put(t.Context(), f, PutOptions{Size: one.Size})
			require.NoError(t, err)
			require.Equal(t, one.Owner != "c", ref.Hash.String() == one.Hash, "a torn one has another name")
			return true, nil
		}))
		return owners
	}
	require.Empty(t, restore("another", func(Saved) bool { return true }))
	came := restore("realm", func(one Saved) bool { return one.Owner != "b" })
	require.Equal(t, []string{"a", "b", "c", "b again"}, came)
	require.Len(t, savedFiles(t, dir), 1, "it has an owner that did not take it")
	broken := errors.New("broken")
	require.ErrorIs(t, Restore(dir, "realm", func(Saved, func() (io.ReadCloser, error)) (bool, error) {
		return true, broken
	}), broken)
	require.Len(t, savedFiles(t, dir), 1)
	old := time.Now().Add(-8 * 24 * time.Hour)
	found, err := filepath.Glob(filepath.Join(dir, savedPrefix+"*"))
	require.NoError(t, err)
	for _, one := range found {
		require.NoError(t, os.Chtimes(one, old, old))
	}
	require.Empty(t, restore("another", func(Saved) bool { return true }))
	found, err = filepath.Glob(filepath.Join(dir, savedPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, found)
}

// TestSavedObjectsAreWantedLater has a worker start again after more than a week: what it wants comes back, and stays
// while it has no room for it. What nobody wants is removed.
func TestSavedObjectsAreWantedLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Memory: 1 << 20})
	ref, err := s.PutBytes(t.Context(), []byte("content"), PutOptions{})
	require.NoError(t, err)
	_, err = s.Save(t.Context(), "realm", []Saved{{"a", ref.Hash.String(), ref.Size}, {"b", ref.Hash.String(), ref.Size}})
	require.NoError(t, err)
	restore := func(wants, done bool) (offered int) {
		found, err := filepath.Glob(filepath.Join(dir, savedPrefix+"*"))
		require.NoError(t, err)
		old := time.Now().Add(-8 * 24 * time.Hour)
		for _, one := range found {
			require.NoError(t, os.Chtimes(one, old, old))
		}
		require.NoError(t, Restore(dir, "realm", func(_ Saved, read func() (io.ReadCloser, error)) (bool, error) {
			offered++
			if wants {
				f, err := read()
				require.NoError(t, err)
				require.NoError(t, f.Close())
			}
			return done, nil
		}))
		return offered
	}
	require.Equal(t, 2, restore(true, false))
	require.Len(t, savedFiles(t, dir), 1)
	require.Equal(t, 2, restore(false, false))
	require.Empty(t, savedFiles(t, dir))
	require.Zero(t, restore(true, true))
}

// TestADirectoryThatCantBeReadCostsNoOtherOne has the list of one of two directories damaged.
func TestADirectoryThatCantBeReadCostsNoOtherOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Memory: 1 << 20})
	ref, err := s.PutBytes(t.Context(), []byte("content"), PutOptions{})
	require.NoError(t, err)
	_, err = s.Save(t.Context(), "realm", []Saved{{"a", ref.Hash.String(), ref.Size}})
	require.NoError(t, err)
	for _, name := range []string{"0", "z"} { // before the other one, and behind it
		damaged := filepath.Join(dir, savedPrefix+name)
		require.NoError(t, os.Mkdir(damaged, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(damaged, savedList), []byte("{"), 0o600))
	}
	offered := 0
	require.ErrorContains(t, Restore(dir, "realm", func(Saved, func() (io.ReadCloser, error)) (bool, error) {
		offered++
		return true, nil
	}), "unexpected EOF")
	require.Equal(t, 1, offered)
}

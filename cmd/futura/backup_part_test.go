//go:build unix && !aix && !solaris

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBackupRemovesWhatKilledOnesLeft has, beside the part of a process that was killed, one that is being written,
// and files of other names.
func TestBackupRemovesWhatKilledOnesLeft(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fill()
	name := filepath.Join(t.TempDir(), "backup")
	for _, left := range []string{".part-1", ".part-2", ".part-x", ".part-", "2.part-1"} {
		require.NoError(t, os.WriteFile(name+left, []byte("half"), 0o600))
	}
	require.NoError(t, os.Mkdir(name+".part-3", 0o700))
	require.NoError(t, os.Symlink(name+".part-x", name+".part-4"))
	written, err := os.Open(name + ".part-2")
	require.NoError(t, err)
	t.Cleanup(func() { _ = written.Close() })
	require.NoError(t, lockFile(written))
	s.ok("backup", name)
	require.Equal(t, []string{"backup", "backup.part-", "backup.part-2", "backup.part-3", "backup.part-4", "backup.part-x",
		"backup2.part-1"}, namesIn(t, filepath.Dir(name)))
	require.NoError(t, written.Close())
	s.ok("backup", name, "--force")
	require.NotContains(t, namesIn(t, filepath.Dir(name)), "backup.part-2")
}

func namesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestBackupsOfANameAtOnce has many begin at the same time: none loses its file to another.
func TestBackupsOfANameAtOnce(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 20
	name := filepath.Join(t.TempDir(), "backup")
	parts := make([][]*os.File, writers)
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				f, err := createPart(name)
				if err != nil {
					errs[w] = err
					return
				}
				parts[w] = append(parts[w], f)
				if _, err = fmt.Fprint(f, w); err != nil {
					errs[w] = err
				}
			}
		})
	}
	all.Wait()
	for w := range writers {
		require.NoError(t, errs[w])
		for _, f := range parts[w] {
			content, err := os.ReadFile(f.Name())
			require.NoError(t, err, "it is there")
			require.Equal(t, fmt.Sprint(w), string(content))
		}
	}
	for w := range writers {
		for _, f := range parts[w] {
			require.NoError(t, f.Close())
		}
	}
	last, err := createPart(name)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Base(last.Name())}, namesIn(t, filepath.Dir(name)))
	require.NoError(t, last.Close())
}

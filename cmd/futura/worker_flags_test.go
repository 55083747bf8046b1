package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObjectFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for says, args := range map[string][]string{
		"need --object-memory": {"--object-disk", "5"}, "needs --object-dir": {"--object-disk", "5", "--object-memory", "9"},
		"--object-above -2": {"--object-above", "-2"}, "HOST:PORT": {"--object-memory", "9", "--object-listen", "foo"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"worker"}, args...)...)
		require.Contains(t, e, says)
	}
}

// TestOneGetWritesAFile has a second call for the same unfinished file.
func TestOneGetWritesAFile(t *testing.T) {
	t.Parallel()
	part := filepath.Join(t.TempDir(), "part")
	first, err := openPart(part)
	require.NoError(t, err)
	_, err = openPart(part)
	require.ErrorIs(t, err, errWritten)
	require.NoError(t, os.Rename(part, part+"-whole"))
	second, err := openPart(part)
	require.NoError(t, err, "the first one is done")
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
}

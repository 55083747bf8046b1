package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSourcesBelowALink has the directory be as /usr/lib/go/src of Debian is.
func TestSourcesBelowALink(t *testing.T) {
	t.Parallel()
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "src")
	require.NoError(t, os.MkdirAll(filepath.Join(real, "fmt"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(real, "fmt", "print.go"), []byte("package fmt\n"), 0o600))
	require.NoError(t, os.Symlink(real, link))
	paths, err := Sources(link, 0)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(link, "fmt", "print.go")}, paths)
	_, err = Sources(filepath.Join(link, "missing"), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "missing")
}

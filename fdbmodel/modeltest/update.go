package modeltest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Update is set by -update: tests then write the generated pages and golden
// files instead of only comparing them.
var Update = flag.Bool("update", false, "write the generated pages and golden files")

// RequireGolden compares lines with a file, and writes it with -update.
func RequireGolden(t testing.TB, name string, lines []string) {
	path := filepath.Join("testdata", name)
	text := strings.Join(lines, "\n") + "\n"
	if *Update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "stored data must stay readable: a change needs a new version of the record")
}

package layout_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

const keyspacePage = "../../docs/reference/keyspace.md"

func TestDocsKeyspace(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(keyspacePage)
	require.NoError(t, err)
	want := replaceTable(t, string(page), "keys", layout.KeyTable())
	want = replaceTable(t, want, "fields", layout.FieldTable())
	if *modeltest.Update {
		require.NoError(t, os.WriteFile(keyspacePage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run make generate")
}

// replaceTable puts a generated table between the two comments with its name.
func replaceTable(t *testing.T, page, name, table string) string {
	begin, end := "<!-- "+name+": written by make generate -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	return before + begin + "\n" + table + "\n" + end + after
}

// TestPackageDocHasEveryKey compares the table in the package documentation
// with the table of keys.
func TestPackageDocHasEveryKey(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	short := strings.NewReplacer("255-PRIORITY", "255-PRIO", "CPU_MILLIS", "CPU", "RAM_BYTES", "RAM", "GPU_MILLIS", "GPU",
		"DUE_MS", "DUE", "STAMP", "VS", "PIECE", "I", "SEQUENCE", "N")
	documented := regexp.MustCompile(`(?m)\(s, "[^)]*\)|\("[a-z]+"[^)]*\)`).FindAllString(string(source), -1)
	kinds := layout.Table()
	for i := range kinds {
		require.Contains(t, documented, short.Replace(kinds[i].Shape()))
	}
	require.Len(t, documented, len(kinds)+1, `all but ("futura", CLUSTER)`)
}

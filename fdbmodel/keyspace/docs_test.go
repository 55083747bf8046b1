package keyspace_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

const keyspacePage = "../../docs/reference/keyspace.md"

func TestDocsKeyspace(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(keyspacePage)
	require.NoError(t, err)
	want := replaceTable(t, string(page), "keys", keyTable())
	want = replaceTable(t, want, "fields", fieldTable())
	want = replaceTable(t, want, "places", placeTable())
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

// TestDocsPackage compares the table in the package documentation with the table
// of keys.
func TestDocsPackage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var table strings.Builder
	kinds := keyspace.Table().Kinds()
	for i := range kinds {
		fmt.Fprintf(&table, "//\t%-12s  %s\n", kinds[i].Name, kinds[i].Shape())
	}
	documented := regexp.MustCompile(`(//\t.*\n)+`)
	want := documented.ReplaceAllLiteralString(string(source), table.String())
	if *modeltest.Update {
		require.NoError(t, os.WriteFile("doc.go", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(source), "run make generate")
	require.Contains(t, want, table.String())
}

// placeTable returns the table of places as Markdown.
func placeTable() string {
	var b strings.Builder
	b.WriteString("| place | a future waits there until |\n| --- | --- |\n")
	for _, place := range layout.Places() {
		fmt.Fprintf(&b, "| %s | %s |\n", place.Kind, place.Until)
	}
	return b.String()
}

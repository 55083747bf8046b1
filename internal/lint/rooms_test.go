package lint

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated parts of pages")

// TestDocsRooms holds the drawing of the packages to the import table.
func TestDocsRooms(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- rooms: written by make generate -->\n", "<!-- end of rooms -->\n"
	path := filepath.Join("..", "..", "docs", "internals", "architecture.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + "\n" + drawRooms(importTable()) + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.True(t, want == string(page), "%s is stale: run make generate", path) // not Equal, which prints both pages
}

// drawRooms draws the packages that are not for tests or internal, without the
// arrows that follow from others.
func drawRooms(table map[string]imports) string {
	drawn := map[string][]string{}
	for name, allowed := range table {
		if isDrawn(name) {
			for _, other := range allowed.ours {
				if _, known := table[other]; known && isDrawn(other) && other != name {
					drawn[name] = append(drawn[name], other)
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\ngraph TD\n")
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		others := slices.Compact(slices.Sorted(slices.Values(drawn[name])))
		for _, other := range others {
			if !slices.ContainsFunc(others, func(by string) bool { return by != other && reaches(drawn, by, other) }) {
				fmt.Fprintf(&b, "  %s --> %s\n", node(name), node(other))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func isDrawn(name string) bool {
	return !slices.Contains(forTests(), name) && !strings.HasPrefix(name, "internal/") &&
		!strings.HasPrefix(name, "examples") && !strings.HasSuffix(name, "/...") && !strings.Contains(name, "/internal/") &&
		name != "workers/wasm/wasmbench" && name != "cmd/futura-bench"
}

func node(name string) string {
	if name == "." {
		return "root[the root package]"
	}
	return strings.ReplaceAll(name, "/", "_") + "[" + name + "]"
}

func reaches(drawn map[string][]string, from, to string) bool {
	return slices.ContainsFunc(drawn[from], func(next string) bool { return next == to || reaches(drawn, next, to) })
}

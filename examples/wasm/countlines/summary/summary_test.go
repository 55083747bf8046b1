package summary_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
)

func TestSummaryOfSource(t *testing.T) {
	t.Parallel()
	source := strings.Join([]string{
		"package main // begins",
		"",
		"// a comment",
		"/* block",
		"",
		"func inComment() */",
		"func main() { // code and comment",
		"\tx := \"// no comment\" /* tail */",
		"\ty := '\\'' + `raw",
		"func inRaw()",
		"",
		"// no comment`",
		"\t/* whole line */",
		"}",
		"func (r *T) m() {}",
	}, "\n")
	got := summary.Of([]byte(source))
	require.Equal(t, 15, got.Lines)
	require.Equal(t, 2, got.Blank, "the line in the raw string is not blank")
	require.Equal(t, 4, got.Comments)
	require.Equal(t, 2, got.Functions)
	require.Equal(t, len(source), got.Bytes)
	require.Equal(t, len(strings.Fields(source)), got.Words)
	require.Len(t, got.SHA256, 64)
}

func TestSummaryOfItsOwnSource(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("summary.go")
	require.NoError(t, err)
	got := summary.Of(source)
	require.Equal(t, strings.Count(string(source), "\n"), got.Lines)
	require.Equal(t, strings.Count(string(source), "\nfunc "), got.Functions)
	require.Equal(t, 1+strings.Count(string(source), "\n//")+strings.Count(string(source), "\n\t//"), got.Comments)
}

func TestJSONIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := summary.Of(rapid.SliceOf(rapid.SampledFrom([]byte("a \n\t/*`'\"\\func("))).Draw(t, "source"))
		require.LessOrEqual(t, want.Blank+want.Comments, want.Lines)
		var got summary.Summary
		require.NoError(t, json.Unmarshal(want.JSON(), &got))
		require.Equal(t, want, got)
		require.NotContains(t, string(want.JSON()), "\n")
	})
}

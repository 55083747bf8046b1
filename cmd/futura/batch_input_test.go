package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesOfArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		named, file, content, format string
		want                         [][]string
	}{
		{"", "a.csv", "a,b\n\"c d\"\n", formatCSV, [][]string{{"a", "b"}, {"c d"}}},
		{"", "a.NDJSON", "[\"a\",\"b\"]\n\n\"c d\"\n[]\n", formatNDJSON, [][]string{{"a", "b"}, {"c d"}, {}}},
		{"", "-", "[\"a\"]\n", formatNDJSON, [][]string{{"a"}}},
		{"", "-", "http://a,1\n", formatCSV, [][]string{{"http://a", "1"}}},
		{"ndjson", "a.csv", "\"a\"", formatNDJSON, [][]string{{"a"}}},
	} {
		format, err := formatOf(c.named, c.file, []byte(c.content))
		require.NoError(t, err)
		require.Equal(t, c.format, format, c.content)
		got, err := readArguments(format, []byte(c.content))
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	format, err := formatOf("", "-", []byte(` {"template":{}}`))
	require.NoError(t, err)
	require.Equal(t, formatJSON, format)
	_, err = formatOf("xml", "a", nil)
	require.ErrorAs(t, err, &usageError{})
	long := `"` + strings.Repeat("x", maxArgumentLine) + `"`
	for _, wrong := range []string{"7", `["a",1]`, `{"a":1}`, `[["a"]]`, long} {
		_, err := readArguments(formatNDJSON, []byte(wrong))
		require.ErrorAs(t, err, &usageError{})
	}
	_, err = readArguments(formatCSV, []byte(`"a`))
	require.ErrorAs(t, err, &usageError{})
}

func FuzzArguments(f *testing.F) {
	f.Add(true, []byte("a,\"b\nc\"\n"))
	f.Add(false, []byte("[\"a\"]\n\"b\"\nnull\n"))
	f.Fuzz(func(t *testing.T, asCSV bool, content []byte) {
		format := formatNDJSON
		if asCSV {
			format = formatCSV
		}
		lists, err := readArguments(format, content)
		if err != nil {
			require.ErrorAs(t, err, &usageError{})
			return
		}
		_, err = json.Marshal(lists)
		require.NoError(t, err)
	})
}

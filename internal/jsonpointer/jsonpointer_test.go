package jsonpointer_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/jsonpointer"
)

// TestText follows pointers, and refuses what has no single spelling.
func TestText(t *testing.T) {
	t.Parallel()
	const document = `{"a":"x","n":12,"f":1.0,"e":1e2,"b":true,"z":null,"o":{"p":[{"q":"deep"},"second"],"":"empty"},` +
		`"s/l":"slash","t~":"tilde","d":"first","d":"last","big":123456789012345678901234567890}`
	for pointer, want := range map[string]string{
		"/a": "x", "/n": "12", "/b": "true", "/o/p/0/q": "deep", "/o/p/1": "second", "/o/": "empty", "/s~1l": "slash",
		"/t~0": "tilde", "/d": "last", "/big": "123456789012345678901234567890",
	} {
		got, err := jsonpointer.Text([]byte(document), pointer)
		require.NoError(t, err, pointer)
		require.Equal(t, want, got, pointer)
	}
	for _, pointer := range []string{
		"", "a", "/f", "/e", "/z", "/o", "/o/p", "/none", "/a/b", "/o/p/01", "/o/p/-", "/~2",
	} {
		_, err := jsonpointer.Text([]byte(document), pointer)
		require.Error(t, err, pointer)
	}
	for _, broken := range []string{"", `{"a":`, `{"a":"x"} x`, `x`} {
		_, err := jsonpointer.Text([]byte(broken), "/a")
		require.Error(t, err, broken)
	}
	deep := `{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"a":"after"}`
	got, err := jsonpointer.Text([]byte(deep), "/a")
	require.NoError(t, err)
	require.Equal(t, "after", got)
}

// FuzzText compares with a decoder that holds the whole value.
func FuzzText(f *testing.F) {
	f.Add([]byte(`{"a":{"b":["x",2]}}`), "/a/b/1")
	f.Add([]byte(`{"a":1,"a":{"a":true}}`), "/a/a")
	f.Fuzz(func(t *testing.T, document []byte, pointer string) {
		got, err := jsonpointer.Text(document, pointer)
		if err != nil {
			return
		}
		require.NoError(t, jsonpointer.Check(pointer))
		var whole any
		d := json.NewDecoder(strings.NewReader(string(document)))
		d.UseNumber()
		require.NoError(t, d.Decode(&whole))
		for _, step := range strings.Split(pointer, "/")[1:] {
			step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
			switch v := whole.(type) {
			case map[string]any:
				whole = v[step]
			case []any:
				at, err := strconv.Atoi(step)
				require.NoError(t, err)
				whole = v[at]
			default:
				require.Fail(t, "it leads nowhere")
			}
		}
		require.Equal(t, fmt.Sprint(whole), got)
	})
}

package layout_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestPointedText follows pointers, and refuses what has no single spelling.
func TestPointedText(t *testing.T) {
	t.Parallel()
	const document = `{"a":"x","n":12,"f":1.0,"e":1e2,"b":true,"z":null,"o":{"p":[{"q":"deep"},"second"],"":"empty"},` +
		`"s/l":"slash","t~":"tilde","d":"first","d":"last","big":123456789012345678901234567890}`
	for pointer, want := range map[string]string{
		"/a": "x", "/n": "12", "/b": "true", "/o/p/0/q": "deep", "/o/p/1": "second", "/o/": "empty", "/s~1l": "slash",
		"/t~0": "tilde", "/d": "last", "/big": "123456789012345678901234567890",
	} {
		got, err := layout.PointedText([]byte(document), pointer)
		require.NoError(t, err, pointer)
		require.Equal(t, want, got, pointer)
	}
	for _, pointer := range []string{
		"", "a", "/f", "/e", "/z", "/o", "/o/p", "/none", "/a/b", "/o/p/01", "/o/p/-", "/~2",
	} {
		_, err := layout.PointedText([]byte(document), pointer)
		require.ErrorIs(t, err, layout.ErrBadSpec, pointer)
	}
	for _, broken := range []string{"", `{"a":`, `{"a":"x"} x`, `x`} {
		_, err := layout.PointedText([]byte(broken), "/a")
		require.ErrorIs(t, err, layout.ErrBadSpec, broken)
	}
	deep := `{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"a":"after"}`
	got, err := layout.PointedText([]byte(deep), "/a")
	require.NoError(t, err)
	require.Equal(t, "after", got)
}

// FuzzPointedText compares with a decoder that holds the whole value.
func FuzzPointedText(f *testing.F) {
	f.Add([]byte(`{"a":{"b":["x",2]}}`), "/a/b/1")
	f.Add([]byte(`{"a":1,"a":{"a":true}}`), "/a/a")
	f.Fuzz(func(t *testing.T, document []byte, pointer string) {
		got, err := layout.PointedText(document, pointer)
		if err != nil {
			require.ErrorIs(t, err, layout.ErrBadSpec)
			return
		}
		require.NoError(t, layout.CheckPointer(pointer))
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

package console

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScreenShowsAndObeysNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\n":            "plain\ttext\n",
		"ünï – 日本 🎉":               "ünï – 日本 🎉",
		"\x1b[2J\x1b]0;title\x07a": " [2J ]0;title a",
		"over\rwritten\b":          "over written ",
		"\u009b31m":                " 31m",
		"\x9b31m":                  "�31m",
		"\u202egnp.exe":            " gnp.exe",
		"":                         "",
	} {
		for step := 1; step <= 4; step++ {
			var shown bytes.Buffer
			s := &screen{to: &shown}
			for at := 0; at < len(text); at += step {
				n, err := s.Write([]byte(text[at:min(at+step, len(text))]))
				require.NoError(t, err)
				require.Equal(t, min(step, len(text)-at), n)
			}
			require.Equal(t, want, shown.String(), "%q by %d", text, step)
		}
	}
	var plain bytes.Buffer
	require.Same(t, &plain, Guard(&plain), "what is no terminal gets what it is given")
}

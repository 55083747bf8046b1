package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastLine(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"": "", " \n\n": "", "one": "one", "one\ntwo\n\n": "two", "a\x1b[31mred\tb\n": "a [31mred b", "\xff\n": "�",
		strings.Repeat("é", 100): strings.Repeat("é", 80) + "…",
	} {
		require.Equal(t, want, lastLine([]byte(stream)))
	}
}

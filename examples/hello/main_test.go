package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHello runs the program as it stands in the README, in an empty directory.
func TestHello(t *testing.T) {
	t.Chdir(t.TempDir())
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "hello world <nil>\n", string(text))
	require.DirExists(t, "data")
}

// TestHelloIsShort holds the first program to 25 lines.
func TestHelloIsShort(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(source, []byte("\n")), 25)
}

//go:build fdb

package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMistakesWithFoundationDB names clusters that can't be used. Each command
// says why, in seconds.
func TestMistakesWithFoundationDB(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	for _, c := range []struct{ file, want string }{
		{filepath.Join(dir, "missing"), "no cluster file"},
		{dir, "is a directory"},
		{write("empty", ""), "0 lines"},
		{write("malformed", "127.0.0.1:4500\n"), "DESCRIPTION:ID@HOST:PORT"},
		{write("silent", "futura:silent@"+listener.Addr().String()+"\n"), "no answer from the cluster"},
	} {
		for _, args := range [][]string{{"check"}, {"submit", "go:x"}, {"worker"}, {"backup", filepath.Join(dir, "to")}} {
			t.Run(filepath.Base(c.file)+" "+args[0], func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				_, message := (&shell{t, "fdb:" + c.file}).run(exitStore, "", args...)
				require.Contains(t, message, c.want)
				require.Contains(t, message, c.file)
				require.Less(t, time.Since(start), time.Minute)
			})
		}
	}
}

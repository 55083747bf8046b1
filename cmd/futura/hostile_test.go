package main

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostileWorkingDirectory runs commands in a directory that came from
// somebody else: nothing in it is run, followed or sent away.
func TestHostileWorkingDirectory(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.store = "" // the default: the directory below the working directory
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "secret"), []byte("a secret of this user's\n"), 0o600))
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, stranger.Close()) }()
	met := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			met <- struct{}{}
			_ = conn.Close()
		}
	}()

	// Settings that lead to a stranger.
	at := "remote:tcp:" + stranger.Addr().String()
	settings := filepath.Join(c.dir, configFile)
	require.NoError(t, os.WriteFile(settings, []byte("store: \""+at+"?token-file=secret&tls=off\"\n"), 0o600))
	for _, command := range [][]string{{"list"}, {"dev"}, {"submit", "go:f"}, {"batch", "list"}} {
		_, e := c.run(exitUsage, "", command...)
		require.Contains(t, e, "store may not be set by a file that merely lies in the working directory")
	}
	require.NoError(t, os.Remove(settings))

	// Compiled code in the place where it was once kept is neither read nor changed.
	c.put("good", copying())
	planted := filepath.Join(c.dir, ".futura", "modules", "planted")
	require.NoError(t, os.MkdirAll(filepath.Dir(planted), 0o700))
	require.NoError(t, os.WriteFile(planted, []byte("machine code"), 0o600))
	out, _ := c.run(exitOK, "", "submit", "wasm:good", "--args", "given", "--wait")
	require.Equal(t, "given", out)
	left, err := os.ReadDir(filepath.Dir(planted))
	require.NoError(t, err)
	require.Len(t, left, 1)

	// An endpoint that leads to a stranger.
	require.NoError(t, (&endpoint{URL: "http://203.0.113.7", Store: at, PID: 1}).write(filepath.Join(c.dir, ".futura")))
	_, e := c.run(exitUsage, "a\n", "batch", "submit", "--function", "f", "--file", "-")
	require.Contains(t, e, "is on another machine")
	c.ok("list")

	// A store that others can change.
	require.NoError(t, os.Chmod(filepath.Join(c.dir, ".futura"), 0o777))
	_, e = c.run(exitStore, "", "list")
	require.Contains(t, e, "chmod go-w")
	require.Empty(t, met, "nobody was called")
}

// TestTokensAreNotPrinted starts a server whose store has no directory.
func TestTokensAreNotPrinted(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.store = "memory:"
	cmd := c.command("dev", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, configurationVariable+"="+c.dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	printed := ""
	for lines := bufio.NewScanner(out); !strings.Contains(printed, "Try, in another") && lines.Scan(); {
		printed += lines.Text() + "\n"
	}
	path := filepath.Join(c.dir, "futura", "token")
	require.Contains(t, printed, "in "+path)
	token, err := readToken(path)
	require.NoError(t, err)
	require.NotContains(t, printed, token)
}

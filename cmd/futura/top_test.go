//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// screenOf is the command in a terminal of its own.
type screenOf struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File
	all bytes.Buffer
}

func (c *terminal) screen(env string, args ...string) *screenOf {
	s := &screenOf{t: c.t, cmd: c.command(args...)}
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm-256color", env)
	var err error
	s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.tty.Close() })
	return s
}

// until reads what is drawn until it has a text, and returns it.
func (s *screenOf) until(text string) string {
	s.t.Helper()
	from, part := s.all.Len(), make([]byte, 4096)
	watch := time.AfterFunc(30*time.Second, func() { _ = s.cmd.Process.Kill() }) // its terminal ends then
	defer watch.Stop()
	for !bytes.Contains(s.all.Bytes()[from:], []byte(text)) {
		n, err := s.tty.Read(part)
		s.all.Write(part[:n])
		require.NoError(s.t, err, "%q is not in %q", text, s.all.Bytes()[from:])
	}
	return string(s.all.Bytes()[from:])
}

func (s *screenOf) press(keys string) {
	s.t.Helper()
	_, err := s.tty.WriteString(keys)
	require.NoError(s.t, err)
}

// end reads until the terminal is left as it was, and requires 0.
func (s *screenOf) end() {
	s.t.Helper()
	s.until("\x1b[?1049l")
	require.NoError(s.t, s.cmd.Wait(), "%q", &s.all)
}

var coloured = regexp.MustCompile(`\x1b\[[0-9;]*\b(3[1-7]|9[1-7])[;m]`)

func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.dev()
	id := c.ok("submit", "go:missing")
	c.ok("cancel", id, "--reason", "\x1b]0;owned\x07")
	c.ok("submit", "go:missing")
	s := c.screen("NO_COLOR=", "top", "--every", "100ms")
	require.Contains(t, s.until("owned"), "wrong")
	require.Regexp(t, coloured, s.all.String())
	s.press("2")
	s.until("HEARTBEAT")
	s.press("3")
	s.until("nothing")
	s.press("4")
	s.until(id[len(id)-12:])
	s.press("\r")
	s.until("no_function")
	s.press("\x1b")
	s.until("STATE")
	s.press("j\r")
	s.until("Retry")
	s.press("\x1b")
	s.until("STATE")
	s.press("/nothing like it\r")
	s.until("ends")
	s.press("1")
	s.until("wrong")
	require.NoError(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 12, Cols: 40}))
	s.until("wrong")
	s.press("q")
	s.end()
	require.NotContains(t, s.all.String(), "\x1b]0;")
	require.NotContains(t, s.all.String(), "\x07")

	s = c.screen("NO_COLOR=1", "top")
	s.until("owned")
	s.press("\x03")
	s.end()
	require.NotRegexp(t, coloured, s.all.String())
	s = c.screen("NO_COLOR=1", "top")
	s.until("wrong")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.end()
}

// TestTopOutlivesItsStore kills the process that serves the store, and starts another one.
func TestTopOutlivesItsStore(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	kill := c.dev()
	c.ok("submit", "go:missing")
	watch := *c
	watch.store = "remote:unix:" + strings.TrimPrefix(c.store, "embedded:") + "/store.sock"
	s := watch.screen("NO_COLOR=1", "top", "--every", "100ms")
	s.until("wrong")
	kill()
	s.until("error")
	s.press("2")
	s.until("HEARTBEAT")
	s.press("1")
	c.dev("--name", "another")
	s.press("2")
	s.until("another")
	s.press("q")
	s.end()
}

func TestTopWithoutATerminal(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.run(exitNotFound, "", "top", "--once")
	c.ok("submit", "go:missing")
	out, _ := c.run(exitOK, "", "top", "--once")
	require.Contains(t, out, "[bad] 1 waiting future, and no worker is alive\n")
	require.True(t, strings.HasSuffix(out, "\n\n"))
	for _, args := range [][]string{{"--every", "1ms"}, {"more"}} {
		c.run(exitUsage, "", append([]string{"top"}, args...)...)
	}
	var once map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.ok("top", "--json", "--once")), &once))
	require.Len(t, once["wrong"], 1)

	for _, dumb := range []bool{false, true} {
		cmd := c.command("top", "--every", "100ms", "--json")
		log := &stacktest.Buffer{}
		cmd.Stderr = log
		if dumb {
			cmd.Args = cmd.Args[:len(cmd.Args)-1]
			cmd.Env = append(cmd.Env, "TERM=dumb")
			s := &screenOf{t: t, cmd: cmd}
			var err error
			s.tty, err = pty.Start(cmd)
			require.NoError(t, err)
			s.until("[bad]")
			require.NotContains(t, s.until("[bad]"), "\x1b")
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.NoError(t, cmd.Wait())
			_ = s.tty.Close()
			continue
		}
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		documents := json.NewDecoder(pipe)
		for range 3 {
			var s struct {
				Cluster string
				Total   struct{ Ready int }
			}
			require.NoError(t, documents.Decode(&s), "%s", log)
			require.Equal(t, "default", s.Cluster)
			require.Equal(t, 1, s.Total.Ready)
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", log)
	}
}

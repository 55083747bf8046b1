package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stalling passes on what a client and a served store say, until the store has
// said a number of bytes: then it holds back the rest, as long as the store lives.
type stalling struct {
	path, server string
	after        int64
	stalled      chan struct{} // closed when it holds back
	once         sync.Once
}

func newStalling(t *testing.T, dir, server string, after int64) *stalling {
	p := &stalling{filepath.Join(dir, "s"), server, after, make(chan struct{}), sync.Once{}}
	l, err := net.Listen("unix", p.path)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.forward(client) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return p
}

func (p *stalling) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	if _, err := io.CopyN(client, server, p.after); err != nil {
		return
	}
	held, err := server.Read(make([]byte, 1))
	if held == 0 {
		return
	}
	p.once.Do(func() { close(p.stalled) })
	_, _ = io.Copy(io.Discard, server) // until the store is gone
}

// interrupted is a command in whose middle the process that serves the store dies.
type interrupted struct {
	args  []string
	after int64
	cmd   *exec.Cmd
	door  *stalling
	said  bytes.Buffer
	ended chan error
}

// Bytes that a store has said in the middle of a command: when it opens, when it
// reads, and when it reads everything.
const openingBytes, readingBytes, copyingBytes = 60, 3_000, 20_000

// interruptedCommands are all that go through a served store.
func interruptedCommands(dir, waits string) []*interrupted {
	var all []*interrupted
	for _, line := range []string{
		"submit go:nobody", "submit go:nobody --wait", "await " + waits, "get " + waits, "list", "explain " + waits,
		"cancel " + waits, "cancel --queue other", "retry --failed", "delete --state failed", "delete " + waits, "workers",
		"function list", "function put MODULE --alias again", "cluster show", "cluster set --retention 48h",
		"inspect ready", "check", "backup BACKUP",
		"restore RESTORED --cluster other", "migrate --live --from STORE --to embedded:DIR/migrated",
	} {
		words := strings.Fields(strings.NewReplacer("BACKUP", filepath.Join(dir, "backup"), "DIR", dir,
			"RESTORED", filepath.Join(dir, "whole"), "MODULE", filepath.Join(dir, "copy.wasm")).Replace(line))
		after := int64(openingBytes)
		switch words[0] {
		case "inspect", "list":
			after = readingBytes
		case "check", "backup", "migrate":
			after = copyingBytes
		}
		all = append(all, &interrupted{args: words, after: after, ended: make(chan error, 1)})
	}
	return all
}

// TestCommandsEndWithTheirServer kills the process that serves the store in the
// middle of each command: all of them end, say why, and leave no parts of files.
func TestCommandsEndWithTheirServer(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "copy.wasm"), copying(), 0o600))
	waits := c.ok("submit", "go:nobody")
	c.ok("backup", filepath.Join(c.dir, "whole"))
	kill := c.dev()
	e, err := readEndpoint(strings.TrimPrefix(c.store, "embedded:"))
	require.NoError(t, err)
	one := `{"function":"go:nobody","args":"` + strings.Repeat("x", 1000) + `"}`
	for range 2 {
		status, text := ask(t, &e, "POST", "/api/v1/futures:submit", e.Token,
			`{"futures":[`+one+strings.Repeat(","+one, 99)+`]}`)
		require.Equal(t, http.StatusCreated, status, text)
	}
	all := interruptedCommands(c.dir, waits)
	socket := strings.TrimPrefix(e.Store, "remote:unix:")
	for _, i := range all {
		dir, err := os.MkdirTemp("", "futura-death-") // short enough for a socket
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		i.door = newStalling(t, dir, socket, i.after)
		c.interrupt(i)
	}
	t.Cleanup(kill) // the doors end with it
	for _, i := range all {
		select {
		case <-i.door.stalled:
		case err := <-i.ended:
			require.Fail(t, "it ended before", "%v: %v: %s", i.args, err, &i.said)
		case <-time.After(time.Minute):
			require.Fail(t, "it asks for nothing", "%v: %s", i.args, &i.said)
		}
	}
	kill()
	for _, i := range all {
		select {
		case err := <-i.ended:
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%v: %v: %s", i.args, err, &i.said)
			require.Equal(t, exitStore, exit.ExitCode(), "%v: %s", i.args, &i.said)
			require.Contains(t, i.said.String(), "is the serving process running", "%v", i.args)
		case <-time.After(time.Minute):
			_ = i.cmd.Process.Signal(syscall.SIGQUIT)
			<-i.ended
			require.Fail(t, "it hangs", "%v: %s", i.args, &i.said)
		}
	}
	parts, err := filepath.Glob(filepath.Join(c.dir, "*part*"))
	require.NoError(t, err)
	require.Empty(t, parts)
	require.NoFileExists(t, filepath.Join(c.dir, "backup"))
	require.Contains(t, c.ok("check"), " 0 problems")
}

// interrupt starts a command that reaches the store through a door that stalls.
func (c *terminal) interrupt(i *interrupted) {
	store := "remote:unix:" + i.door.path
	for n, word := range i.args {
		if word == "STORE" {
			i.args[n] = store
		}
	}
	i.cmd = c.command(i.args...)
	i.cmd.Env = append(i.cmd.Env, "FUTURA_STORE="+store, "FUTURA_GIVE_UP_AFTER=300ms")
	i.cmd.Stdin, i.cmd.Stdout, i.cmd.Stderr = strings.NewReader(""), io.Discard, &i.said
	require.NoError(c.t, i.cmd.Start())
	go func() { i.ended <- i.cmd.Wait() }()
}

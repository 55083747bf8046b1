package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// TestStopsAreNoInterruptions has what runs until a signal stops it end as it was asked to, and other commands in
// the middle of what they do.
func TestStopsAreNoInterruptions(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx          context.Context
		err          error
		until, other int
		says         string // of what runs until it is stopped
	}{
		{stopped, nil, exitOK, exitOK, ""},
		{stopped, context.Canceled, exitOK, exitInterrupted, ""},
		{stopped, fmt.Errorf("opening: %w", context.Canceled), exitOK, exitInterrupted, ""},
		{stopped, fmt.Errorf("%w: it can't leave", kv.ErrUnavailable), exitStore, exitInterrupted, "can't leave"},
		{stopped, usageError{errors.New("no")}, exitUsage, exitInterrupted, "no"},
		{t.Context(), context.Canceled, exitStore, exitStore, "canceled"},
	} {
		var said strings.Builder
		require.Equal(t, c.until, (&app{untilStopped: true}).end(c.ctx, c.err, &said), c.err)
		require.Contains(t, said.String(), c.says)
		require.Equal(t, c.says == "", said.Len() == 0, "%s", &said)
		require.Equal(t, c.other, (&app{}).end(c.ctx, c.err, io.Discard), c.err)
	}
}

// TestWhatIsStoppedAtItsStart opens a store that does not answer.
func TestWhatIsStoppedAtItsStart(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"worker", "dev --listen 127.0.0.1:0", "head --open --rest-api 127.0.0.1:0"} {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			if conn, err := silent.Accept(); err == nil {
				stop()
				<-ctx.Done()
				_ = conn.Close()
			}
		}()
		token := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef"), 0o600))
		log := &stacktest.Buffer{}
		args := append(strings.Fields(command), "--store", "remote:tcp:"+silent.Addr().String()+"?token-file="+token)
		require.Equal(t, exitOK, run(ctx, args, strings.NewReader(""), io.Discard, log), "%s: %s", command, log)
		stop()
		require.NoError(t, silent.Close())
	}
}

// TestWorkerStopsAtHangup closes the terminal of a worker, and of one that is told to survive that.
func TestWorkerStopsAtHangup(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		if !ignored && signal.Ignored(syscall.SIGHUP) {
			t.Log("SKIP: the tests run under nohup, so every process that they start survives a hangup")
			continue
		}
		c := newTerminal(t)
		cmd := c.command("worker", "--json")
		if ignored {
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)
		}
		log := &stacktest.Buffer{}
		cmd.Stderr = log
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		require.NoError(t, json.NewDecoder(out).Decode(&map[string]any{}), "%s", log)
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		if ignored {
			c.ok("list") // it goes on, and serves the store
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
		require.NoError(t, cmd.Wait(), "%s", log)
		require.Contains(t, c.ok("workers"), "WORKER")
		require.Equal(t, 1, strings.Count(c.ok("workers"), "\n")+1, "it has left")
	}
}

// TestWorkerIsStoppedWhileItsStoreIsAway takes as long as a worker gives its store to answer.
func TestWorkerIsStoppedWhileItsStoreIsAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for 13 s")
	}
	s := newShell(t)
	e, _, stopStore := startDev(t, "--store", s.store)
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	log, code := &stacktest.Buffer{}, make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"worker", "--json", "--store", e.Store}, strings.NewReader(""), out, log)
	}()
	require.NoError(t, json.NewDecoder(in).Decode(&map[string]any{}), "%s", log)
	require.Zero(t, stopStore())
	stop()
	require.Equal(t, exitStore, <-code, "%s", log)
	require.Contains(t, log.String(), "ends without leaving")
}

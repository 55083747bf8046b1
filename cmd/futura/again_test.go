package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutting is a listener whose first connections are reset when their first bytes have
// come.
type cutting struct {
	net.Listener
	cuts atomic.Int32 // that are left
}

// Accept implements net.Listener.
func (c *cutting) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || c.cuts.Add(-1) < 0 {
			return conn, err
		}
		_, _ = conn.Read(make([]byte, 1))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // so that closing resets
		}
		_ = conn.Close()
	}
}

// TestCommandsSurviveACutConnection has a head whose first connections are reset: what
// reads and what has a key is sent once more, anything else is not.
func TestCommandsSurviveACutConnection(t *testing.T) {
	t.Parallel()
	const id = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	file := filepath.Join(t.TempDir(), "arguments.csv")
	require.NoError(t, os.WriteFile(file, []byte("a\n"), 0o600))
	for name, c := range map[string]struct {
		args      []string
		cuts      int32
		code, got int
	}{
		"list":            {[]string{"batch", "list"}, 1, exitOK, 1},
		"list, cut twice": {[]string{"batch", "list"}, 2, exitStore, 0},
		"submit":          {[]string{"batch", "submit", "--function", "f", "--file", file, "--key", "k"}, 1, exitOK, 1},
		"result":          {[]string{"batch", "result", id, "--json"}, 1, exitOK, 1},
		"cancel":          {[]string{"batch", "cancel", id}, 1, exitStore, 0},
		"retry":           {[]string{"batch", "retry", id}, 1, exitStore, 0},
		"delete":          {[]string{"batch", "delete", id}, 1, exitStore, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				got.Add(1)
				_, _ = w.Write([]byte(`{"batches": [], "request_id": "` + id + `"}`))
			}))
			cut := &cutting{Listener: server.Listener}
			cut.cuts.Store(c.cuts)
			server.Listener = cut
			server.Start()
			defer server.Close()
			var out, errs strings.Builder
			code := run(t.Context(), append(c.args, "--url", server.URL), strings.NewReader(""), &out, &errs)
			require.Equal(t, c.code, code, errs.String())
			require.EqualValues(t, c.got, got.Load())
		})
	}
}

// TestWhatBecomesOfABatch has a head without room for a moment, one that says nothing of a request, and an interruption
// once the batch is made: who has no answer is told how to go on.
func TestWhatBecomesOfABatch(t *testing.T) {
	t.Parallel()
	const id = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	submit := func(answer func(n int32, w http.ResponseWriter, interrupt func()), args ...string) (int, string, string) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		var got atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(got.Add(1), w, interrupt)
		}))
		defer server.Close()
		var out, errs strings.Builder
		code := run(ctx, append([]string{"batch", "submit", "--function", "f", "a", "--url", server.URL}, args...), nil, &out,
			&errs)
		return code, out.String(), errs.String()
	}
	made := func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"request_id": "` + id + `"}`)) }
	code, out, e := submit(func(n int32, w http.ResponseWriter, _ func()) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"status": 429, "code": "limit"}`))
			return
		}
		made(w)
	})
	require.Equal(t, exitOK, code, e)
	require.Equal(t, id+"\n", out)
	require.Equal(t, exitStore, exitCode(t.Context(), &apiError{Status: http.StatusTooManyRequests}))

	code, _, e = submit(func(_ int32, w http.ResponseWriter, interrupt func()) {
		interrupt()
		w.WriteHeader(http.StatusInternalServerError)
	})
	require.Equal(t, exitInterrupted, code)
	require.Regexp(t, `^futura: interrupted: .* with --key [0-9a-f-]{36}\n$`, e)

	code, _, e = submit(func(n int32, w http.ResponseWriter, interrupt func()) {
		if n == 1 {
			made(w)
			return
		}
		interrupt()
	}, "--wait")
	require.Equal(t, exitInterrupted, code)
	require.Equal(t, "futura: interrupted: batch "+id+" goes on: follow it with futura batch watch "+id+"\n", e)
}

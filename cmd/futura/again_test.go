package main

import (
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

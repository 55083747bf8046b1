//go:build linux

package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/stretchr/testify/require"
)

// TestCrowdsDoNotTakeTheDescriptors opens 400 idle and 100 slow connections to a
// process that may have 256 descriptors, and submits beside them.
func TestCrowdsDoNotTakeTheDescriptors(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	cmd := exec.Command("sh", "-c", `ulimit -n 256; exec "$0" "$@"`, os.Args[0],
		"dev", "--listen", "127.0.0.1:0", "--json")
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), mainVariable+"=1", "FUTURA_STORE="+c.store)
	log := &stacktest.Buffer{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var e endpoint
	require.NoError(t, json.NewDecoder(out).Decode(&e), "%s", log)
	address := strings.TrimPrefix(e.URL, "http://")
	slow := "POST /api/v1/futures HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		"Content-Length: 1000\r\nAuthorization: Bearer "
	for i := range 500 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		switch {
		case i < 400:
		case i%2 == 0:
			_, _ = io.WriteString(conn, slow+"wrong\r\n\r\n{") // it may have been closed for another
		default:
			_, _ = io.WriteString(conn, slow+e.Token+"\r\n\r\n{")
		}
		if i%100 == 99 {
			status, text := ask(t, &e, "POST", "/api/v1/futures", e.Token, `{"function":"go:none"}`)
			require.Equal(t, http.StatusCreated, status, "%s%s", text, log)
		}
	}
	require.Len(t, strings.Split(c.ok("list"), "\n"), 1+5)
	require.Contains(t, c.ok("check"), "0 problems")
	require.NotContains(t, log.String(), "too many open files")
}

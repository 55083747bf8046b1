package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// startDev runs dev until stop, which returns its exit code.
func startDev(t *testing.T, args ...string) (e endpoint, log *stacktest.Buffer, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	log = &stacktest.Buffer{}
	code := make(chan int, 1)
	go func() {
		c := run(ctx, append([]string{"dev", "--listen", "127.0.0.1:0", "--json"}, args...), strings.NewReader(""), out, log)
		code <- c
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	require.NoError(t, json.NewDecoder(in).Decode(&e), "%s", log)
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	return e, log, stop
}

func ask(t *testing.T, e *endpoint, method, path, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, e.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "\x00asm") {
		r.Header.Set("Content-Type", "application/wasm")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

func TestDevServesAndStops(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	e, log, stop := startDev(t, "--store", "embedded:"+dir)
	file := filepath.Join(dir, endpointFile)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "others may not read the token")
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "nor the arguments and results")
	stored, err := readEndpoint(dir)
	require.NoError(t, err)
	require.Equal(t, e, stored)
	require.Len(t, e.Token, 64)

	status, text := ask(t, &e, "POST", "/api/v1/futures", e.Token, `{"function":"go:none"}`)
	require.Equal(t, http.StatusCreated, status, text)
	status, _ = ask(t, &e, "GET", "/api/v1/futures", "wrong", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, text = ask(t, &e, "GET", "/metrics", e.Token, "")
	require.Equal(t, http.StatusOK, status)
	for _, name := range []string{"futura_store_syncs_total", "futura_worker_claims_total", "futura_futures{"} {
		require.Contains(t, text, name)
	}
	status, text = ask(t, &e, "GET", "/api/v1/workers", e.Token, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"name":"dev"`)

	node, err := futura.Open(t.Context(), "embedded:"+dir)
	require.NoError(t, err, "a program finds the way to the store by itself")
	views, _, err := node.Client.List(t.Context(), futures.Filter{}, nil, 0)
	require.NoError(t, err)
	require.Len(t, views, 1)
	require.NoError(t, node.Close())

	require.Zero(t, stop(), "%s", log)
	require.NotContains(t, log.String(), e.Token)
	require.NoFileExists(t, file)
	s := &shell{t, "embedded:" + dir}
	require.Contains(t, s.ok("check"), "0 problems")
	require.Contains(t, s.ok("list"), "go:none")
}

func TestDevMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(short, []byte("secret\n"), 0o600))
	s := &shell{t, "memory:"}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"at least 16", []string{"--token-file", short}},
		{"no such file", []string{"--token-file", filepath.Join(dir, "none")}},
		{"need each other", []string{"--tls-cert", short}},
		{"PEM", []string{"--tls-cert", short, "--tls-key", short}},
		{"--tls-cert " + short, []string{"--tls-cert", short, "--tls-key", short}},
		{"--listen", []string{"--listen", "127.0.0.1:99999"}},
		{"slots", []string{"--slots", "-1"}},
		{"queue", []string{"--queue", "no such name"}},
	} {
		out, e := s.run(exitUsage, "", append([]string{"dev", "--listen", "127.0.0.1:0"}, c.args...)...)
		require.Contains(t, e, c.says)
		require.Empty(t, out, "it has not begun")
	}
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	e, _, _ := startDev(t, "--store", "memory:", "--token-file", token)
	require.Equal(t, "0123456789abcdef", e.Token)
	_, text := s.run(exitStore, "", "dev", "--listen", strings.TrimPrefix(e.URL, "http://"))
	require.Contains(t, text, "127.0.0.1:0 for a free port")
}

func TestSecondDevIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	first, _, _ := startDev(t, "--store", store)
	s := &shell{t, store}
	_, e := s.run(exitStore, "", "dev", "--listen", "127.0.0.1:0")
	require.Contains(t, e, first.URL)
}

// TestDevSaysHowOthersNameTheStore reads what a person sees: a directory is shared by its own name, with which a
// command works while dev runs and afterwards.
func TestDevSaysHowOthersNameTheStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	for store, want := range map[string]string{
		"embedded:" + dir: "embedded:" + dir, "embedded:" + dir + "?sync=off": "embedded:" + dir, "memory:": "remote:unix:",
		"embedded:" + dir + "?share=off": "remote:unix:",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		in, out := io.Pipe()
		log, code := &stacktest.Buffer{}, make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"dev", "--listen", "127.0.0.1:0", "--store", store}, strings.NewReader(""), out, log)
			_ = out.Close()
		}()
		name := ""
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "others" {
				require.Equal(t, "--store", words[1])
				name = words[2]
			}
			if strings.Contains(lines.Text(), "futura submit") {
				(&shell{t, name}).ok("list")
				cancel()
			}
		}
		cancel()
		require.Zero(t, <-code, "%s", log)
		require.True(t, name == want || strings.HasSuffix(want, ":") && strings.HasPrefix(name, want), "%s: %s", store, name)
		if strings.HasPrefix(name, "embedded:") {
			(&shell{t, name}).ok("list")
		}
	}
}

func TestCommandsReachARunningDev(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	e, log, stop := startDev(t, "--store", s.store)
	require.True(t, strings.HasPrefix(e.Store, "remote:unix:"), e.Store)
	id := s.ok("submit", "go:later", "--args", "x")
	require.Contains(t, s.ok("list"), id)
	require.Contains(t, s.ok("workers"), "dev")
	status, text := ask(t, &e, "GET", "/api/v1/futures/"+id, e.Token, "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "go:later")
	require.Contains(t, s.ok("explain", id), "no_function")
	s.run(exitTimeout, "", "await", id, "--timeout", "10ms")
	s.ok("cancel", id)
	s.run(exitFailed, "", "await", id)
	require.Contains(t, s.ok("check"), "0 problems")
	require.Regexp(t, "dead after +2s", s.ok("cluster", "show"))
	startDev(t, "--store", e.Store, "--cluster", "elsewhere")
	require.Regexp(t, "dead after +15s", s.ok("cluster", "show", "--cluster", "elsewhere"), "not alone")
	require.Zero(t, stop(), "%s", log)
	require.Contains(t, s.ok("list"), id, "the store is here again")
}

func TestFurtherWorkersJoinADev(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	e, _, _ := startDev(t, "--store", s.store)
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"worker", "--json", "--name", "second", "--store", e.Store}, strings.NewReader(""), out,
			&stacktest.Buffer{})
	}()
	var joined struct{ Worker string }
	require.NoError(t, json.NewDecoder(in).Decode(&joined))
	require.Contains(t, s.ok("workers"), joined.Worker)
	cancel()
	require.Zero(t, <-code)
	require.NotContains(t, s.ok("workers"), joined.Worker, "it has left")
}

func TestStoreOverTCP(t *testing.T) {
	t.Parallel()
	e, _, _ := startDev(t, "--store", "memory:", "--store-listen", "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(e.Token), 0o600))
	s := &shell{t, e.StoreTCP + "?token-file=" + file}
	require.NotEmpty(t, s.ok("submit", "go:f"))
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	_, text := s.run(exitStore, "", "list")
	require.Contains(t, text, "token")
}

// TestWhatToTryNamesTheStore: in another terminal, a command without --store would use, or make, another store.
func TestWhatToTryNamesTheStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	in, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"dev", "--store", store, "--listen", "127.0.0.1:0"}, nil, out, io.Discard)
		_ = out.Close()
	}()
	tries := 0
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if try, found := strings.CutPrefix(lines.Text(), "  futura "); found {
			require.Contains(t, try, " --store "+store)
			if tries++; tries == 2 {
				cancel()
			}
		}
	}
	require.Equal(t, exitOK, <-code)

	said := &stacktest.Buffer{}
	n := &node{app: &app{store: "fdb:fdb.cluster", out: said}, tokenFile: "token"}
	require.NoError(t, n.print(&endpoint{URL: "http://127.0.0.1:1"}, nil, nil))
	require.Contains(t, said.String(), "  futura worker --store fdb:fdb.cluster\n")
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// startHead runs head until stop, which returns its exit code.
func startHead(t *testing.T, args ...string) (e endpoint, log *stacktest.Buffer, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	log = &stacktest.Buffer{}
	code := make(chan int, 1)
	go func() {
		if !slices.Contains(args, "--tokens") {
			args = append(args, "--open")
		}
		args = append([]string{"head", "--rest-api", "127.0.0.1:0", "--json"}, args...)
		code <- run(ctx, args, strings.NewReader(""), out, log)
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	require.NoError(t, json.NewDecoder(in).Decode(&e), "%s", log)
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	return e, log, stop
}

// echoModule is a function that prints its first argument, and ends with exit
// code 3 if a second one says so.
func echoModule(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module echo\n\ngo 1.26\n",
		"main.go": `package main

import "os"

func main() {
	if len(os.Args) > 1 {
		os.Stdout.WriteString(os.Args[1])
	}
	if len(os.Args) > 2 && os.Args[2] == "fail" {
		os.Stderr.WriteString("asked to fail")
		os.Exit(3)
	}
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", "echo.wasm", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	module, err := os.ReadFile(filepath.Join(dir, "echo.wasm"))
	require.NoError(t, err)
	return module
}

const documentFunction = "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q"

// TestTheDocumentsExampleRuns installs a function under the id of b7s's
// document, sends the document's request as curl does, and gets its results of
// real runs: of a head in a process of its own, with the workers of another.
func TestTheDocumentsExampleRuns(t *testing.T) {
	t.Parallel()
	store := "embedded:" + filepath.Join(t.TempDir(), "store")
	dev, _, _ := startDev(t, "--store", store)
	head, _, stop := startHead(t, "--store", store, "--batch-worker-wait", "1s")
	require.Equal(t, "futures (cluster default)", head.Batches)
	status, answer := ask(t, &dev, "POST", "/api/v1/functions/install?function_id="+documentFunction+"&method=echo.wasm",
		dev.Token, string(echoModule(t)))
	require.Equal(t, http.StatusOK, status, answer)
	request, err := os.ReadFile("../../batch/rest/testdata/request.json")
	require.NoError(t, err)
	var made struct {
		ID string `json:"request_id"`
	}
	status, answer = ask(t, &head, "POST", batchSubmitPath, "", string(request))
	require.Equal(t, http.StatusOK, status, answer)
	require.NoError(t, json.Unmarshal([]byte(answer), &made))
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"batch", "watch", made.ID, "--url", head.URL}, nil, &out, &errOut)
	require.Equal(t, exitOK, code, "%s%s", &out, &errOut)
	status, answer = ask(t, &head, "POST", batchSubmitPath+"/result", "", `{"id":"`+made.ID+`"}`)
	require.Equal(t, http.StatusOK, status, answer)
	var result struct {
		Code   string
		Chunks map[string]struct {
			Peer    string
			Results map[string]struct {
				Result     map[string]any
				Invocation string `json:"function_invocation"`
				Arguments  []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &result))
	require.Equal(t, "200", result.Code)
	require.Len(t, result.Chunks, 1)
	for _, chunk := range result.Chunks {
		require.NotEmpty(t, chunk.Peer)
		require.Len(t, chunk.Results, 4)
		one := chunk.Results["268a4145a50ade48aed2b1147d3518c6"]
		url := "https://example.com/dir1/dir2/resource/some-random-slug-1"
		require.Equal(t, map[string]any{"stdout": url, "exit_code": 0.0}, one.Result)
		require.Equal(t, []string{url}, one.Arguments)
		require.Equal(t, documentFunction+"/echo.wasm", one.Invocation)
	}
	require.Equal(t, exitOK, stop())
}

// TestDevRunsBatches runs a batch with failures on each store that needs no
// server, by the commands.
func TestDevRunsBatches(t *testing.T) {
	t.Parallel()
	module := filepath.Join(t.TempDir(), "echo.wasm")
	require.NoError(t, os.WriteFile(module, echoModule(t), 0o600))
	for _, kind := range []string{"futures", "memory"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			_, log, _ := startDev(t, "--store", s.store, "--batch-store", kind)
			require.Equal(t, kind == "memory", strings.Contains(log.String(), "batches are kept in memory"), "%s", log)
			s.ok("function", "put", module, "--alias", "echo")
			out, _ := s.run(exitFailed, "a\nb,fail\n", "batch", "submit", "--function", "echo", "--method", "echo.wasm",
				"--file", "-", "--max-attempts", "1", "--wait")
			require.Contains(t, out, "1 of 2 items failed for good")
			id := strings.Fields(strings.Split(s.ok("batch", "list"), "\n")[1])[0]
			var line struct {
				Result struct {
					Stdout, Stderr string
					ExitCode       int `json:"exit_code"`
				}
			}
			answer := s.ok("batch", "result", id, "--ndjson", "--state", "permanently_failed")
			require.NoError(t, json.Unmarshal([]byte(answer), &line))
			require.Equal(t, "b", line.Result.Stdout)
			require.Equal(t, "asked to fail", line.Result.Stderr)
			require.Equal(t, 3, line.Result.ExitCode)
			if kind != "futures" {
				return
			}
			out, e := s.run(exitOK, "", "retry", "--failed")
			require.Equal(t, "0 retried\n", out)
			require.Contains(t, e, "left alone, as items of batches: 1")
			_, e = s.run(exitOK, "", "list")
			require.Contains(t, e, "left out: ")
			item := strings.Fields(strings.Split(s.ok("list", "--state", "failed", "--items"), "\n")[1])[0]
			require.Contains(t, s.ok("list", "--batch", id), item)
			for _, change := range []string{"retry", "delete"} {
				_, e = s.run(exitUsage, "", change, item)
				require.Contains(t, e, "belongs to batch "+id)
			}
		})
	}
}

// storeWithReader returns a store to make, and a file of tokens with one that may
// read.
func storeWithReader(t *testing.T) (store, tokens, reader string) {
	dir := t.TempDir()
	tokens = filepath.Join(dir, "tokens")
	reader, err := stack.CreateToken(tokens, "reader", "read", time.Time{})
	require.NoError(t, err)
	return "embedded:" + filepath.Join(dir, "store"), tokens, reader
}

func TestHeadsTokensHaveRoles(t *testing.T) {
	t.Parallel()
	store, tokens, reader := storeWithReader(t)
	e, _, stop := startHead(t, "--store", store, "--tokens", tokens)
	status, _ := ask(t, &e, "GET", batchesPath, "", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = ask(t, &e, "GET", batchesPath, reader, "")
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(t, &e, "POST", batchSubmitPath, reader, "{}")
	require.Equal(t, http.StatusForbidden, status)
	status, _ = ask(t, &e, "POST", batchSubmitPath, e.Token, "{}")
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, exitOK, stop())
}

// TestHeadShowsNoToken starts a head on the store of another process, with tokens
// of its operator.
func TestHeadShowsNoToken(t *testing.T) {
	t.Parallel()
	store, tokens, reader := storeWithReader(t)
	startDev(t, "--store", store)
	e, log, stop := startHead(t, "--store", store, "--tokens", tokens)
	require.Empty(t, e.Token)
	require.NotContains(t, log.String(), reader)
	status, _ := ask(t, &e, "GET", batchesPath, reader, "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, exitOK, stop())
}

// TestHeadChecksModules installs what can't run at a head without a worker.
func TestHeadChecksModules(t *testing.T) {
	t.Parallel()
	e, _, stop := startHead(t, "--store", "memory:")
	const install = "/api/v1/functions/install?function_id=f&method=m.wasm"
	status, answer := ask(t, &e, "POST", install, "", "\x00asm\x01\x00\x00\x00no section")
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	require.Contains(t, answer, "bad_module")
	status, answer = ask(t, &e, "POST", install, "", string(echoModule(t)))
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, exitOK, stop())
}

// TestHeadSaysWhatItIs reads what a person sees, and does what it says: it leads to a token that the head takes,
// where others are named too.
func TestHeadSaysWhatItIs(t *testing.T) {
	t.Parallel()
	store, tokens, _ := storeWithReader(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		args := []string{"head", "--store", store, "--tokens", tokens, "--rest-api", "127.0.0.1:0"}
		code <- run(ctx, args, nil, out, io.Discard)
		_ = out.Close()
	}()
	lines := bufio.NewScanner(in)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if try, found := strings.CutPrefix(lines.Text(), "  futura batch submit --url http://127.0.0.1:"); found {
			words := strings.Fields(try)
			(&shell{t, "memory:"}).ok("batch", "list", "--url", "http://127.0.0.1:"+words[0], words[1], words[2])
			cancel()
		}
	}
	require.Equal(t, exitOK, <-code)
	require.Contains(t, said[0], "A head for batches is running here")
	require.Contains(t, strings.Join(said, "\n"), "in futures (cluster default)")
	require.Contains(t, strings.Join(said, "\n"), "in "+strings.TrimPrefix(store, "embedded:")+"/token\n")
}

func TestMistakesWithHeads(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"--tokens":            {"--rest-api", "0.0.0.0:0", "--open"},
		"--plain-http":        {"--rest-api", "0.0.0.0:0"},
		"--open excludes":     {"--open", "--tokens", "x"},
		"--batch-db-server":   {"--batch-store", "mongo"},
		"not \"memory\"":      {"--batch-store", "memory", "--batch-db-server", "mongodb://127.0.0.1:1/"},
		"futures, mongo":      {"--batch-store", "paper"},
		"--batch-db-name":     {"--batch-db-name", "batches"},
		"id, chunks or":       {"--batch-answer", "later"},
		"need each other":     {"--tls-cert", "x"},
		"no such file":        {"--tokens", "none"},
		"missing port":        {"--rest-api", "localhost"},
		"not the URI of a Mo": {"--batch-db-server", "127.0.0.1:27017"},
		"no MongoDB server a": {"--batch-db-server", "mongodb://127.0.0.1:1/"},
	} {
		var out, errOut bytes.Buffer
		args = append([]string{"head", "--store", "memory:", "--rest-api", "127.0.0.1:0"}, args...)
		code := run(t.Context(), args, nil, &out, &errOut)
		require.Contains(t, []int{exitUsage, exitStore}, code)
		require.Contains(t, errOut.String(), says)
	}
}

func TestTheSettingsOfB7sAreAccepted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b7s.yaml")
	require.NoError(t, os.WriteFile(file, []byte(
		"head:\n  rest-api: 127.0.0.1:0\n  batch:\n    server: mongodb://127.0.0.1:1/\n    db-name: mine\n"), 0o600))
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"head", "--store", "memory:", "--config", file}, nil, &out, &errOut)
	require.Equal(t, exitStore, code, "%s", &errOut)
	require.Contains(t, errOut.String(), "127.0.0.1:1")
}

// TestAHeadTakesItsTokenBesideNamedOnes: --tokens and --token-file don't exclude each other.
func TestAHeadTakesItsTokenBesideNamedOnes(t *testing.T) {
	t.Parallel()
	_, tokens, reader := storeWithReader(t)
	own := stack.NewSecret()
	e, _, stop := startHead(t, "--store", "memory:", "--tokens", tokens, "--token-file", tokenFileOf(t, own))
	for _, token := range []string{reader, own} {
		status, _ := ask(t, &e, "GET", batchesPath, token, "")
		require.Equal(t, http.StatusOK, status)
	}
	require.Equal(t, exitOK, stop())
}

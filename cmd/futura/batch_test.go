package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const testToken = "0123456789abcdef-admin"

// instantHead runs the items of a batch as it is made, but for those of the
// method "later": an argument "bad" fails.
type instantHead struct{ store *memstore.Store }

func (h instantHead) Store() batch.Store { return h.store }
func (h instantHead) Cancel(ctx context.Context, id, reason string) error {
	return h.store.Cancel(ctx, id, reason, time.Now())
}
func (h instantHead) Retry(ctx context.Context, id string) (int, error) {
	return h.store.Retry(ctx, id)
}
func (h instantHead) Delete(ctx context.Context, id string) error { return h.store.Delete(ctx, id) }

func (h instantHead) Submit(ctx context.Context, r batch.Request) (batch.Batch, bool, error) {
	b := batch.Batch{ID: uuid.NewString(), Template: r.Template, MaxAttempts: 1, CreatedAt: time.Now()}
	if err := h.store.Create(ctx, &b, r.Arguments); err != nil {
		return b, false, err
	}
	if r.Template.Method == "later" {
		return b, false, nil
	}
	chunk := &batch.Chunk{ID: uuid.NewString(), Batch: b.ID, Worker: "w", CreatedAt: time.Now()}
	var items []int
	var ended []batch.Completion
	for i, list := range r.Arguments {
		end := batch.Completion{Index: i, At: time.Now(), Result: batch.Result{Stdout: strings.Join(list, "+")}}
		if end.Failed = len(list) > 0 && list[0] == "bad"; end.Failed {
			end.Reason, end.Result.ExitCode = "it is bad", 3
		}
		items, ended = append(items, i), append(ended, end)
	}
	if _, err := h.store.Assign(ctx, chunk, items); err != nil {
		return b, false, err
	}
	if _, err := h.store.Complete(ctx, b.ID, chunk.ID, ended); err != nil {
		return b, false, err
	}
	b, err := h.store.Settle(ctx, b.ID, time.Now())
	return b, false, err
}

// batchShell runs futura batch on a head.
type batchShell struct {
	*testing.T
	url, tokens string
}

func newBatchShell(t *testing.T) *batchShell {
	t.Helper()
	server := httptest.NewServer(rest.Handler(instantHead{memstore.New()}, rest.Options{
		Stack: stack.Options{Tokens: stack.NewTokens("test", testToken)},
	}))
	t.Cleanup(server.Close)
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("# mine\nadmin "+testToken+"\n"), 0o600))
	return &batchShell{t, server.URL, tokens}
}

func (s *batchShell) run(want int, in string, args ...string) (out, errOut string) {
	s.Helper()
	var o, e bytes.Buffer
	args = append(append([]string{"batch"}, args...), "--url", s.url, "--token-file", s.tokens)
	code := run(s.Context(), args, strings.NewReader(in), &o, &e)
	require.Equal(s, want, code, "%v: %s%s", args, &o, &e)
	return strings.TrimSpace(o.String()), e.String()
}

// TestAHeadThatDoesNotKnowTheToken expects the way out.
func TestAHeadThatDoesNotKnowTheToken(t *testing.T) {
	t.Parallel()
	s := newBatchShell(t)
	require.NoError(t, os.WriteFile(s.tokens, []byte("0123456789abcdef0123456789abcdef\n"), 0o600))
	_, says := s.run(exitUsage, "", "list")
	require.Contains(t, says, "--token-file")
}

func TestABatchFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newBatchShell(t)
	id, _ := s.run(exitOK, "a,b\nc\n", "submit", "--function", "f", "--method", "m", "--file", "-", "--env", "A=1", "x")
	out, _ := s.run(exitOK, "", "status", id)
	require.Contains(t, out, "3 done")
	out, _ = s.run(exitOK, "", "watch", id)
	require.Contains(t, out, "done")
	out, _ = s.run(exitOK, "", "result", id)
	require.Equal(t, "0\tdone\t0\tx\tx\n1\tdone\t0\ta b\ta+b\n2\tdone\t0\tc\tc", out)
	out, _ = s.run(exitOK, "", "result", id, "--ndjson", "--state", "done")
	require.Len(t, strings.Split(out, "\n"), 3)
	out, _ = s.run(exitOK, "", "result", id, "--json")
	var chunks struct{ Code string }
	require.NoError(t, json.Unmarshal([]byte(out), &chunks))
	require.Equal(t, "200", chunks.Code)
	out, _ = s.run(exitOK, "", "list", "--json")
	require.Contains(t, out, id)
	out, _ = s.run(exitOK, "", "chunks", id)
	require.Regexp(t, `^ID +PEER +STATE +ITEMS +LOST +MOVED +CREATED +FINISHED\n\S+ +w +done +3 `, out)
	out, _ = s.run(exitOK, "", "chunks", id, "--json")
	require.Contains(t, out, `"worker": "w"`)
	s.run(exitUsage, "", "chunks", id, "--limit", "0")
	other, _ := s.run(exitOK, "", "submit", "--function", "f", "--topic", "blockless/b7s/gpu", "x")
	out, _ = s.run(exitOK, "", "status", other, "--json")
	require.Contains(t, out, `"queue": "gpu"`)
	out, _ = s.run(exitOK, "", "status", other)
	require.Regexp(t, `(?m)^function +f$`, out)
	out, _ = s.run(exitOK, "", "list")
	require.NotContains(t, out, "f/\n")
	s.run(exitUsage, "", "submit", "--function", "f", "--topic", "a/b", "x")
	s.run(exitOK, "", "delete", id)
	_, errOut := s.run(exitNotFound, "", "status", id)
	require.Contains(t, errOut, "not_found")
}

// TestWatchGoesOnOverConnectionsThatBreak cuts the first streams of events
// before their beginning and behind their first event.
func TestWatchGoesOnOverConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	head := instantHead{memstore.New()}
	b, _, err := head.Submit(t.Context(), batch.Request{
		Template: batch.Template{FunctionID: "f", Method: "later"}, Arguments: [][]string{{"a"}},
	})
	require.NoError(t, err)
	stopping := make(chan struct{})
	close(stopping)
	handler := rest.Handler(head, rest.Options{})
	stops := rest.Handler(head, rest.Options{Stack: stack.Options{Stopping: stopping}})
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := streams.Add(1); n {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			stops.ServeHTTP(w, r)
		default:
			assert.NoError(t, head.store.Cancel(r.Context(), b.ID, "enough", time.Now()))
			handler.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"batch", "watch", b.ID, "--url", server.URL}, nil, &out, &errOut)
	require.Equal(t, exitFailed, code, "%s%s", &out, &errOut)
	require.Contains(t, out.String(), "cancelled: enough")
	require.GreaterOrEqual(t, streams.Load(), int32(3))
}

// TestWatchIsInterrupted interrupts watch while a batch waits.
func TestWatchIsInterrupted(t *testing.T) {
	t.Parallel()
	head := instantHead{memstore.New()}
	b, _, err := head.Submit(t.Context(), batch.Request{
		Template: batch.Template{FunctionID: "f", Method: "later"}, Arguments: [][]string{{"a"}},
	})
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	handler := rest.Handler(head, rest.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		interrupt()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var out, errOut bytes.Buffer
	code := run(ctx, []string{"batch", "watch", b.ID, "--url", server.URL}, nil, &out, &errOut)
	require.Equal(t, exitInterrupted, code)
	require.Equal(t, "futura: interrupted\n", errOut.String())
}

func TestAHeadWithACertificate(t *testing.T) {
	t.Parallel()
	head := instantHead{memstore.New()}
	server := httptest.NewTLSServer(rest.Handler(head, rest.Options{}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(block), 0o600))
	var out, errOut bytes.Buffer
	args := []string{"batch", "list", "--url", server.URL}
	require.Equal(t, exitStore, run(t.Context(), args, nil, &out, &errOut))
	require.Contains(t, errOut.String(), "certificate")
	require.Contains(t, errOut.String(), "--tls-ca")
	plain := []string{"batch", "list", "--url", "http://" + server.Listener.Addr().String()}
	require.NotEqual(t, exitOK, run(t.Context(), plain, nil, &out, &errOut))
	require.Contains(t, errOut.String(), "HTTPS server")
	require.Equal(t, exitOK, run(t.Context(), append(args, "--tls-ca", authority), nil, &out, &errOut))
	require.Equal(t, exitUsage, run(t.Context(), append(args, "--tls-ca", os.DevNull), nil, &out, &errOut))
}

func TestABatchWithFailuresFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newBatchShell(t)
	request := `{"template":{"function_id":"f"},"arguments":[["a"],["bad"]]}`
	out, errOut := s.run(exitFailed, request, "submit", "--file", "-", "--wait")
	require.Contains(t, out, "partly_failed")
	require.Contains(t, errOut, "not every item is done")
	out, _ = s.run(exitOK, "", "list")
	id := strings.Fields(strings.Split(out, "\n")[1])[0]
	out, _ = s.run(exitOK, "", "result", id, "--state", "permanently_failed")
	require.Equal(t, "1\tpermanently_failed\t3\tbad\tit is bad", out)
	out, _ = s.run(exitOK, "", "retry", id)
	require.Regexp(t, `retried +1`, out)
	out, _ = s.run(exitOK, "", "cancel", id, "--reason", "enough")
	require.Contains(t, out, "cancelled: enough")
}

func TestMistakesWithBatches(t *testing.T) {
	t.Parallel()
	s := newBatchShell(t)
	for _, c := range []struct {
		in, says string
		args     []string
	}{
		{"", "--function", []string{"submit", "a"}},
		{"", "at least one list", []string{"submit", "--function", "f"}},
		{"{}", "function_id", []string{"submit", "--file", "-"}},
		{"{}", "leave out", []string{"submit", "--file", "-", "--function", "f"}},
		{"", "NAME=VALUE", []string{"submit", "--function", "f", "--env", "A", "x"}},
		{"", "not the id of a batch", []string{"status", "x"}},
		{"", "permanently_failed", []string{"result", uuid.NewString(), "--state", "x"}},
	} {
		_, errOut := s.run(exitUsage, c.in, c.args...)
		require.Contains(t, errOut, c.says)
	}
	_, errOut := s.run(exitNotFound, "", "watch", uuid.NewString())
	require.Contains(t, errOut, "there is no batch")
	var o, e bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"batch", "list", "--url", s.url}, nil, &o, &e))
	require.Contains(t, e.String(), "token")
	require.Equal(t, exitStore, run(t.Context(), []string{"batch", "list", "--url", "http://127.0.0.1:1"}, nil, &o, &e))
	require.Contains(t, e.String(), "start the head")
	none := "embedded:" + t.TempDir()
	require.Equal(t, exitUsage, run(t.Context(), []string{"batch", "list", "--store", none}, nil, &o, &e))
	require.Contains(t, e.String(), "--url")
}

package rest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// FuzzBatch decodes anything: what is accepted is what encoding/json reads, and
// within the limits.
func FuzzBatch(f *testing.F) {
	for _, name := range []string{"testdata/request.json"} {
		content, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(content)
	}
	for _, text := range []string{
		`{}`, `null`, `{"arguments":null,"ARGUMENTS":[null,[],[null,"a"]],"template":{"Function_ID":"f"}}`,
		`{"max_attempts":18446744073709551615,"max_attempts":-1}`, `{"arguments":[["\ud800"]],"template":[]}`, `{"a":{"b":[`,
		`{"template":{"function_id":"f","config":{"timeout":9223372036854775807,"attributes":{"a":[0]}}},"arguments":[[]]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := decodeBatch(t.Context(), bytes.NewReader(body))
		if err != nil {
			require.Less(t, problemOf(bodyProblem(err)).Status, 500, "%v", err)
			return
		}
		var whole map[string]any
		require.NoError(t, json.Unmarshal(body, &whole))
		asked, err := request.request("")
		if err != nil {
			require.Equal(t, http.StatusBadRequest, problemOf(err).Status)
			return
		}
		require.NoError(t, asked.Validate())
		again, err := json.Marshal(request)
		require.NoError(t, err)
		same, err := decodeBatch(t.Context(), bytes.NewReader(again))
		require.NoError(t, err)
		require.Len(t, same.Arguments, len(request.Arguments))
		require.Equal(t, request.MaxAttempts, same.MaxAttempts)
	})
}

// FuzzPackedBodies reads bodies that are compressed, or say so.
func FuzzPackedBodies(f *testing.F) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"id":"x"}`))
	require.NoError(f, z.Close())
	f.Add("gzip", packed.Bytes())
	f.Add("gzip", packed.Bytes()[:packed.Len()-3])
	f.Add("GZIP", append(bytes.Clone(packed.Bytes()), packed.Bytes()...))
	f.Add("br", []byte(`{"id":"x"}`))
	f.Add("", []byte(`{"ID":"x"} `))
	f.Fuzz(func(t *testing.T, encoding string, content []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(content))
		r.Header["Content-Encoding"] = []string{encoding}
		var body idBody
		if err := readJSON(r, smallBody, &body); err != nil {
			require.Less(t, problemOf(err).Status, http.StatusInternalServerError, "%v", err)
		}
	})
}

func problemOf(err error) *stack.Problem { return stack.ProblemOf(errorCodes(), err) }

func FuzzInstallRequest(f *testing.F) {
	f.Add([]byte(`{"uri":"http://a/manifest.json","cid":"x","topic":""}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var request installRequest
		if err := decodeJSON(t.Context(), bytes.NewReader(body), &request); err != nil {
			require.Less(t, problemOf(bodyProblem(err)).Status, 500)
		}
	})
}

// storeHead hands on to a store.
type storeHead struct{ store batch.Store }

func (h storeHead) Submit(ctx context.Context, r batch.Request) (batch.Batch, bool, error) {
	b := batch.Batch{ID: uuid.NewString(), Template: r.Template, MaxAttempts: 1, CreatedAt: time.Now()}
	return b, false, h.store.Create(ctx, &b, r.Arguments)
}
func (h storeHead) Cancel(ctx context.Context, id, reason string) error {
	return h.store.Cancel(ctx, id, reason, time.Now())
}
func (h storeHead) Retry(ctx context.Context, id string) (int, error) { return h.store.Retry(ctx, id) }
func (h storeHead) Delete(ctx context.Context, id string) error       { return h.store.Delete(ctx, id) }
func (h storeHead) Store() batch.Store                                { return h.store }

// FuzzRequests sends anything: no answer is a failure of the server, and errors
// are problems.
func FuzzRequests(f *testing.F) {
	const known = "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"
	for _, seed := range []struct{ method, target, body string }{
		{"POST", "/api/v1/functions/execute/batch", `{"template":{"function_id":"f"},"arguments":[["a"]]}`},
		{"POST", "/api/v1/functions/execute/batch/result", `{"id":"` + known + `"}`},
		{"POST", "/api/v1/functions/execute", `{"function_id":"go:f","parameters":[{"value":"a"}],"config":{"timeout":1}}`},
		{"POST", "/api/v1/functions/install?function_id=a&method=b", "\x00asm"},
		{"POST", "/api/v1/functions/requests/result", `{"id":7}`},
		{"GET", "/api/v1/batches?limit=3&after=" + known, ""},
		{"GET", "/api/v1/batches/" + known, ""},
		{"GET", "/api/v1/batches/" + known + "/results?from=1&limit=2&state=-2,done", ""},
		{"GET", "/api/v1/batches/" + known + "/events", ""},
		{"POST", "/api/v1/batches/" + known + ":cancel", `{"reason":"r"}`},
		{"POST", "/api/v1/batches/" + known + ":retry", ""},
		{"POST", "/api/v1/batches/::", ""},
		{"DELETE", "/api/v1/batches/%2e%2e", ""},
		{"GET", "/docs", ""},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	store := memstore.New()
	b := batch.Batch{ID: known, Template: batch.Template{FunctionID: "f"}, MaxAttempts: 1, CreatedAt: time.Now()}
	require.NoError(f, store.Create(context.Background(), &b, [][]string{{"a"}, {"b"}}))
	stopping := make(chan struct{})
	close(stopping)
	db := embedded.OpenMemory(embedded.Options{})
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	client, err := futures.New(context.Background(), db, futures.Options{})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, client.Close(context.Background())) })
	handler := Handler(storeHead{store}, Options{Stack: stack.Options{Stopping: stopping}, Client: client})
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") || u.Path == "/metrics" {
			t.Skip()
		}
		packed := strings.HasPrefix(body, "\x00asm") || strings.HasPrefix(body, "\x1f\x8b")
		if strings.Contains(u.Path, "install") && !packed {
			t.Skip() // it would be fetched from where it says
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+target, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Less(t, w.Code, http.StatusInternalServerError, "%s %s %q: %s", method, target, body, w.Body)
		if w.Code >= http.StatusBadRequest {
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), "%s %s", method, target)
			require.True(t, json.Valid(w.Body.Bytes()), "%s", w.Body)
		}
	})
}

package rest_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	submitPath  = "/api/v1/functions/execute/batch"
	resultPath  = submitPath + "/result"
	batchesPath = "/api/v1/batches"
)

// fakeHead keeps batches; the test is its workers.
type fakeHead struct {
	store batch.Store

	mu     sync.Mutex
	keys   map[string]batch.Batch
	last   batch.Request
	refuse error // what Submit returns, if not nil
	trace  map[string]string
}

func newFakeHead() *fakeHead {
	return &fakeHead{store: memstore.New(), keys: map[string]batch.Batch{}}
}

func (h *fakeHead) Submit(ctx context.Context, r batch.Request) (batch.Batch, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = r
	h.trace, _ = ctx.Value(layout.TraceKey{}).(map[string]string)
	if h.refuse != nil {
		return batch.Batch{}, false, h.refuse
	}
	if b, ok := h.keys[r.Key]; ok && r.Key != "" {
		if b.Items != len(r.Arguments) {
			return b, false, batch.ErrExists
		}
		return b, true, nil
	}
	b := batch.Batch{
		ID: uuid.NewString(), Template: r.Template, MaxAttempts: batch.Attempts(r.MaxAttempts, 0), CreatedAt: time.Now(),
	}
	if err := h.store.Create(ctx, &b, r.Arguments); err != nil {
		return b, false, err
	}
	b, err := h.store.Get(ctx, b.ID)
	h.keys[r.Key] = b
	return b, false, err
}

func (h *fakeHead) Cancel(ctx context.Context, id, reason string) error {
	return h.store.Cancel(ctx, id, reason, time.Now())
}
func (h *fakeHead) Retry(ctx context.Context, id string) (int, error) { return h.store.Retry(ctx, id) }
func (h *fakeHead) Delete(ctx context.Context, id string) error       { return h.store.Delete(ctx, id) }
func (h *fakeHead) Store() batch.Store                                { return h.store }

func (h *fakeHead) request() batch.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// fixture is a head behind a server.
type fixture struct {
	*testing.T
	head *fakeHead
	url  string
}

func newFixture(t *testing.T, o rest.Options) *fixture {
	t.Helper()
	head := newFakeHead()
	answered := stacktest.Watch(&o.Stack)
	handler := rest.Handler(head, o)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		answered.Check(t, handler)
	})
	return &fixture{T: t, head: head, url: server.URL}
}

func (f *fixture) send(method, path, body string, headers ...string) *stacktest.Answer {
	f.Helper()
	return stacktest.Send(f.T, method, f.url+path, body, headers...)
}

// submit makes a batch of lists of one argument, and returns its id.
func (f *fixture) submit(arguments ...string) string {
	f.Helper()
	lists := make([][]string, len(arguments))
	for i, a := range arguments {
		lists[i] = []string{a}
	}
	return f.submitLists(lists...)
}

func (f *fixture) submitLists(lists ...[]string) string {
	f.Helper()
	body, err := json.Marshal(map[string]any{
		"template": map[string]any{"function_id": "myfunc", "method": "echo.wasm"}, "arguments": lists, "max_attempts": 1,
	})
	require.NoError(f, err)
	var made struct {
		ID string `json:"request_id"`
	}
	f.send("POST", submitPath, string(body)).Into(200, &made)
	return made.ID
}

// assign gives items to a worker as a new chunk.
func (f *fixture) assign(id, worker string, items ...int) string {
	f.Helper()
	c := batch.Chunk{ID: uuid.NewString(), Batch: id, Worker: worker, CreatedAt: time.Now()}
	given, err := f.head.store.Assign(f.Context(), &c, items)
	require.NoError(f, err)
	require.Equal(f, items, given)
	return c.ID
}

// complete ends items: those with an exit code other than 0 have failed.
func (f *fixture) complete(id, chunk string, results map[int]batch.Result) {
	f.Helper()
	var ended []batch.Completion
	for i, r := range results {
		ended = append(ended, batch.Completion{
			Index: i, Result: r, Failed: r.ExitCode != 0, Reason: "it failed", At: time.Now(),
		})
	}
	_, err := f.head.store.(batch.Recorder).Complete(f.Context(), id, chunk, ended)
	require.NoError(f, err)
	_, err = f.head.store.Settle(f.Context(), id, time.Now())
	require.NoError(f, err)
}

// run runs all items of a batch on one worker; those whose index is in failing
// fail.
func (f *fixture) run(id string, n int, failing ...int) {
	f.Helper()
	items, results := make([]int, n), map[int]batch.Result{}
	for i := range items {
		items[i], results[i] = i, batch.Result{Stdout: "ok"}
	}
	for _, i := range failing {
		results[i] = batch.Result{Stdout: "some", Stderr: "trouble", ExitCode: 3}
	}
	f.complete(id, f.assign(id, "w1", items...), results)
}

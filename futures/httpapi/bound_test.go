package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// silent is a store that answers nothing until back is closed, once it is away.
type silent struct {
	kv.Database
	away atomic.Bool
	back chan struct{}
}

func (s *silent) Begin(o kv.Options) kv.Tx { return &silentTx{s.Database.Begin(o), s} }

// wait waits for an answer.
func (s *silent) wait(ctx context.Context) error {
	if !s.away.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.back:
		return nil
	}
}

// silentReader is a reader of such a store.
type silentReader struct {
	kv.Reader
	store *silent
}

func (s silentReader) Get(key []byte) kv.Pending[[]byte] { return later(s.store, s.Reader.Get(key)) }

func (s silentReader) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return later(s.store, s.Reader.GetRange(r, o))
}

func later[T any](store *silent, answer kv.Pending[T]) kv.Pending[T] {
	return kv.Later(func(ctx context.Context) (nothing T, err error) {
		if err := store.wait(ctx); err != nil {
			return nothing, err
		}
		return answer.Wait(ctx)
	})
}

type silentTx struct {
	kv.Tx
	store *silent
}

func (s *silentTx) Get(key []byte) kv.Pending[[]byte] { return silentReader{s.Tx, s.store}.Get(key) }

func (s *silentTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return silentReader{s.Tx, s.store}.GetRange(r, o)
}

func (s *silentTx) Snapshot() kv.Reader { return silentReader{s.Tx.Snapshot(), s.store} }

func (s *silentTx) Commit(ctx context.Context) (kv.Committed, error) {
	if err := s.store.wait(ctx); err != nil {
		return kv.Committed{}, err
	}
	return s.Tx.Commit(ctx)
}

// unbounded are the routes that have bounds of their own, or that ask no store.
var unbounded = []string{
	"GET /", "GET /api/v1/futures/{id}/events", "GET /docs", "GET /metrics", "GET /openapi-3.0.json", "GET /openapi.json",
	"GET /openapi.yaml", "POST /api/v1/futures:put",
}

// storeless are bounded routes that are answered without the store, or by a look at it that has another answer.
var storeless = []string{
	"GET /api/v1/sessions/this", "DELETE /api/v1/sessions/this", "POST /api/v1/sessions", "POST /api/v1/links",
	"GET /api/v1/tokens", "GET /api/v1/health",
}

const newFuture = `{"function":"go:f"}`

// requests are the bodies, and the queries, of the routes that need one.
var requests = map[string][2]string{
	"POST /api/v1/futures": {newFuture}, "POST /api/v1/futures:submit": {`{"futures":[` + newFuture + `]}`},
	"GET /api/v1/futures:count": {"", "?by=tag"}, "GET /api/v1/unique": {"", "?key=x"},
	"DELETE /api/v1/unique":       {"", "?key=x"},
	"POST /api/v1/futures:cancel": {"", "?queue=x"}, "POST /api/v1/futures:retry": {"", "?queue=x"},
	"POST /api/v1/futures:delete":       {"", "?queue=x"},
	"POST /api/v1/futures:fork":         {`{"from":"failed","name":"fix"}`, "?queue=x"},
	"POST /api/v1/futures/{id}:resolve": {`{"value":1}`}, "POST /api/v1/jobs/{queue}:append": {`{"input":[1]}`},
	parkedJobs + ":drop": {`{"all":true}`}, parkedJobs + ":retry": {`{"all":true}`},
	"POST /api/v1/schedules":              {`{"name":"x","cron":"* * * * *","future":` + newFuture + `}`},
	"PUT /api/v1/schedules/{name}":        {`{"cron":"* * * * *","future":` + newFuture + `}`},
	"POST /api/v1/tasks":                  {`{"handler":"x","target":"y","input":1}`},
	"POST /api/v1/tasks:submit":           {`{"tasks":[{"handler":"x","target":"y","input":1}]}`},
	"PUT /api/v1/lanes/{kind}":            {`{"width":1}`},
	"PUT /api/v1/lanes/{kind}/keys/{key}": {`{"paused":true}`}, "PUT /api/v1/limits": {`{}`},
	"POST /api/v1/functions": {"module"},
}

const parkedJobs = "POST /api/v1/jobs/{queue}/consumers/{consumer}/parked"

// newSilent is a fixture whose store can be away, and whose requests wait for it as long as bound.
func newSilent(t *testing.T, bound time.Duration) (*fixture, *silent, *stack.Stack) {
	t.Helper()
	store := &silent{Database: newMemory(t), back: make(chan struct{})}
	client, err := futures.New(t.Context(), store, futures.Options{})
	require.NoError(t, err)
	s := httpapi.New(client, httpapi.Options{Stack: stack.Options{Limits: stack.Limits{StoreTime: bound}}})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		close(store.back)
		server.Close()
		require.NoError(t, client.Close(context.Background()))
	})
	return &fixture{T: t, db: store, client: client, url: server.URL}, store, s
}

// TestEveryRouteHasABound walks the routes while the store answers nothing.
func TestEveryRouteHasABound(t *testing.T) {
	t.Parallel()
	f, store, s := newSilent(t, 20*time.Millisecond)
	var promise struct{ Token string }
	f.send("POST", "/api/v1/promises", `{}`).Into(http.StatusCreated, &promise)
	store.away.Store(true)
	values := strings.NewReplacer("{id}", never, "{what}", "queue", "{token}", promise.Token)
	name := regexp.MustCompile(`{\w+}`)
	var without []string
	for _, rt := range s.Routes() {
		is := rt.Method + " " + rt.Path
		switch {
		case rt.StoreTime == 0:
			without = append(without, is)
			continue
		case slices.Contains(storeless, is):
			continue
		}
		at := values.Replace(rt.Path)
		headers := []string{}
		if is == "POST /api/v1/functions" {
			headers = []string{"Content-Type", "application/wasm"}
		}
		a := f.send(rt.Method, name.ReplaceAllString(at, "x")+requests[is][1], requests[is][0], headers...)
		if a.Status != http.StatusGatewayTimeout {
			t.Errorf("%s: %d %s", is, a.Status, a.Body)
			continue
		}
		a.Problem(http.StatusGatewayTimeout, "timeout", "the store has not answered for")
		if rt.Method == http.MethodGet {
			require.NotContains(t, string(a.Body), "may have been done", is)
		} else {
			require.Contains(t, string(a.Body), "may have been done", is)
		}
	}
	require.ElementsMatch(t, unbounded, without)
}

// TestAWaitForAFutureIsNoWaitForTheStore: the bound begins anew behind a wait that is longer.
func TestAWaitForAFutureIsNoWaitForTheStore(t *testing.T) {
	t.Parallel()
	f, store, _ := newSilent(t, 100*time.Millisecond)
	var made httpapi.Future
	f.send("POST", path, newFuture).Into(http.StatusCreated, &made)
	f.send("GET", path+"/"+made.ID.String()+"?wait=300ms", "").Into(http.StatusOK, &made)
	require.EqualValues(t, "ready", made.State)
	store.away.Store(true)
	f.send("GET", path+"/"+made.ID.String()+"?wait=1m", "").Problem(http.StatusGatewayTimeout, "timeout", "for 100ms")
}

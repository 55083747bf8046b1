package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/storetest"
)

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
func newSilent(t *testing.T, bound time.Duration) (*fixture, *storetest.Silent, *stack.Stack) {
	t.Helper()
	store := storetest.NewSilent(newMemory(t))
	client, err := futures.New(t.Context(), store, futures.Options{})
	require.NoError(t, err)
	s := httpapi.New(client, httpapi.Options{Stack: stack.Options{Limits: stack.Limits{StoreTime: bound}}})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		store.Return()
		server.Close()
		require.NoError(t, client.Close(context.Background()))
	})
	return &fixture{T: t, db: store, client: client, url: server.URL}, store, s
}

// TestEveryRouteHasABound walks the routes while the store answers nothing.
func TestEveryRouteHasABound(t *testing.T) {
	t.Parallel()
	f, store, s := newSilent(t, 20*time.Millisecond)
	promise, err := futures.NewPromise[int](t.Context(), f.client)
	require.NoError(t, err)
	store.Leave()
	values := strings.NewReplacer("{id}", never, "{what}", "queue", "{token}", promise.Token())
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
	f, store, _ := newSilent(t, time.Second)
	waits, err := f.client.Submit(t.Context(), futures.Task{Function: "go:f"})
	require.NoError(t, err)
	var made httpapi.Future
	f.send("GET", path+"/"+waits.ID().String()+"?wait=1500ms", "").Into(http.StatusOK, &made)
	require.EqualValues(t, "ready", made.State)
	store.Leave()
	f.send("GET", path+"/"+made.ID.String()+"?wait=1m", "").Problem(http.StatusGatewayTimeout, "timeout", "for 1s")
}

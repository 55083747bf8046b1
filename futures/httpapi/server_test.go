package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

func TestTokenIsRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "secret"})
	require.Equal(t, http.StatusOK, f.send("GET", path, "").Status)
	require.Equal(t, http.StatusOK, f.send("GET", path, "", "Authorization", "bearer secret").Status)
	for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"} {
		for _, at := range []string{path, "/metrics", "/nothing", path + "/x:cancel"} {
			a := f.send("GET", at, "", "Authorization", wrong)
			a.Problem(http.StatusUnauthorized, "unauthorized", "Bearer TOKEN")
			require.Contains(t, a.Header.Get("WWW-Authenticate"), "Bearer")
		}
	}
	require.Equal(t, http.StatusOK, f.send("GET", "/openapi.json", "", "Authorization", "").Status)
	var health struct{ Status string }
	f.send("GET", "/api/v1/health", "", "Authorization", "").Into(http.StatusOK, &health)
	require.Equal(t, "ok", health.Status)
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Stack: stack.Options{Hosts: []string{"127.0.0.1", "localhost", "::1"}}})
	for _, host := range []string{"localhost", "localhost:80", "127.0.0.1", "[::1]:80", "[::1]"} {
		require.Equal(t, http.StatusOK, f.send("GET", path, "", "Host", host).Status, host)
	}
	for _, host := range []string{"example.com", "localhost.example.com", "127.0.0.1.nip.io:80", "::2"} {
		f.send("GET", path, "", "Host", host).Problem(http.StatusMisdirectedRequest, "bad_host", "localhost")
	}
	f.send("POST", path, `{"function":"go:f"}`, "Sec-Fetch-Site", "cross-site").
		Problem(http.StatusForbidden, "foreign_origin", "another origin")
	f.send("POST", path, `{"function":"go:f"}`, "Origin", "https://example.com").
		Problem(http.StatusForbidden, "foreign_origin", "another origin")
}

func TestModules(t *testing.T) {
	t.Parallel()
	good := append([]byte("\x00asm\x01\x00\x00\x00"), 0, 2, 0, 0)
	f := newFixture(t, httpapi.Options{CheckModule: func(_ context.Context, cid string, module []byte) error {
		if id, err := modules.CID(module); err != nil || id != cid {
			return errors.New("not its id")
		}
		if !bytes.HasPrefix(module, good[:8]) {
			return errors.New("not a WebAssembly module")
		}
		return nil
	}})
	post := func(query, body string) *stacktest.Answer {
		return f.send("POST", "/api/v1/functions"+query, body, "Content-Type", "application/wasm")
	}
	var list struct{ Functions []httpapi.Function }
	a := f.send("GET", "/api/v1/functions", "").Into(http.StatusOK, &list)
	require.Contains(t, string(a.Body), `"functions":[]`)
	var made httpapi.Function
	post("?alias=good", string(good)).Into(http.StatusCreated, &made)
	require.Equal(t, []string{"good"}, made.Aliases)
	require.EqualValues(t, len(good), made.Size)
	post("", string(good)).Into(http.StatusCreated, &made)
	f.send("GET", "/api/v1/functions", "").Into(http.StatusOK, &list)
	require.Len(t, list.Functions, 1)
	require.Equal(t, "wasm:"+list.Functions[0].CID, list.Functions[0].Function)
	var got httpapi.Future
	f.send("POST", path, `{"function":"wasm:good"}`).Into(http.StatusCreated, &got)
	require.Equal(t, made.Function, got.Function)
	var page struct{ Futures []httpapi.Future }
	f.send("GET", path+"?function=wasm:good", "").Into(http.StatusOK, &page)
	require.Len(t, page.Futures, 1)

	post("", "not a module").Problem(http.StatusUnprocessableEntity, "bad_module", "not a WebAssembly module")
	post("?alias=a/b/c", string(good)).Problem(http.StatusBadRequest, "bad_name", "a/b/c")
	post("", "").Problem(http.StatusBadRequest, "bad_request", "body")
	post("", string(good[:8])+strings.Repeat("x", modules.MaxSize)).
		Problem(http.StatusRequestEntityTooLarge, "too_large", "limit=67108865")
}

func TestWorkersAndMetrics(t *testing.T) {
	t.Parallel()
	more := prometheus.NewCounter(prometheus.CounterOpts{Name: "more_total", Help: "More."})
	f := newFixture(t, httpapi.Options{Stack: stack.Options{Collectors: []prometheus.Collector{more}}})
	w := f.work()
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:upper"}`).Into(http.StatusCreated, &got)
	var list struct{ Workers []httpapi.Worker }
	f.send("GET", "/api/v1/workers", "").Into(http.StatusOK, &list)
	require.Len(t, list.Workers, 1)
	require.Equal(t, w.ID(), list.Workers[0].ID)
	require.Equal(t, "tester", list.Workers[0].Name)
	require.Contains(t, list.Workers[0].Functions, "go:upper")
	require.Equal(t, 2, list.Workers[0].Capacity.Slots)
	f.send("GET", path+"/"+never, "")
	text := string(f.send("GET", "/metrics", "").Body)
	for _, line := range []string{
		`futura_futures{cluster="default",queue="default",state="realized"} 1`,
		`futura_workers{alive="true",cluster="default"} 1`, `futura_slots{cluster="default"} 2`,
		`futura_store_up{cluster="default"} 1`, "more_total 0", "futura_http_requests_running 1",
		`futura_http_requests_total{route="POST /api/v1/futures",status="201"} 1`,
		`futura_http_requests_total{route="GET /api/v1/futures/{id}",status="404"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
}

func TestRequestIDAndLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, httpapi.Options{
		Token: "secret", Stack: stack.Options{
			Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
	})
	require.Equal(t, "mine-1", f.send("GET", path, "", "X-Request-Id", "mine-1").Header.Get("X-Request-Id"))
	require.Len(t, f.send("GET", path, "", "X-Request-Id", "a b").Header.Get("X-Request-Id"), 36)
	require.NotContains(t, log.String(), "secret")
	var line struct {
		ID, Method, Path string
		Status           int
	}
	require.NoError(t, json.NewDecoder(&log).Decode(&line))
	require.Equal(t, "mine-1", line.ID)
	require.Equal(t, path, line.Path)
	require.Equal(t, http.StatusOK, line.Status)
}

func TestDescriptionNamesEveryRoute(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	var api struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ OperationID, Summary string }
	}
	a := f.send("GET", "/openapi.json", "").Into(http.StatusOK, &api)
	require.Equal(t, "3.1.0", api.OpenAPI)
	require.NotContains(t, string(a.Body), "$schema")
	for at, methods := range map[string][]string{
		path: {"get", "post"}, path + ":submit": {"post"}, path + ":put": {"post"},
		path + "/{id}":        {"get", "delete"},
		path + "/{id}:cancel": {"post"}, path + "/{id}:retry": {"post"}, path + "/{id}/result": {"get"},
		path + "/{id}:clone": {"post"}, path + "/{id}:transfer": {"post"}, path + "/{id}/pins/{holder}": {"put", "delete"},
		path + "/{id}/steps": {"get"}, path + "/{id}:start-over": {"post"},
		path + "/{id}:fork": {"post"}, path + ":fork": {"post"}, path + "/{id}/forks": {"get"},
		path + "/{id}/explanation": {"get"}, path + "/{id}/graph": {"get"},
		"/api/v1/functions": {"get", "post"}, "/api/v1/workers": {"get"},
		"/api/v1/unique": {"get", "delete"}, "/api/v1/limits": {"get", "put"}, "/api/v1/cluster": {"get"},
		"/api/v1/health": {"get"},
		pauses:           {"get"}, pauses + "/{what}/{name}": {"put", "delete"},
		lanes: {"get"}, lanes + "/{kind}": {"get", "put", "delete"}, lanes + "/{kind}:pause": {"post"},
		lanes + "/{kind}:resume": {"post"}, lanes + "/{kind}/keys": {"get"}, lanes + "/{kind}/keys/{key}": {"get", "put"},
		actors: {"get"}, actors + "/{type}": {"get"}, actors + "/{type}/{key}": {"get", "delete"},
		actors + "/{type}/{key}/{method}": {"post"}, actors + "/{type}/{key}/parts": {"get"},
		schedules: {"get", "post"}, schedules + "/{name}": {"get", "put", "delete"},
		schedules + "/{name}:pause":  {"post"},
		schedules + "/{name}:resume": {"post"}, schedules + "/{name}:trigger": {"post"},
		tasks: {"post"}, tasks + ":submit": {"post"}, tasks + "/{id}": {"get"}, tasks + "/{id}/result": {"get"},
		tasks + "/{id}:cancel": {"post"}, "/api/v1/usage": {"get"}, path + "/{id}/arguments": {"get"},
		path + ":cancel": {"post"}, path + ":retry": {"post"}, path + ":delete": {"post"}, "/api/v1/links": {"post"},
		"/api/v1/sessions": {"post"}, "/api/v1/sessions/this": {"get", "delete"}, "/api/v1/activity": {"get"},
		"/api/v1/promises": {"post"}, "/api/v1/promises/{token}": {"get", "post"},
		"/api/v1/promises/{token}:reject": {"post"}, path + "/{id}:resolve": {"post"}, path + "/{id}:reject": {"post"},
		path + "/{id}:token": {"post"},
		"/api/v1/overview":   {"get"}, path + ":count": {"get"}, "/api/v1/tokens": {"get"}, "/api/v1/objects": {"get"},
	} {
		require.Len(t, api.Paths[at], len(methods), at)
		for _, method := range methods {
			require.NotEmpty(t, api.Paths[at][method].Summary, "%s %s", method, at)
		}
	}
	require.Len(t, api.Paths, 74)
}

func TestClosedClientIsAProblem(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	require.NoError(t, f.db.Close())
	for _, at := range []string{path, "/api/v1/workers", "/api/v1/cluster", "/api/v1/functions"} {
		f.send("GET", at, "").Problem(http.StatusServiceUnavailable, "stopping", "closed")
	}
	f.send("GET", "/api/v1/health", "").Problem(http.StatusServiceUnavailable, "store_unavailable", "closed")
	require.Contains(t, string(f.send("GET", "/metrics", "").Body), `futura_store_up{cluster="default"} 0`)
}

package stack_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

type traceKey struct{}

// traceLog writes the trace of a record's context into its lines.
type traceLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (h traceLog) Handle(ctx context.Context, r slog.Record) error {
	trace, _ := ctx.Value(traceKey{}).(string)
	r.AddAttrs(slog.String("trace", trace))
	return h.Handler.Handle(ctx, r)
}

// TestAdmittedRequestsAreTraced has those told that the API has admitted, by their routes.
func TestAdmittedRequestsAreTraced(t *testing.T) {
	t.Parallel()
	var told []string
	var log strings.Builder
	s := stack.New(stack.Options{
		Tokens: stack.NewTokens("first", secret), AccessLog: true, Logger: slog.New(traceLog{slog.NewTextHandler(&log, nil)}),
		Trace: func(r *http.Request, route string) (context.Context, func(int)) {
			ended := func(status int) { told = append(told, route+" "+strconv.Itoa(status)) }
			return context.WithValue(r.Context(), traceKey{}, "mine"), ended
		},
	})
	for path, p := range map[string]stack.Permission{
		"/api/v1/things/{id}": stack.Read, "/api/v1/things/{id}:act": stack.Read, "/api/v1/admin": stack.Admin,
		"/api/v1/health": stack.Public, "/other": stack.Read,
	} {
		s.Handle(stack.Route{Permission: p, Operation: huma.Operation{Method: "GET", Path: path, OperationID: path},
			Handle: func(_ http.ResponseWriter, r *http.Request) error {
				if r.Context().Value(traceKey{}) == nil {
					return nil
				}
				return stack.NewProblem(http.StatusTeapot, "seen", nil, "seen")
			}})
	}
	for _, path := range []string{
		"/api/v1/things/17", "/api/v1/things/17:act", "/api/v1/admin", "/api/v1/health", "/other", "/api/v1/none", "/metrics",
	} {
		for _, token := range []string{secret, "wrong"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	require.Equal(t, []string{
		"GET /api/v1/things/{id} 418", "GET /api/v1/things/{id}:act 418", "GET /api/v1/admin 418",
	}, told)
	require.Equal(t, 3, strings.Count(log.String(), "trace=mine"))
}

// TestTracesHaveNoSecrets has one sent where an id belongs.
func TestTracesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	var told []string
	s := stack.New(stack.Options{Trace: func(r *http.Request, _ string) (context.Context, func(int)) {
		told = append(told, r.RequestURI, r.URL.Path)
		return r.Context(), func(int) {}
	}})
	none := func(http.ResponseWriter, *http.Request) error { return nil }
	s.Handle(stack.Route{Permission: stack.Read, Handle: none,
		Operation: huma.Operation{Method: "GET", Path: "/api/v1/things/{id}", OperationID: "thing"}})
	s.Handle(stack.Route{Permission: stack.Public, Handle: none, Secret: "open_",
		Operation: huma.Operation{Method: "GET", Path: "/api/v1/doors/{token}", OperationID: "door"}})
	const things = "/api/v1/things/"
	for _, path := range []string{things + "open_sesame", things + "%6fpen_sesame?a=b", things + "17?a=b"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, []string{
		"/api/v1/things/open_…", "/api/v1/things/open_…", "/api/v1/things/open_…", "/api/v1/things/open_…",
		"/api/v1/things/17?a=b", "/api/v1/things/17",
	}, told)
}

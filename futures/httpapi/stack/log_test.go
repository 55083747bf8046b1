package stack_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestChangesByAdministratorsAreLogged has other requests be logged only if that is asked for.
func TestChangesByAdministratorsAreLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := stack.New(stack.Options{
		Tokens: stack.NewTokens("first", secret), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for _, p := range []stack.Permission{stack.Read, stack.Submit, stack.Admin} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			s.Handle(stack.Route{
				Permission: p, Operation: huma.Operation{Method: method, Path: "/" + p.String(), OperationID: method + p.String()},
				Handle: func(http.ResponseWriter, *http.Request) error { return nil },
			})
		}
	}
	for _, token := range []string{secret, "wrong"} {
		for _, path := range []string{"/read", "/submit", "/admin"} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
				r.Header.Set("Authorization", "Bearer "+token)
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 2, log.String())
	for i, method := range []string{"POST", "DELETE"} {
		require.Contains(t, lines[i], "method="+method+" path=/admin status=200 ")
		require.Contains(t, lines[i], "principal=first")
		require.NotContains(t, lines[i], secret)
	}
}

// TestFailuresAreLoggedWithTheirError has a request fail in each way that a server can be at fault for.
func TestFailuresAreLoggedWithTheirError(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := stack.New(stack.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	route := func(path string, handle func(http.ResponseWriter) error) {
		s.Handle(stack.Route{
			Permission: stack.Read, Operation: huma.Operation{Method: "GET", Path: path, OperationID: path},
			Handle: func(w http.ResponseWriter, _ *http.Request) error { return handle(w) },
		})
	}
	route("/error", func(http.ResponseWriter) error { return errors.New("the first disk is full") })
	route("/panic", func(http.ResponseWriter) error { panic("the third disk is full") })
	route("/begun", func(w http.ResponseWriter) error {
		w.WriteHeader(http.StatusOK)
		panic("the fourth disk is full")
	})
	route("/fine", func(http.ResponseWriter) error { return stack.BadRequest("ask for something else") })
	stack.Register(s, stack.Read, huma.Operation{Method: "GET", Path: "/framework", OperationID: "framework"},
		func(context.Context, *struct{}) (*struct{}, error) { return nil, errors.New("the second disk is full") })
	for _, path := range []string{"/error", "/framework", "/panic", "/begun", "/fine"} {
		func() {
			defer func() { _ = recover() }() // it is passed on to the server
			s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		}()
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 4, log.String())
	for i, which := range []string{"first", "second", "third", "fourth"} {
		require.Contains(t, lines[i], "level=ERROR")
		require.Contains(t, lines[i], "the "+which+" disk is full")
		require.Equal(t, i > 1, strings.Contains(lines[i], "log_test.go"), "where it panicked: %s", lines[i])
	}
}

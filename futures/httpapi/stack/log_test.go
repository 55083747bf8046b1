package stack_test

import (
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

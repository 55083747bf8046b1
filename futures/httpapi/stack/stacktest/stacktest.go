// Package stacktest sends requests to HTTP APIs in tests, and checks the answers.
package stacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Answer is a response that was read.
type Answer struct {
	*testing.T
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request on a connection of its own. The headers are names, each
// with its value behind it.
func Send(t *testing.T, method, url, body string, headers ...string) *Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return &Answer{t, response.StatusCode, response.Header, content}
}

// Into decodes an answer that must have the status.
func (a *Answer) Into(status int, to any) *Answer {
	a.Helper()
	require.Equal(a, status, a.Status, "%s", a.Body)
	require.NoError(a, json.Unmarshal(a.Body, to), "%s", a.Body)
	return a
}

// Problem checks that an answer is a problem whose detail contains a text. On the
// paths of b7s the code is its name.
func (a *Answer) Problem(status int, code, says string) {
	a.Helper()
	var p struct {
		stack.Problem
		Name string `json:"name"`
	}
	a.Into(status, &p)
	require.Equal(a, "application/problem+json", a.Header.Get("Content-Type"))
	require.Equal(a, status, p.Status)
	require.Equal(a, http.StatusText(status), p.Title)
	if p.Name != "" {
		require.Regexp(a, "^[45][0-9][0-9]$", p.Code)
		p.Code = p.Name
	}
	require.Equal(a, code, p.Code, p.Detail)
	require.Contains(a, p.Detail, says)
	require.Equal(a, p.Detail, p.Message)
}

// Statuses are those that a server has answered its routes with.
type Statuses struct {
	mu   sync.Mutex
	seen map[string]map[int]bool // by the route, such as "GET /api/v1/futures"
}

// Watch has a server with these options note the statuses of its answers, unless it has a Trace.
func Watch(o *stack.Options) *Statuses {
	all := &Statuses{seen: map[string]map[int]bool{}}
	if o.Trace == nil {
		o.Trace = func(r *http.Request, route string) (context.Context, func(int)) {
			return r.Context(), func(status int) { all.add(route, status) }
		}
	}
	return all
}

func (s *Statuses) add(route string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[route] == nil {
		s.seen[route] = map[int]bool{}
	}
	s.seen[route][status] = true
}

// Check requires that the server's description has the status of each success with its route.
func (s *Statuses) Check(t *testing.T, server http.Handler) {
	t.Helper()
	var api struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/openapi.json", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &api))
	s.mu.Lock()
	defer s.mu.Unlock()
	for route, statuses := range s.seen {
		method, path, _ := strings.Cut(route, " ")
		described, found := api.Paths[path][strings.ToLower(method)]
		for status := range statuses {
			isDescribed := status >= http.StatusMultipleChoices || described.Responses[strconv.Itoa(status)] != nil
			assert.True(t, !found || isDescribed, "%s answered %d, which its description lacks", route, status)
		}
	}
}

// Buffer takes what several goroutines write.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

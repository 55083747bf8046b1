// Package stacktest sends requests to HTTP APIs in tests, and checks the answers.
package stacktest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

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

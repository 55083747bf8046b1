package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bill is a typed function.
var bill = futures.Define[order, total]("bill")

type order struct {
	Item  string `json:"item"`
	Count int64  `json:"count"`
	Cents int64  `json:"cents"`
}

type total struct {
	Cents int64  `json:"cents"`
	For   string `json:"for"`
}

// fixture is a cluster in memory behind a server.
type fixture struct {
	*testing.T
	db     kv.Database
	client *futures.Client
	url    string
	token  string
}

func newFixture(t *testing.T, o httpapi.Options) *fixture {
	t.Helper()
	db := newMemory(t)
	client, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	server := httptest.NewServer(httpapi.Handler(client, o))
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, client.Close(context.Background()))
	})
	return &fixture{T: t, db: db, client: client, url: server.URL, token: o.Token}
}

func newMemory(t *testing.T) kv.Database {
	t.Helper()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// work runs a worker with a few functions until the test ends.
func (f *fixture) work() *workers.Worker {
	f.Helper()
	w, err := workers.New(f.client, workers.Options{Name: "tester", Slots: 2})
	require.NoError(f, err)
	for name, fn := range map[string]workers.Function{
		"upper": func(_ context.Context, in []byte) ([]byte, error) { return bytes.ToUpper(in), nil },
		"echo":  func(_ context.Context, in []byte) ([]byte, error) { return in, nil },
		"fail": func(context.Context, []byte) ([]byte, error) {
			return nil, workers.Permanent(errors.New("no luck"))
		},
		"large": func(context.Context, []byte) ([]byte, error) { return bytes.Repeat([]byte("x"), 100_000), nil },
		"block": func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		require.NoError(f, w.Register(name, fn))
	}
	require.NoError(f, w.Register(bill.Bind(func(_ context.Context, o order) (total, error) {
		return total{Cents: o.Cents * o.Count, For: o.Item}, nil
	})))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		require.NoError(f, <-done)
	})
	<-w.Ready()
	return w
}

// answered is a response that was read.
type answered struct {
	*testing.T
	status int
	header http.Header
	body   []byte
}

func (f *fixture) send(method, path, body string, headers ...string) *answered {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f, err)
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(f, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(f, err)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return &answered{f.T, response.StatusCode, response.Header, content}
}

// into decodes an answer after it has checked the status.
func (a *answered) into(status int, to any) *answered {
	a.Helper()
	require.Equal(a, status, a.status, "%s", a.body)
	require.NoError(a, json.Unmarshal(a.body, to), "%s", a.body)
	return a
}

// problem checks that an answer is a problem.
func (a *answered) problem(status int, code, says string) {
	a.Helper()
	var p httpapi.Problem
	a.into(status, &p)
	require.Equal(a, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(a, status, p.Status)
	require.Equal(a, code, p.Code, p.Detail)
	require.NotEmpty(a, p.Title)
	require.Contains(a, p.Detail, says)
}

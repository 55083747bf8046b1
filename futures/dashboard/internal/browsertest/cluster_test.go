package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/dashboard"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/workers"
)

// secrets are the tokens of a site, by role.
var secrets = map[stack.Permission]string{
	stack.Read: "read-0123456789abcdef", stack.Submit: "submit-0123456789abcdef",
	stack.Admin: "admin-0123456789abcdef",
}

// site is a cluster with its pages.
type site struct {
	*testing.T
	client *futures.Client
	tokens *stack.Tokens
	url    string
	// hold keeps go:held running until it is closed.
	hold chan struct{}
}

// newSite serves a cluster with a worker, a head for batches, and its pages.
func newSite(t *testing.T) *site {
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	s := &site{T: t, client: client, hold: make(chan struct{})}
	worker, err := workers.New(client, workers.Options{Name: "packer " + hostile, Slots: 4})
	require.NoError(t, err)
	for name, run := range s.functions() {
		require.NoError(t, worker.Register(name, run))
	}
	store := futurestore.New(client.Cluster(), futurestore.Options{})
	h := head.New(head.Options{Store: store, Dispatcher: head.NewCluster(client.Cluster())})
	ended := make(chan error, 2)
	go func() { ended <- worker.Run(ctx) }()
	go func() { ended <- h.Run(ctx) }()
	<-worker.Ready()
	served := serveSite(t, client, h)
	s.url, s.tokens = served.url, served.tokens
	t.Cleanup(func() {
		close(s.hold)
		stopping, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		cancel()
		err := errors.Join(<-ended, <-ended)
		require.NoError(t, errors.Join(err, store.Close(stopping), client.Close(stopping), db.Close()))
	})
	return s
}

// serveSite serves the pages of a client's cluster, and batches unless h is nil.
func serveSite(t *testing.T, client *futures.Client, h rest.Head) *site {
	s := &site{T: t, client: client, tokens: &stack.Tokens{}}
	for role, secret := range secrets {
		s.tokens.Add(role.String(), secret, role)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.url = "http://" + listener.Addr().String()
	o := stack.Options{Tokens: s.tokens, Hosts: []string{"127.0.0.1", "localhost", plainHost}}
	var routes *stack.Stack
	if h == nil {
		routes = httpapi.New(client, httpapi.Options{Stack: o})
	} else {
		routes = rest.New(h, rest.Options{Client: client, Stack: o})
	}
	dashboard.Register(routes)
	server, ended := routes.Server(nil), make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		stopping, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		require.NoError(t, errors.Join(server.Shutdown(stopping), <-ended))
	})
	return s
}

// functions are those of the worker.
func (s *site) functions() map[string]workers.Function {
	return map[string]workers.Function{
		"price": func(_ context.Context, args []byte) ([]byte, error) { return args, nil },
		"fail": func(context.Context, []byte) ([]byte, error) {
			return nil, workers.Permanent(errors.New("the printer is on fire " + hostile))
		},
		"trip": s.trip,
		"changed": func(ctx context.Context, _ []byte) ([]byte, error) {
			info, _ := workers.InfoFrom(ctx)
			name := map[bool]string{true: "old", false: "new"}[info.Attempt == 1]
			_, err := futures.Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
			if err == nil && info.Attempt == 1 {
				err = workers.RetryAfter(0, errors.New("once"))
			}
			return []byte("done"), err
		},
		"held": func(ctx context.Context, _ []byte) ([]byte, error) {
			if err := workers.Progress(ctx, 3, 10, "third of ten "+hostile); err != nil {
				return nil, err
			}
			select {
			case <-s.hold:
			case <-ctx.Done():
			}
			return []byte("let go"), ctx.Err()
		},
	}
}

// trip records steps, fails once, and no longer asks for the first one.
func (s *site) trip(ctx context.Context, _ []byte) ([]byte, error) {
	info, _ := workers.InfoFrom(ctx)
	names := []string{"hotel " + hostile, "car"}
	if info.Attempt == 1 {
		names = []string{"flight", "hotel " + hostile}
	}
	for _, name := range names {
		if _, err := futures.Step(ctx, name, func(context.Context) (string, error) { return "booked", nil }); err != nil {
			return nil, err
		}
	}
	if info.Attempt == 1 {
		return nil, workers.RetryAfter(0, errors.New("no car"))
	}
	return []byte("done"), futures.SleepUntil(ctx, time.Unix(1_900_000_000, 0))
}

// call sends a request of the API as a role, and returns its answer.
func (s *site) call(role stack.Permission, method, path string, body any) (answer map[string]any, status int) {
	s.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(s, err)
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, content)
	require.NoError(s, err)
	r.Header.Set("Authorization", "Bearer "+secrets[role])
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	require.NoError(s, err)
	if len(text) > 0 {
		_ = json.Unmarshal(text, &answer)
	}
	return answer, w.StatusCode
}

// must is call as admin, for what works.
func (s *site) must(method, path string, body any) map[string]any {
	s.Helper()
	answer, status := s.call(stack.Admin, method, path, body)
	require.Less(s, status, 300, "%s %s: %v", method, path, answer)
	return answer
}

// submit submits a future, and returns its id.
func (s *site) submit(wait string, future map[string]any) string {
	s.Helper()
	path := "/api/v1/futures"
	if wait != "" {
		path += "?wait=" + wait
	}
	return s.must(http.MethodPost, path, future)["id"].(string)
}

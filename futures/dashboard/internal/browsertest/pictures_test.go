package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/workers"
)

// TestPictures makes the pictures of the documentation, of the cluster of a shop.
func TestPictures(t *testing.T) {
	dir := os.Getenv("FUTURA_DOCS_PICTURES")
	if dir == "" {
		t.Skip("FUTURA_DOCS_PICTURES is unset: make pictures makes those of the documentation")
	}
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{Config: layout.Config{Heartbeat: 200 * time.Millisecond}})
	require.NoError(t, err)
	worker, err := workers.New(client, workers.Options{Name: "packer", Slots: 8, Queues: []string{"orders", "mail"}})
	require.NoError(t, err)
	hold := make(chan struct{})
	for name, run := range map[string]workers.Function{
		"charge": func(_ context.Context, args []byte) ([]byte, error) {
			if len(args)%7 == 0 {
				return nil, workers.Permanent(errors.New("card declined: insufficient funds"))
			}
			return args, nil
		},
		"pack":    func(_ context.Context, args []byte) ([]byte, error) { return args, nil },
		"label":   func(_ context.Context, args []byte) ([]byte, error) { return args, nil },
		"notify":  func(context.Context, []byte) ([]byte, error) { <-hold; return nil, nil },
		"invoice": func(_ context.Context, args []byte) ([]byte, error) { return args, nil },
	} {
		require.NoError(t, worker.Register(name, run))
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	<-worker.Ready()
	s := serveSite(t, client, nil)
	t.Cleanup(func() {
		close(hold)
		cancel()
		require.NoError(t, errors.Join(<-ended, client.Close(context.Background()), db.Close()))
	})
	for i := range 60 {
		function := []string{"go:charge", "go:pack", "go:invoice"}[i%3]
		s.submit("30s", map[string]any{"function": function, "max_retries": 0, "queue": []string{"orders", "mail"}[i%2],
			"input": map[string]any{"order": 1000 + i, "customer": fmt.Sprint("c", i), "note": "xxxxxxx"[:i%7]}})
	}
	for range 3 {
		s.submit("", map[string]any{"function": "go:notify", "queue": "mail"})
	}
	for i := range 12 {
		s.submit("", map[string]any{"function": "go:reindex", "queue": "search", "args": fmt.Sprint(i)})
	}
	order := map[string]any{"order": 1071, "items": []any{map[string]any{"name": "tea", "count": 2}}, "express": true}
	charge := s.submit("30s", map[string]any{"function": "go:pack", "queue": "orders", "input": order})
	label := s.submit("30s", map[string]any{"function": "go:label", "queue": "orders", "input": order})
	held := s.submit("", map[string]any{"function": "go:notify", "queue": "orders"})
	send := s.submit("", map[string]any{"function": "go:pack", "queue": "orders", "tags": []string{"order=1071"},
		"input": map[string]any{"charge": map[string]any{"$future": charge}, "label": map[string]any{"$future": label},
			"stock": map[string]any{"$future": held}}})
	s.must(http.MethodPut, "/api/v1/pauses/queue/search", map[string]any{"reason": "the index is being moved"})
	p := s.newTab()
	p.look("light", 1280)
	p.login(secrets[stack.Admin])
	p.sees("main", "done in the last hour")
	p.sees("td", "go:invoice")
	t.Setenv(picturesVariable, dir)
	p.picture("page-overview")
	p.open("futures/" + send)
	p.sees(".graph", "go:label")
	p.picture("page-future")
}

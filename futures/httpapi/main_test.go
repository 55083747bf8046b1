package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/internal/storetest"
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
	return newFixtureOn(t, newMemory(t), o)
}

func newFixtureOn(t *testing.T, db kv.Database, o httpapi.Options) *fixture {
	t.Helper()
	client, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	answered := stacktest.Watch(&o.Stack)
	handler := httpapi.Handler(client, o)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		answered.Check(t, handler)
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
	storetest.Background(f, w.Run)
	<-w.Ready()
	return w
}

func (f *fixture) send(method, path, body string, headers ...string) *stacktest.Answer {
	f.Helper()
	if f.token != "" {
		headers = append([]string{"Authorization", "Bearer " + f.token}, headers...)
	}
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return stacktest.Send(f.T, method, f.url+path, body, headers...)
}

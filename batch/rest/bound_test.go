package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// silentStore answers no read before the context ends.
type silentStore struct{ batch.Store }

func (silentStore) Get(ctx context.Context, _ string) (b batch.Batch, err error) {
	<-ctx.Done()
	return b, ctx.Err()
}

func (silentStore) List(ctx context.Context, _ bool, _ string, _ int) ([]batch.Batch, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRequestsDontWaitForTheStoreForEver: each route but streams has a bound, which is larger where a request takes
// as long as its batch is large.
func TestRequestsDontWaitForTheStoreForEver(t *testing.T) {
	t.Parallel()
	const bound = 20 * time.Millisecond
	head := newFakeHead()
	head.store = silentStore{head.store}
	s := rest.New(head, rest.Options{Stack: stack.Options{Limits: stack.Limits{StoreTime: bound}}})
	var large, without []string
	for _, rt := range s.Routes() {
		switch is := rt.Method + " " + rt.Path; rt.StoreTime {
		case 0:
			without = append(without, is)
		case bound:
		default:
			require.Equal(t, stack.Large*bound, rt.StoreTime, is)
			large = append(large, is)
		}
	}
	require.ElementsMatch(t, []string{
		"GET /", "GET /docs", "GET /metrics", "GET /openapi-3.0.json", "GET /openapi.json", "GET /openapi.yaml",
		"GET /api/v1/batches/{id}/events",
	}, without)
	const one = batchesPath + "/{id}"
	require.ElementsMatch(t, []string{
		"POST " + submitPath, "POST " + resultPath, "POST /api/v1/functions/install", "GET " + one + "/results",
		"POST " + one + ":cancel", "POST " + one + ":retry", "DELETE " + one,
	}, large)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	f := &fixture{T: t, head: head, url: server.URL}
	id := uuid.NewString()
	for _, at := range []string{batchesPath, batchesPath + "/" + id, batchesPath + "/" + id + "?wait=1m",
		batchesPath + "/" + id + "/results"} {
		f.send("GET", at, "").Problem(http.StatusGatewayTimeout, "timeout", "the store has not answered for")
	}
	f.send("POST", resultPath, `{"id":"`+id+`"}`).Into(http.StatusGatewayTimeout, &struct{}{})
}

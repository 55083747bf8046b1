package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

const actors = "/api/v1/actors"

type basket struct {
	Items int
	Seal  []byte `msgpack:",omitempty"`
}

// baskets runs a worker with a type of actors.
func (f *fixture) baskets() {
	f.Helper()
	w, err := workers.New(f.client, workers.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	of := futures.DefineActor[basket]("basket")
	parts := futures.DefineParts[string](of, "item")
	put := func(ctx context.Context, _ *basket, name string) (int, error) {
		return 0, parts.Set(ctx, futures.ActorKey(ctx), name, name)
	}
	require.NoError(f, w.Register(futures.DefineMethod(of, "put", put).Bind()))
	require.NoError(f, w.Register(futures.DefineMethod(of, "add", func(_ context.Context, b *basket, n int) (int, error) {
		b.Items += n
		return b.Items, nil
	}).Bind()))
	has := func(_ context.Context, b basket, n int) (bool, error) { return b.Items >= n, nil }
	require.NoError(f, w.Register(futures.DefineReader(of, "has", has).Bind()))
	require.NoError(f, w.Register(futures.DefineMethod(of, "seal", func(_ context.Context, b *basket, _ any) (int, error) {
		b.Seal = []byte{0, 0xff}
		return 0, nil
	}).Bind()))
	storetest.Background(f, w.Run)
	<-w.Ready()
}

func TestActorsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.baskets()
	var types struct{ Types []string }
	var read httpapi.Future
	f.send("POST", actors+"/basket/a/has?wait=30s", "0").Into(http.StatusCreated, &read)
	require.JSONEq(t, "true", string(read.Result.Output))
	require.Nil(t, read.Lane, "it waits for no call")
	require.JSONEq(t, `{"types": []}`, string(f.send("GET", actors, "").Into(http.StatusOK, &types).Body))
	var keys []string
	for escaped, key := range map[string]string{
		"a": "a", "a%2Fb:c%20d": "a/b:c d", "%2E%2E": "..", "%2e": ".", "100%25": "100%", "%252F": "%2F", "x+y&z": "x+y&z",
		"%2F%2F": "//", "m%C3%BCll": "müll", "a:pause": "a:pause", "%0A": "\n",
	} {
		at := actors + "/basket/" + escaped
		f.send("GET", at, "").Problem(http.StatusNotFound, "not_found", "it has no state")
		var called httpapi.Future
		f.send("POST", at+"/add?wait=30s&tag=t&label=l&priority=7&max_retries=1", "2").Into(http.StatusCreated, &called)
		require.JSONEq(t, "2", string(called.Result.Output), key)
		require.Equal(t, key, called.Lane.Key)
		require.Equal(t, []string{"t"}, called.Tags)
		require.Equal(t, 7, called.Priority)
		require.Equal(t, "l", called.Label)
		require.Equal(t, 1, called.MaxRetries)
		var got httpapi.Actor
		f.send("GET", at, "").Into(http.StatusOK, &got)
		require.JSONEq(t, `{"Items": 2}`, string(got.State))
		require.Equal(t, called.ID, got.Call)
		require.Equal(t, key, got.Key)
		keys = append(keys, key)
	}
	f.send("GET", actors, "").Into(http.StatusOK, &types)
	require.Equal(t, []string{"basket"}, types.Types)
	var listed []string
	for after := ""; ; {
		var page struct {
			Actors []futures.ActorView
			Next   string
		}
		f.send("GET", actors+"/basket?limit=4&after="+url.QueryEscape(after), "").Into(http.StatusOK, &page)
		for _, one := range page.Actors {
			listed = append(listed, one.Key)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.ElementsMatch(t, keys, listed)
	require.Equal(t, http.StatusCreated, f.send("POST", actors+"/basket/a/seal?wait=30s", "").Status)
	require.Contains(t, string(f.send("GET", actors+"/basket/a", "").Body), `"Seal":{"bytes":2,"hex":"00ff"}`)
	require.Equal(t, http.StatusNoContent, f.send("DELETE", actors+"/basket/%2E%2E", "").Status)
	f.send("DELETE", actors+"/basket/%2E%2E", "").Problem(http.StatusNotFound, "not_found", "actor basket/..")
}

// TestPartsOfActorsOverHTTP pages through the parts of an actor.
func TestPartsOfActorsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.baskets()
	at := actors + "/basket/a%2Fb"
	require.JSONEq(t, `{"parts": []}`, string(f.send("GET", at+"/parts", "").Body))
	for _, name := range []string{"b", "c", "a/\xc3\xa9"} {
		require.Equal(t, http.StatusCreated, f.send("POST", at+"/put?wait=30s", `"`+name+`"`).Status)
	}
	var one httpapi.Actor
	f.send("GET", at, "").Into(http.StatusOK, &one)
	require.True(t, one.Parts)
	var names []string
	for after := ""; ; {
		var page struct {
			Parts []futures.PartView
			Next  string
		}
		f.send("GET", at+"/parts?limit=2&after="+url.QueryEscape(after), "").Into(http.StatusOK, &page)
		for _, p := range page.Parts {
			names = append(names, p.Name)
			require.Positive(t, p.Size)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.Equal(t, []string{"item/a/\xc3\xa9", "item/b", "item/c"}, names)
	f.send("GET", at+"/parts?limit=101", "").Problem(http.StatusUnprocessableEntity, "bad_request", "limit")
	f.send("GET", actors+"/a%2Fb/k/parts", "").Problem(http.StatusBadRequest, "bad_name", "type of actors")
}

// TestCallsOfActorsAreSubmits has a call be repeated by its key, and wait for its time.
func TestCallsOfActorsAreSubmits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.baskets()
	at := actors + "/basket/a/add"
	var first, second httpapi.Future
	a := f.send("POST", at, "1", "Idempotency-Key", "k").Into(http.StatusCreated, &first)
	require.Equal(t, path+"/"+first.ID.String(), a.Header.Get("Location"))
	f.send("POST", at, "1", "Idempotency-Key", "k").Into(http.StatusOK, &second)
	require.Equal(t, first.ID, second.ID)
	f.send("POST", at, "2", "Idempotency-Key", "k").Problem(http.StatusConflict, "id_in_use", "")
	var later httpapi.Future
	deadline := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Millisecond)
	f.send("POST", at+"?delay_ms=3600000&queue=q&tag=a&tag=b&priority=3&max_retries=2&backoff_ms=4000&timeout_ms=5000"+
		"&expires_ms=6000000&deadline="+url.QueryEscape(deadline.Format(time.RFC3339Nano)), "1").
		Into(http.StatusCreated, &later)
	require.EqualValues(t, "delayed", later.State)
	require.Equal(t, "q", later.Queue)
	require.Equal(t, []string{"a", "b"}, later.Tags)
	require.Equal(t, [2]int{3, 2}, [2]int{later.Priority, later.MaxRetries})
	require.EqualValues(t, 5000, later.TimeoutMS)
	require.Equal(t, deadline, later.Deadline.UTC())
	require.WithinDuration(t, later.SubmittedAt.Add(9600*time.Second), *later.ExpiresAt, time.Second, "behind its delay")
	row, err := f.client.Cluster().Get(t.Context(), later.ID)
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, row.Spec.Backoff.Base)
	for query, retries := range map[string]int{"": 3, "?max_retries=0": 0, "?max_retries=00": 0} {
		var call httpapi.Future
		f.send("POST", at+query, "1").Into(http.StatusCreated, &call)
		require.Equal(t, retries, call.MaxRetries, query)
	}
	f.send("POST", at+"?max_retries=-1", "1").Problem(http.StatusUnprocessableEntity, "bad_request", "max_retries")
	f.send("POST", at+"?require_fit=true&queue=nobody", "1").Problem(http.StatusConflict, "unfit_worker", "")
}

func TestCallsOfModulesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	m, err := modules.Of(f.client.Cluster()).Put(t.Context(), []byte("a module"), "count")
	require.NoError(t, err)
	var called httpapi.Future
	f.send("POST", actors+"/counter/a/wasm:count%2Fadd", "1").Into(http.StatusCreated, &called)
	require.Equal(t, "wasm:"+m.CID+"/add", called.Function)
	require.Equal(t, "actor.counter", called.Lane.Kind)
}

func TestCallsOfActorsThatAreWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("POST", actors+"/basket/a/add", "1").Problem(http.StatusNotFound, "not_found", "none has been called yet")
	f.baskets()
	f.send("POST", actors+"/basket/a/ad", "1").Problem(http.StatusNotFound, "not_found",
		"of type basket: add, has, put, seal")
	f.send("POST", actors+"/counter/a/wasm:none%2Fadd", "1").Problem(http.StatusNotFound, "not_found", "wasm:none/add")
	f.send("POST", actors+"/no%2Ftype/a/add", "1").Problem(http.StatusBadRequest, "bad_name", "type of actors")
	f.send("GET", actors+"/no%2Ftype", "").Problem(http.StatusBadRequest, "bad_name", "type of actors")
	f.send("GET", actors+"/basket/"+strings.Repeat("k", 257), "").Problem(http.StatusBadRequest, "bad_name", "257 bytes")
	f.send("GET", actors+"/basket/%FF", "").Problem(http.StatusBadRequest, "bad_name", "UTF-8")
	f.send("GET", actors+"/basket?limit=1001", "").Problem(http.StatusUnprocessableEntity, "bad_request", "limit")
	f.send("GET", actors+"/basket?page=2", "").Problem(http.StatusUnprocessableEntity, "bad_request", "page")
	f.send("POST", actors+"/basket/a/add", "{").Problem(http.StatusBadRequest, "bad_request", "")
	f.send("POST", actors+"/basket/a/add?wait=x", "1").Problem(http.StatusBadRequest, "bad_request", "use a duration")
	f.send("POST", actors+"/basket/a/add?priority=256", "1").Problem(http.StatusUnprocessableEntity, "bad_request",
		"priority")
	f.send("POST", actors+"/basket/a/add?retries=1", "1").Problem(http.StatusUnprocessableEntity, "bad_request", "retries")
	f.send("POST", actors+"/basket/a/add", `"`+strings.Repeat("x", 8<<20)+`"`).Problem(http.StatusRequestEntityTooLarge,
		"too_large", "8388608")
	var kinds struct{ Kinds []httpapi.LaneKind }
	f.send("GET", lanes, "").Into(http.StatusOK, &kinds)
	require.Empty(t, kinds.Kinds)
}

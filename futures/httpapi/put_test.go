package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
)

func TestPutAValue(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	put := path + ":put"
	var made, again httpapi.Submitted
	const all = "?key=k&codec=json&label=l&tag=t:1&tag=a"
	a := f.send("POST", put+all, `{"a":1}`, "Content-Type", "application/octet-stream")
	a.Into(http.StatusCreated, &made)
	require.Equal(t, path+"/"+made.ID.String(), a.Header.Get("Location"))
	f.send("POST", put+"?key=k&codec=json", `{"a":1}`).Into(http.StatusOK, &again)
	require.Equal(t, httpapi.Submitted{ID: made.ID, Existed: true}, again)
	f.send("POST", put+"?key=k&codec=json", `{"a":2}`).Problem(http.StatusConflict, "id_in_use", "other value")
	f.send("POST", put+"?codec=json", `{"a":1}`, "Idempotency-Key", "k").Into(http.StatusOK, &again)
	require.Equal(t, made.ID, again.ID)
	f.send("POST", put+"?key=k&codec=json", `{"a":1}`, "Idempotency-Key", "k").Into(http.StatusOK, &again)
	f.send("POST", put+"?key=k", "x", "Idempotency-Key", "l").Problem(http.StatusBadRequest, "bad_request", "differ")
	var got httpapi.Future
	f.send("GET", path+"/"+made.ID.String(), "").Into(http.StatusOK, &got)
	require.EqualValues(t, "realized", got.State)
	require.Equal(t, layout.FunctionPut, got.Function)
	require.Equal(t, []string{"a", "t:1"}, got.Tags)
	var tagged struct{ Futures []httpapi.Future }
	f.send("GET", path+"?tag=t:1", "").Into(http.StatusOK, &tagged)
	require.Len(t, tagged.Futures, 1)
	require.Equal(t, made.ID, tagged.Futures[0].ID)
	require.JSONEq(t, `{"a":1}`, string(got.Result.Output))
	f.send("POST", path+"?wait=1m", `{"function":"go:echo","codec":"inputs","inputs":["`+made.ID.String()+`"]}`).
		Into(http.StatusCreated, &got)
	require.Equal(t, `{"a":1}`, got.Result.Value.Data)

	large := strings.Repeat("x", 3<<20)
	f.send("POST", put+"?stored=true", large).Into(http.StatusCreated, &made)
	require.Len(t, f.send("GET", path+"/"+made.ID.String()+"/result", "").Body, len(large))
	f.send("POST", put+"?as_object=true", "x").Problem(http.StatusInsufficientStorage, "no_holder", "object store")
	for _, bad := range []string{"?codec=xml", "?key=", "?nonsense=1", "?stored=perhaps", "?queue=No+Queue",
		"?tag=no+tag"} {
		require.Equal(t, http.StatusBadRequest, f.send("POST", put+bad, "x").Status, bad)
	}
	for _, where := range []string{"", "&stored=true"} {
		f.send("POST", put+"?codec=json"+where, `{"a":`).Problem(http.StatusBadRequest, "bad_future", "codec json")
	}
	f.send("POST", put, "x", "Content-Encoding", "gzip").Problem(http.StatusUnsupportedMediaType, "bad_media_type", "none")
}

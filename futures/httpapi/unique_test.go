package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestUniqueOverHTTP submits unique futures in each way, and releases a key.
func TestUniqueOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const unique = "/api/v1/unique"
	body := func(args, unique string) string {
		return `{"function":"go:echo","args":"` + args + `","unique":` + unique + `}`
	}
	var first, second httpapi.Future
	f.send("POST", path, body("a", `{"key":"k"}`)).Into(http.StatusCreated, &first)
	require.Equal(t, "k", first.Unique.Key)
	require.Equal(t, "end", first.Unique.Until)
	a := f.send("POST", path, body("b", `{"key":"k"}`))
	a.Problem(http.StatusConflict, "not_unique", "with other arguments")
	require.Equal(t, path+"/"+first.ID.String(), a.Header.Get("Location"))
	var said struct {
		About struct{ Unique httpapi.Holder }
	}
	require.NoError(t, json.Unmarshal(a.Body, &said))
	require.Equal(t, httpapi.Holder{ID: first.ID, State: "ready", Key: "k", Name: first.Unique.Name, Until: "end",
		Differs: "arguments"}, said.About.Unique)
	f.send("POST", path, body("b", `{"key":"k","on_conflict":"return"}`)).Into(http.StatusOK, &second)
	require.Equal(t, first.ID, second.ID)
	var many struct{ Futures []httpapi.Submitted }
	f.send("POST", path+":submit", `{"futures":[`+body("b", `{"key":"k","on_conflict":"return"}`)+`]}`).
		Into(http.StatusCreated, &many)
	require.Equal(t, []httpapi.Submitted{{ID: first.ID, Existed: true, Unlike: "arguments"}}, many.Futures)
	f.send("POST", path, body("b", `{"key":"k","on_conflict":"replace","until":"ever"}`)).Into(http.StatusCreated, &second)
	require.NotEqual(t, first.ID, second.ID)
	f.send("GET", path+"/"+first.ID.String(), "").Into(http.StatusOK, &first)
	require.EqualValues(t, "failed", first.State)
	require.Contains(t, first.Failure.Message, second.ID.String())

	var holder httpapi.Holder
	f.send("GET", unique+"?key=k", "").Into(http.StatusOK, &holder)
	require.Equal(t, second.ID, holder.ID)
	require.Equal(t, "ever", holder.Until)
	f.send("DELETE", unique+"?key=k", "").Problem(http.StatusConflict, "wrong_state", "cancel it first")
	f.send("POST", path+"/"+second.ID.String()+":cancel", "{}")
	f.send("DELETE", unique+"?name="+string(holder.Name), "").Into(http.StatusOK, &holder)
	f.send("GET", unique+"?key=k", "").Problem(http.StatusNotFound, "not_found", `key "k": unique name`)
	f.send("POST", path, body("b", `{"for_ms":60000,"until":"claim","by":["function","arguments"]}`)).
		Into(http.StatusCreated, &first)
	require.NotNil(t, first.Unique.FreeAt)
	for _, bad := range []string{`{"until":"later"}`, `{"on_conflict":"drop"}`, `{"by":["label"]}`, `{"for":1}`} {
		require.Equal(t, http.StatusUnprocessableEntity, f.send("POST", path, body("b", bad)).Status, bad)
	}
	f.send("POST", path, body("b", `{"for_ms":1,"until":"ever"}`)).Problem(http.StatusBadRequest, "bad_future", "for ever")
	for _, bad := range []string{"", "?key=k&name=0123456789abcdef0123456789abcdef", "?key="} {
		f.send("GET", unique+bad, "").Problem(http.StatusBadRequest, "bad_request", "one of them")
	}
}

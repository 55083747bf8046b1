package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
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
	a = f.send("POST", path+":submit", `{"futures":[`+body("a", `{"key":"2"}`)+","+body("b", `{"key":"2"}`)+`]}`)
	a.Problem(http.StatusConflict, "not_unique", "task 1 of the same call")
	require.Empty(t, a.Header.Get("Location"), "it is not made")
	require.NotContains(t, string(a.Body), `"about"`)
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

// TestWhatIsEmptyIsNotPassedOver has keys that are empty, and an id of zeros.
func TestWhatIsEmptyIsNotPassedOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("POST", path, `{"function":"go:f"}`, "Idempotency-Key", "").
		Problem(400, "bad_request", "Idempotency-Key is empty")
	for at, body := range map[string]string{
		path: `{"function":"go:f","key":""}`, path + ":submit": `{"futures":[{"function":"go:f","key":""}]}`,
		promises: `{"key":""}`, tasks: `{"handler":"h","input":1,"key":""}`,
	} {
		f.send("POST", at, body).Problem(422, "bad_request", "key")
	}
	f.send("POST", path, `{"function":"go:f","unique":{"key":""}}`).Problem(422, "bad_request", "unique.key")
	const zeros = `"id":"00000000-0000-0000-0000-000000000000"`
	f.send("POST", path, `{"function":"go:f",`+zeros+`}`).Problem(400, "bad_id", "all zeros")
	f.send("POST", promises, `{`+zeros+`}`).Problem(400, "bad_id", "all zeros")
	_, _, err := f.client.Promise(t.Context(), taskWith(futures.Key("")))
	require.ErrorIs(t, err, layout.ErrBadSpec)
	require.ErrorContains(t, err, "empty key")
	f.send("POST", path, `{"function":"go:f","args":"1","input":1}`).
		Problem(400, "bad_request", "input is JSON and excludes args:")
	f.send("POST", path, `{"function":"go:f","delay_ms":99999999999999999999}`).
		Problem(422, "bad_request", "delay_ms: 99999999999999999999 is too much, or no whole number: use at most 92233720368")
	f.send("PUT", lanes+"/a", `{"width":0}`).Problem(422, "bad_request", "width")
	f.send("POST", path+":cancel?tag=old&tag=scratch", "").Problem(400, "bad_request", "2 times")
	f.send("POST", "/api/v1/functions", "x", "Content-Type", "text/plain").
		Problem(415, "bad_media_type", "application/wasm")
}

// taskWith is a task with options.
func taskWith(options ...futures.Option) (t futures.Task) {
	for _, o := range options {
		o(&t)
	}
	return t
}

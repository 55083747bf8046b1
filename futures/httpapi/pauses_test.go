package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

const pauses = "/api/v1/pauses"

func TestPausesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var future httpapi.Future
	f.send("POST", path, `{"function":"go:nobody","queue":"mail"}`).Into(http.StatusCreated, &future)
	var p httpapi.Pause
	f.send("PUT", pauses+"/queue/mail", `{"reason":"why"}`).Into(http.StatusOK, &p)
	require.Equal(t, "mail", p.Name)
	f.send("PUT", pauses+"/function/go:nobody", "").Into(http.StatusOK, &p)
	require.Equal(t, "function", p.What)
	var e httpapi.Explanation
	f.send("GET", path+"/"+future.ID.String()+"/explanation", "").Into(http.StatusOK, &e)
	require.EqualValues(t, "paused", e.Reason)
	var list struct{ Pauses []httpapi.Pause }
	f.send("GET", pauses, "").Into(http.StatusOK, &list)
	require.Len(t, list.Pauses, 2)
	for _, one := range []string{"/queue/mail", "/queue/mail", "/function/go:nobody"} {
		require.Equal(t, http.StatusNoContent, f.send("DELETE", pauses+one, "").Status)
	}
	f.send("GET", pauses, "").Into(http.StatusOK, &list)
	require.Empty(t, list.Pauses)
	f.send("PUT", pauses+"/function/wasm:none%2Frun", "").Problem(http.StatusNotFound, "not_found", "none")
	f.send("PUT", pauses+"/queue/a%20b", "").Problem(http.StatusBadRequest, "bad_name", "a b")
	require.GreaterOrEqual(t, f.send("PUT", pauses+"/worker/x", "").Status, 400)
}

package httpapi_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// holder runs a worker with an object store, and returns its id.
func (f *fixture) holder() string {
	w, err := workers.New(f.client, workers.Options{
		Objects: workers.ObjectOptions{Memory: 4 << 20, Above: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(f, err)
	storetest.Background(f, w.Run)
	<-w.Ready()
	return string(w.ID())
}

func TestCopiesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	first := f.holder()
	var made httpapi.Submitted
	f.send("POST", path+":put?as_object=true", "value").Into(http.StatusCreated, &made)
	at := path + "/" + made.ID.String()
	second := f.holder()
	var said struct{ Worker string }
	f.send("POST", at+":clone", "").Into(http.StatusOK, &said)
	require.Equal(t, second, said.Worker)
	var got httpapi.Future
	f.send("GET", at, "").Into(http.StatusOK, &got)
	require.Len(t, got.HeldBy, 2)
	f.send("POST", at+":clone", "").Problem(http.StatusConflict, "wrong_state", "have a copy")
	f.send("POST", at+":transfer", `{"worker":"`+first+`"}`).Into(http.StatusOK, &said)
	require.Equal(t, first, said.Worker)
	f.send("POST", at+":clone", `{"worker":"0123456789abcdef"}`).
		Problem(http.StatusConflict, "unfit_worker", "no such worker")
	require.Equal(t, "value", string(f.send("GET", at+"/result", "").Body))

	require.Equal(t, http.StatusNoContent, f.send("PUT", at+"/pins/report", "").Status)
	got = httpapi.Future{}
	f.send("GET", at, "").Into(http.StatusOK, &got)
	require.Equal(t, []string{"report"}, got.Pins)
	require.Len(t, got.HeldBy, 1)
	f.send("DELETE", at, "").Problem(http.StatusConflict, "wrong_state", "pinned by report")
	f.send("DELETE", at+"/pins/no%20name", "").Problem(http.StatusBadRequest, "bad_name", "no name")
	require.Contains(t, string(f.send("GET", path+"?function=put", "").Body), got.ID.String())
	require.Equal(t, http.StatusNoContent, f.send("DELETE", at+"/pins/report", "").Status)
	require.Equal(t, http.StatusNoContent, f.send("DELETE", at, "").Status)
	f.send("PUT", at+"/pins/report", "").Problem(http.StatusNotFound, "not_found", "not found")
	f.send("PUT", at+"/pins/no%20name", "").Problem(http.StatusBadRequest, "bad_name", "no name")
}

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestLimitsOverHTTP sets limits, exceeds one, and waits for room in vain.
func TestLimitsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const limits, body = "/api/v1/limits", `{"function":"go:echo"}`
	var view httpapi.LimitsView
	f.send("PUT", limits, `{"pending":2}`).Into(http.StatusOK, &view)
	require.EqualValues(t, 2, view.Limits.Pending)
	f.send("POST", path, body).Into(http.StatusCreated, new(httpapi.Future))
	f.send("POST", path, body).Into(http.StatusCreated, new(httpapi.Future))
	for _, request := range []struct{ at, body string }{
		{path, body}, {path + "?wait_for_room=10ms", body}, {path + ":submit", `{"futures":[` + body + `]}`},
	} {
		a := f.send("POST", request.at, request.body)
		a.Problem(http.StatusTooManyRequests, "limit", "2 futures are pending, of at most 2")
		require.Equal(t, "1", a.Header.Get("Retry-After"))
		var said struct {
			About struct {
				Limit        string
				Used, Max    int
				RetryAfterMS int `json:"retry_after_ms"`
			}
		}
		require.NoError(t, json.Unmarshal(a.Body, &said))
		require.Equal(t, "pending", said.About.Limit)
		require.Equal(t, 2, said.About.Used)
		require.Equal(t, 250, said.About.RetryAfterMS)
	}
	a := f.send("POST", path+":submit", `{"futures":[`+body+`,`+body+`,`+body+`]}`)
	a.Problem(http.StatusTooManyRequests, "limit", "submit fewer at a time")
	require.Empty(t, a.Header.Get("Retry-After"))
	text := string(f.send("GET", "/metrics", "").Body)
	for _, line := range []string{`futura_limit{cluster="default",limit="pending"} 2`,
		`futura_limit_used{cluster="default",limit="pending"} 2`,
		`futura_limit_used{cluster="default",limit="running"} 0`,
		`futura_limit_refused_total{cluster="default",limit="pending"} `} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, `futura_limit{cluster="default",limit="running"}`)
	f.send("GET", limits, "").Into(http.StatusOK, &view)
	require.EqualValues(t, 2, view.Used.Pending)
	f.send("PUT", limits, `{}`).Into(http.StatusOK, &view)
	require.Zero(t, view.Limits)
	f.send("POST", path, body).Into(http.StatusCreated, new(httpapi.Future))
	require.Equal(t, http.StatusUnprocessableEntity, f.send("PUT", limits, `{"pending":-1}`).Status)
	f.send("PUT", limits, `{"bytes":1}`).Into(http.StatusOK, &view)
	f.send("POST", path+":put", "value", "Content-Type", "application/octet-stream").
		Problem(http.StatusTooManyRequests, "limit", "the store holds")
	f.send("PUT", limits, `{}`).Into(http.StatusOK, &view)
	f.send("PUT", limits, `{"per_second":1e12}`).Problem(http.StatusBadRequest, "bad_settings", "submits per second")
	f.send("POST", path+"?wait_for_room=soon", body).Problem(http.StatusBadRequest, "bad_request", "wait_for_room")
}

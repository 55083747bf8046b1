package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

const lanes = "/api/v1/lanes"

func TestLanesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const body = `{"function":"go:nobody","lane":{"kind":"mail","key":"a/b:c d"}}`
	f.send("POST", path, body).Problem(http.StatusNotFound, "not_found", "futura lane set mail")
	var kind httpapi.LaneKind
	f.send("PUT", lanes+"/mail", `{"width":2,"rate":10}`).Into(http.StatusOK, &kind)
	require.Equal(t, httpapi.LaneKind{Name: "mail", Width: 2, Rate: 10, EveryMS: 1000}, kind)
	f.send("PUT", lanes+"/mail", `{"aside":true}`).Into(http.StatusOK, &kind)
	kind = httpapi.LaneKind{}
	f.send("GET", lanes+"/mail", "").Into(http.StatusOK, &kind)
	require.Equal(t, httpapi.LaneKind{Name: "mail", Width: 1, Aside: true}, kind)
	var first, second httpapi.Future
	f.send("POST", path, body).Into(http.StatusCreated, &first)
	f.send("POST", path, body).Into(http.StatusCreated, &second)
	require.False(t, first.InLine)
	require.True(t, second.InLine)
	require.Equal(t, "a/b:c d", second.Lane.Key)
	var e httpapi.Explanation
	f.send("GET", path+"/"+second.ID.String()+"/explanation", "").Into(http.StatusOK, &e)
	require.EqualValues(t, "in_line", e.Reason)
	require.Contains(t, e.Text, "first in line of lane mail/a/b:c d, of width 1, which has admitted 1.")

	const lane = lanes + "/mail/keys/a%2Fb:c%20d"
	var view httpapi.LaneView
	f.send("GET", lane, "").Into(http.StatusOK, &view)
	require.Equal(t, 1, view.Open)
	require.EqualValues(t, second.ID, view.Line[0])
	f.send("PUT", lane, `{"paused":true}`).Into(http.StatusOK, &view)
	require.True(t, view.Paused)
	var list struct{ Lanes []httpapi.LaneView }
	f.send("GET", lanes+"/mail/keys", "").Into(http.StatusOK, &list)
	require.Len(t, list.Lanes, 1)
	list.Lanes = nil
	f.send("GET", lanes+"/mail/keys?after=a%2Fb:c%20d", "").Into(http.StatusOK, &list)
	require.Empty(t, list.Lanes)
	view.Paused = true
	f.send("PUT", lane, `{"paused":false}`).Into(http.StatusOK, &view)

	f.send("POST", lanes+"/mail:pause", "").Into(http.StatusOK, &kind)
	require.True(t, kind.Paused)
	f.send("PUT", lanes+"/mail", `{"max_waiting":1}`).Into(http.StatusOK, &kind)
	require.Equal(t, 1, kind.MaxWaiting)
	f.send("POST", path, `{"function":"go:f","lane":{"kind":"mail","key":"a/b:c d"}}`).
		Problem(http.StatusTooManyRequests, "lane_full", "1 in line")
	f.send("GET", lane, "").Into(http.StatusOK, &view)
	require.Equal(t, [2]int{1, 1}, [2]int{view.Waiting, view.MaxWaiting})
	f.send("PUT", lanes+"/mail", `{"max_waiting":10001}`).Problem(http.StatusUnprocessableEntity, "bad_request", "10000")
	f.send("PUT", lanes+"/mail", `{"width":3}`).Into(http.StatusOK, &kind)
	require.True(t, kind.Paused, "settings leave the pause alone")
	kind = httpapi.LaneKind{}
	f.send("POST", lanes+"/mail:resume", "").Into(http.StatusOK, &kind)
	require.False(t, kind.Paused)
	var kinds struct{ Kinds []httpapi.LaneKind }
	f.send("GET", lanes, "").Into(http.StatusOK, &kinds)
	require.Len(t, kinds.Kinds, 1)
	f.send("DELETE", lanes+"/mail", "").Problem(http.StatusConflict, "in_use", "mail")
	for _, id := range []string{first.ID.String(), second.ID.String()} {
		f.send("POST", path+"/"+id+":cancel", "").Into(http.StatusOK, &first)
	}
	require.Equal(t, http.StatusNoContent, f.send("DELETE", lanes+"/mail", "").Status)
	for _, gone := range []string{lanes + "/mail", lanes + "/mail/keys", lane} {
		f.send("GET", gone, "").Problem(http.StatusNotFound, "not_found", "mail")
	}
	f.send("POST", lanes+"/mail:pause", "").Problem(http.StatusNotFound, "not_found", "mail")
	f.send("PUT", lane, `{"paused":true}`).Problem(http.StatusNotFound, "not_found", "mail")
	f.send("PUT", lanes+"/mail", `{"rate":1,"every_ms":9223372036854775807}`).
		Problem(http.StatusBadRequest, "bad_request", "every_ms")
	f.send("PUT", lanes+"/mail", `{"width":2000000}`).Problem(http.StatusBadRequest, "bad_settings", "2000000")
	f.send("PUT", lanes+"/no%20name", `{}`).Problem(http.StatusBadRequest, "bad_name", "no name")
}

// TestBundlesOverHTTP sets what bundles of a kind are.
func TestBundlesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var kind httpapi.LaneKind
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","most":50,"linger_ms":100}`).Into(http.StatusOK, &kind)
	want := httpapi.LaneKind{Name: "write", Width: 1, Bundle: "go:write", Most: 50, Bytes: 1_000_000, LingerMS: 100}
	require.Equal(t, want, kind)
	kind = httpapi.LaneKind{}
	f.send("GET", lanes+"/write", "").Into(http.StatusOK, &kind)
	require.Equal(t, want, kind)
	f.send("PUT", lanes+"/write", `{"most":50}`).Problem(http.StatusBadRequest, "bad_settings", "without a function")
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","linger_ms":9000000000000000}`).
		Problem(http.StatusBadRequest, "bad_request", "minute")
	kind = httpapi.LaneKind{}
	f.send("PUT", lanes+"/write", `{}`).Into(http.StatusOK, &kind)
	require.Equal(t, httpapi.LaneKind{Name: "write", Width: 1}, kind)
}

package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestBulkChanges previews and makes each change of many futures, and leaves others alone.
func TestBulkChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var ids []string
	for i := range 12 {
		var got httpapi.Future
		function := []string{"go:fail", "go:echo", "go:nowhere"}[i%3]
		wait := "?wait=1m"
		if function == "go:nowhere" {
			wait = ""
		}
		f.send("POST", path+wait, fmt.Sprintf(`{"function":%q,"args":"x","max_retries":0,"tags":["tag%d"]}`, function, i/6)).
			Into(http.StatusCreated, &got)
		ids = append(ids, got.ID.String())
	}
	states := func() (all []string) {
		for _, id := range ids {
			var got httpapi.Future
			if a := f.send("GET", path+"/"+id, ""); a.Status == http.StatusOK {
				a.Into(http.StatusOK, &got)
			}
			all = append(all, string(got.State))
		}
		return all
	}
	before := slices.Repeat([]string{"failed", "realized", "ready"}, 4)
	require.Equal(t, before, states())
	bulk := func(action, query string) (b httpapi.Bulk) {
		t.Helper()
		f.send("POST", path+":"+action+"?"+query, "").Into(http.StatusOK, &b)
		return b
	}
	require.Equal(t, httpapi.Bulk{Matched: 2}, bulk("cancel", "tag=tag0&preview=true"))
	require.Equal(t, httpapi.Bulk{Matched: 4}, bulk("retry", "state=failed&preview=true"))
	require.Equal(t, httpapi.Bulk{Matched: 4}, bulk("delete", "tag=tag1&preview=true"))
	require.Equal(t, httpapi.Bulk{}, bulk("cancel", "state=failed"))
	for _, empty := range []string{
		":cancel?tag=&state=ready", ":delete?state=realized&function=", ":fork?state=failed&queue=",
		":cancel?state=ready&batch=", ":fork?state=failed&batch=",
	} {
		a := f.send("POST", path+empty, `{"name":"n"}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, empty)
		require.Contains(t, string(a.Body), "it is empty")
	}
	require.Equal(t, before, states())
	require.Equal(t, httpapi.Bulk{Matched: 2, Changed: 2}, bulk("cancel", "tag=tag0&reason="+url.QueryEscape("no more")))
	require.Equal(t, httpapi.Bulk{Matched: 2}, bulk("retry", "tag=tag0&preview=true"), "what was cancelled stays so")
	require.Equal(t, httpapi.Bulk{Matched: 4, Changed: 4}, bulk("delete", "tag=tag1"))
	require.Equal(t, []string{"failed", "realized", "failed", "failed", "realized", "failed", "", "", "ready", "", "",
		"ready"}, states())
	var cancelled httpapi.Future
	f.send("GET", path+"/"+ids[2], "").Into(http.StatusOK, &cancelled)
	require.Contains(t, cancelled.Failure.Message, "no more")

	f.send("POST", path+":retry", "").Problem(http.StatusBadRequest, "bad_request", "name the futures")
	f.send("POST", path+":retry?preview=true", "").Problem(http.StatusBadRequest, "bad_request", "name the futures")
	f.send("POST", path+":retry?batch=x", "").Problem(http.StatusBadRequest, "bad_request", "with it")
	f.send("POST", path+":retry?state=nonsense", "").Problem(http.StatusUnprocessableEntity, "bad_request", "state")
	f.send("POST", path+":retry?since=yesterday", "").Problem(http.StatusBadRequest, "bad_request", "since")
	f.send("POST", path+":retry?tag=tag0&cursor=!", "").Problem(http.StatusBadRequest, "bad_request", "cursor")
	f.send("POST", path+":retry?tag=tag0&statee=x", "").Problem(http.StatusUnprocessableEntity, "bad_request", "statee")
}

// longText is stored apart from the record of its future.
var longText = strings.Repeat("0123456789", 100_000)

// TestArguments returns the arguments of futures as they were submitted.
func TestArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, c := range []struct{ body, codec, media, want string }{
		{`{"function":"go:x"}`, "raw", "application/octet-stream", ""},
		{`{"function":"go:x","args":"text"}`, "raw", "application/octet-stream", "text"},
		{`{"function":"go:x","input":{"a":[1,2]}}`, "json", "application/json", `{"a":[1,2]}`},
		{fmt.Sprintf(`{"function":"go:x","args":%q}`, longText), "raw", "application/octet-stream", longText},
	} {
		var got httpapi.Future
		f.send("POST", path, c.body).Into(http.StatusCreated, &got)
		at := path + "/" + got.ID.String() + "/arguments"
		a := f.send("GET", at, "")
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, c.want, string(a.Body))
		require.Equal(t, c.media, a.Header.Get("Content-Type"))
		require.Contains(t, []string{"", c.codec}, a.Header.Get("Futura-Codec"))
		if len(c.want) > 10 {
			require.Equal(t, c.want[2:5], string(f.send("GET", at, "", "Range", "bytes=2-4").Body))
		}
		f.send("GET", at+"?x=1", "").Problem(http.StatusBadRequest, "bad_request", "no parameter")
	}
	f.send("GET", path+"/nonsense/arguments", "").Problem(http.StatusBadRequest, "bad_id", "")
	f.send("GET", path+"/01995b4e-6f3a-7c1e-9d2b-0123456789ab/arguments", "").Problem(http.StatusNotFound, "not_found", "")
}

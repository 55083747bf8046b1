package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// TestACursorIsOfItsList goes on with the filter of a page, and with others.
func TestACursorIsOfItsList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for range 4 {
		_, err := f.client.Submit(t.Context(), futures.Task{Function: "go:none", Tags: []string{"a"}})
		require.NoError(t, err)
	}
	queries := []string{"", "&state=ready", "&tag=a", "&function=go:none", "&oldest=true", "&items=true",
		"&items=true&oldest=true", "&function=go:none&queue=default", "&since=2020-01-01T00:00:00Z",
		"&until=2100-01-01T00:00:00Z"}
	for _, query := range queries {
		var page struct{ Cursor string }
		f.send("GET", path+"?limit=2"+query, "").Into(http.StatusOK, &page)
		require.NotEmpty(t, page.Cursor)
		for _, other := range queries {
			answer := f.send("GET", path+"?limit=2&cursor="+page.Cursor+other, "")
			if other == query {
				var rest struct{ Futures []httpapi.Future }
				answer.Into(http.StatusOK, &rest)
				require.Len(t, rest.Futures, 2)
			} else {
				answer.Problem(http.StatusBadRequest, "bad_cursor", "with the filter of the list that it is of")
			}
		}
	}
	var page struct{ Cursor string }
	f.send("GET", path+"?limit=2&tag=a", "").Into(http.StatusOK, &page)
	for _, action := range []string{"cancel", "retry", "delete", "fork"} {
		f.send("POST", path+":"+action+"?preview=true&tag=b&cursor="+page.Cursor, "").
			Problem(http.StatusBadRequest, "bad_cursor", "start again")
	}
}

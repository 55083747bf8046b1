package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
)

// TestTimesThatJSONCantWrite submits futures with times behind the year 9999: they are refused, and one that is in the
// store spoils no list.
func TestTimesThatJSONCantWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, times := range []string{
		`"not_before":"9999-12-31T23:59:59-01:00"`, `"deadline":"9999-12-31T23:59:59-01:00"`,
		`"not_before":"9999-12-31T23:59:59Z","expires_ms":1000`,
	} {
		f.send("POST", path, `{"function":"go:f",`+times+`}`).
			Problem(http.StatusBadRequest, "bad_future", "the end of the year 9999")
	}
	f.send("POST", path, `{"function":"go:f","deadline":"9999-12-31T23:59:59Z"}`).
		Into(http.StatusCreated, new(httpapi.Future))
	made, err := f.client.Cluster().Submit(t.Context(), []fdbmodel.Submission{{
		Spec: layout.Spec{Function: "go:f"}, NotBefore: time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC),
	}})
	require.NoError(t, err)
	var late httpapi.Future
	f.send("GET", path+"/"+made[0].ID.String(), "").Into(http.StatusOK, &late)
	require.Equal(t, "9999-12-31T23:59:59.999Z", late.DueAt.Format(time.RFC3339Nano))
	var list struct{ Futures []httpapi.Future }
	f.send("GET", path, "").Into(http.StatusOK, &list)
	require.Len(t, list.Futures, 2)
}

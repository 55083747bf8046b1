package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

func TestTracesOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var made httpapi.Future
	f.send("POST", path, `{"function":"go:echo","trace":{"traceparent":"00-a-b-01"}}`).Into(http.StatusCreated, &made)
	f.send("GET", path+"/"+made.ID.String(), "").Into(http.StatusOK, &made)
	require.Equal(t, map[string]string{"traceparent": "00-a-b-01"}, made.Trace)
}

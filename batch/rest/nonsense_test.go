package rest_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
)

// TestNonsenseCostsLittle fills requests with as many JSON values as they can
// have.
func TestNonsenseCostsLittle(t *testing.T) {
	f := newFixture(t, rest.Options{Client: newClient(t)})
	fill := func(size int, before, one, after string) string {
		return before + strings.Repeat(one, (size-len(before)-len(after))/len(one)) + after
	}
	large, template := 15<<20, 1<<20-100
	if testing.Short() {
		large /= 4
	}
	for name, c := range map[string]struct{ path, body string }{
		"parameters": {"/execute", fill(large, `{"function_id":"f","parameters":[{}`, `,{}`, `]}`)},
		"variables":  {"/execute", fill(large, `{"function_id":"f","config":{"env_vars":[{}`, `,{}`, `]}}`)},
		"attributes": {"/execute", fill(large, `{"function_id":"f","config":{"attributes":{"input":[{}`, `,{}`, `]}}}`)},
		"batch": {
			"/execute/batch",
			fill(template, `{"template":{"config":{"attributes":{"input":[{}`, `,{}`, `]}}},"arguments":[["a"]]}`),
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := f.send("POST", "/api/v1/functions"+c.path, c.body)
		runtime.ReadMemStats(&after)
		require.Equal(t, http.StatusBadRequest, a.Status, name)
		require.Less(t, len(a.Body), 16<<10, name)
		// The body, the buffers that it grows in, and its copies while it is checked.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(c.body)), name)
	}
}

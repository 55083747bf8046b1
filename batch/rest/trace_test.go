package rest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
)

// TestABatchIsPartOfTheTraceOfItsRequest reads the headers of requests.
func TestABatchIsPartOfTheTraceOfItsRequest(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	long := "a=" + strings.Repeat("x", 510)
	traced := func(state string) map[string]string {
		trace := map[string]string{"traceparent": parent}
		if state != "" {
			trace["tracestate"] = state
		}
		return trace
	}
	f := newFixture(t, rest.Options{})
	const body = `{"template":{"function_id":"f","method":"m"},"arguments":[["a"]]}`
	for name, c := range map[string]struct {
		headers []string
		want    map[string]string
	}{
		"none":             {nil, nil},
		"a trace":          {[]string{"Traceparent", parent}, traced("")},
		"with a state":     {[]string{"traceparent", parent, "tracestate", long}, traced(long)},
		"a long state":     {[]string{"traceparent", parent, "tracestate", long + "x"}, traced("")},
		"a strange state":  {[]string{"traceparent", parent, "tracestate", "a=\xff"}, traced("")},
		"a state alone":    {[]string{"tracestate", "a=b"}, nil},
		"another version":  {[]string{"traceparent", "01" + parent[2:]}, nil},
		"more":             {[]string{"traceparent", parent + "-00"}, nil},
		"less":             {[]string{"traceparent", parent[:54]}, nil},
		"upper case":       {[]string{"traceparent", strings.ToUpper(parent)}, nil},
		"no trace":         {[]string{"traceparent", "00-" + strings.Repeat("0", 32) + parent[35:]}, nil},
		"no span":          {[]string{"traceparent", parent[:36] + strings.Repeat("0", 16) + parent[52:]}, nil},
		"other separators": {[]string{"traceparent", strings.ReplaceAll(parent, "-", "_")}, nil},
	} {
		require.Equal(t, 200, f.send("POST", submitPath, body, c.headers...).Status, name)
		f.head.mu.Lock()
		require.Equal(t, c.want, f.head.trace, name)
		f.head.mu.Unlock()
	}
}

package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// FuzzRequests sends arbitrary requests: every answer is JSON, none is a server
// error, and the cluster is consistent afterwards.
func FuzzRequests(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"POST", path, `{"function":"go:f","args":"x","key":"k","requirements":{"cpu_millis":1}}`},
		{"POST", path, `{"function":"go:f","delay_ms":9223372036854775807,"not_before":"9999-12-31T00:00:00Z"}`},
		{"POST", path, `{"function":"go:f","priority":1.5,"max_retries":-1,"env":{"A":"\u0000"},"argv":null}`},
		{"POST", path + ":submit", `{"futures":[{"function":"go:f"},{"function":"go:f","id":"` + never + `"}]}`},
		{"POST", path + ":submit", `{"futures":[{"function":"go:f","id":"` + never + `"},{"function":"go:g",` +
			`"codec":"inputs","inputs":["` + never + `"]},{"function":"go:h","input":[{"$future":"` + never + `"}]}]}`},
		{"GET", path + "/" + never + "/graph?dependants=true&depth=3&limit=2&fan=1", ""},
		{"PUT", lanes + "/write", `{"bundle":"go:write","target":"/table"}`},
		{"POST", tasks, `{"handler":"write","input":{"table":"x"},"delay_ms":1}`},
		{"POST", tasks + ":submit", `{"tasks":[{"handler":"write","input":{"table":{}}},{"handler":"write","input":1}]}`},
		{"GET", tasks + "/" + never + "/result?wait=1ms", ""},
		{"GET", path + "?limit=1&cursor=AAAAAAAAAAAAAAAAAAAAAAAA", ""},
		{"GET", path + "/" + never + ":cancel", ""},
		{"POST", path + "/" + never + ":cancel", `{"reason":"r"}`},
		{"DELETE", path + "/%2e%2e", ""},
		{"POST", "/api/v1/functions?alias=a", "\x00asm"},
		{"GET", "/api/v1/cluster", "[]"},
		{"POST", actors + "/account/a%2Fb/deposit?priority=7&tag=a&tag=b&max_retries=0", "5"},
		{"GET", actors + "/account/%2e%2e", ""},
		{"GET", actors + "/account/a%2Fb/parts?after=%FF&limit=2", ""},
		{"GET", actors + "/account?after=%FF&limit=2", ""},
		{"DELETE", actors + "/account/%25", ""},
		{"POST", "/api/v1/jobs/q:append", `{"input":[{"a":1},2],"producer":"p","sequence":9223372036854775807}`},
		{"POST", "/api/v1/jobs/q/consumers/c/parked:retry", `{"indexes":[1,-1]}`},
		{"GET", "/api/v1/jobs/q/log?from=9223372036854775807&limit=1000", ""},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	db := embedded.OpenMemory(embedded.Options{})
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	client, err := futures.New(context.Background(), db, futures.Options{})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, client.Close(context.Background())) })
	handler := httpapi.Handler(client, httpapi.Options{})
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(u.Path, "/api/") || u.Query().Get("wait") != "" {
			t.Skip()
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+target, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Less(t, w.Code, http.StatusInternalServerError, "%s %s %q: %s", method, target, body, w.Body)
		if w.Body.Len() > 0 && w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect {
			require.True(t, json.Valid(w.Body.Bytes()), "%s", w.Body)
		}
		report, err := audit.Check(t.Context(), client.Cluster(), audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	})
}

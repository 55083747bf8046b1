package httpapi_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/futures/httpapi"
)

// allocated returns how many bytes fn allocates, including freed ones.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNonsenseCostsLittle sends 16 MB of entirely invalid JSON.
func TestNonsenseCostsLittle(t *testing.T) {
	f := newFixture(t, httpapi.Options{})
	const size = 15 << 20
	fill := func(before, one string) string { return before + strings.Repeat(one, (size-len(before))/len(one)) }
	for name, body := range map[string]string{
		"futures":   fill(`{"futures":[{}`, `,{}`) + `]}`,
		"lists":     fill(`{"futures":`, `[`),
		"fields":    fill(`{"futures":[{"function":"go:f"`, `,"x":{"":0}`) + `}]}`,
		"arguments": fill(`{"futures":[{"function":"go:f","argv":[""`, `,""`) + `]}]}`,
		"objects":   fill(`{"futures":[`, `{"a":`),
	} {
		used := allocated(func() {
			a := f.send("POST", path+":submit", body)
			require.GreaterOrEqual(t, a.Status, 400, name)
			require.Less(t, a.Status, 500, name)
			require.Less(t, len(a.Body), 16<<10, name)
		})
		// The body, the buffer that it grows in, and the decoded values.
		require.Less(t, used, uint64(8*size), name)
	}
	rows, _, err := f.client.List(t.Context(), inspect.Filter{}, nil, 0)
	require.NoError(t, err)
	require.Empty(t, rows)
}

// TestErrorsAreFew sends as many invalid futures as one request may have.
func TestErrorsAreFew(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var p httpapi.Problem
	f.send("POST", path+":submit", `{"futures":[{}`+strings.Repeat(`,{}`, 999)+`]}`).
		Into(http.StatusUnprocessableEntity, &p)
	require.Len(t, p.Errors, 24)
	f.send("POST", path+":submit", `{"futures":[{}`+strings.Repeat(`,{}`, 1000)+`]}`).
		Into(http.StatusUnprocessableEntity, &p)
	require.Contains(t, p.Detail, "1000")
	f.send("POST", path, `{"function":"go:f","`+strings.Repeat("x", 1<<20)+`":1}`).
		Into(http.StatusUnprocessableEntity, &p)
	require.Less(t, len(p.Detail), 1000)
}

// TestAFunctionsOwnInputIsItsOwn sends large and deeply nested input.
func TestAFunctionsOwnInputIsItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, input := range []string{
		`[0` + strings.Repeat(`,0`, 1<<20) + `]`, strings.Repeat(`[`, 1000) + strings.Repeat(`]`, 1000), `"text"`, `null`,
	} {
		require.Equal(t, http.StatusCreated, f.send("POST", path, `{"function":"go:f","input":`+input+`}`).Status)
	}
	f.send("POST", path, `{"function":"go:f","env":{"input":{}}}`).Problem(422, "bad_request", "env")
}

// TestListsOfLargeFuturesAreShort lists more bytes than a page may have.
func TestListsOfLargeFuturesAreShort(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const requests, each = 2, 250
	one := `{"function":"go:f","argv":["` + strings.Repeat("x", 30_000) + `"]}`
	for range requests {
		body := `{"futures":[` + one + strings.Repeat(","+one, each-1) + `]}`
		require.Equal(t, http.StatusCreated, f.send("POST", path+":submit", body).Status)
	}
	seen := map[string]bool{}
	var page struct {
		Futures []struct{ ID string }
		Cursor  string
	}
	for first := true; first || page.Cursor != ""; first = false {
		page.Futures = nil
		a := f.send("GET", path+"?limit=1000&cursor="+page.Cursor, "")
		require.Less(t, len(a.Body), 12<<20)
		page.Cursor = ""
		a.Into(http.StatusOK, &page)
		for _, found := range page.Futures {
			require.False(t, seen[found.ID])
			seen[found.ID] = true
		}
	}
	require.Len(t, seen, requests*each)
}

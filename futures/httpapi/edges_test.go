package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// inputID is the nth id that tests give to futures.
func inputID(n int) string { return fmt.Sprintf("01995b4e-6f3a-7c1e-9d2b-%012x", n) }

func TestInputsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	submit := func(body string) (got httpapi.Future) {
		t.Helper()
		f.send("POST", path, body).Into(http.StatusCreated, &got)
		return got
	}
	first := submit(`{"function":"go:upper","args":"a"}`)
	second := submit(`{"function":"go:upper","args":"b","delay_ms":60000}`)
	both := submit(fmt.Sprintf(`{"function":"go:echo","codec":"inputs","inputs":[%q,%q]}`, first.ID, second.ID))
	require.EqualValues(t, "blocked", both.State)
	require.Equal(t, 2, both.InputCount)
	require.Equal(t, []futures.ID{first.ID, second.ID}, both.Inputs)
	require.ElementsMatch(t, []futures.ID{first.ID, second.ID}, both.WaitsFor)
	f.send("GET", path+"/"+first.ID.String(), "").Into(http.StatusOK, &first)
	require.Equal(t, []futures.ID{both.ID}, first.Dependants)
	require.False(t, first.MoreDependants)
	var page struct{ Futures []httpapi.Future }
	f.send("GET", path+"?state=blocked", "").Into(http.StatusOK, &page)
	require.Len(t, page.Futures, 1)
	require.Equal(t, both.ID, page.Futures[0].ID)
	require.Equal(t, 2, page.Futures[0].InputCount)

	f.work()
	f.send("POST", path+"/"+second.ID.String()+":retry", "").Into(http.StatusOK, &second)
	var ended httpapi.Future
	f.send("GET", path+"/"+both.ID.String()+"?wait=1m", "").Into(http.StatusOK, &ended)
	require.Equal(t, &httpapi.Bytes{Encoding: "text", Data: "AB"}, ended.Result.Value)
	require.Empty(t, ended.WaitsFor)
	require.Equal(t, both.Inputs, ended.Inputs)

	// Results take the place of references in JSON.
	typed := submit(`{"function":"go:bill","input":{"item":"tea","count":2,"cents":150}}`)
	quoted := submit(fmt.Sprintf(`{"function":"go:echo","input":[{"$future":%q},7]}`, typed.ID))
	require.Equal(t, []futures.ID{typed.ID}, quoted.Inputs)
	f.send("GET", path+"/"+quoted.ID.String()+"?wait=1m", "").Into(http.StatusOK, &quoted)
	require.JSONEq(t, `[{"cents":300,"for":"tea"},7]`, string(quoted.Result.Output))
}

func TestManyFuturesOfARequestUseEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	const n = 250 // several transactions
	items := []string{fmt.Sprintf(`{"function":"go:upper","id":%q,"args":"x"}`, inputID(0))}
	for i := 1; i < n; i++ {
		items = append(items, fmt.Sprintf(`{"function":"go:echo","id":%q,"codec":"inputs","inputs":[%q]}`,
			inputID(i), inputID(i-1)))
	}
	body := `{"futures":[` + strings.Join(items, ",") + `]}`
	var made struct{ Futures []httpapi.Submitted }
	f.send("POST", path+":submit", body).Into(http.StatusCreated, &made)
	require.Len(t, made.Futures, n)
	var last httpapi.Future
	f.send("GET", path+"/"+inputID(n-1)+"?wait=1m", "").Into(http.StatusOK, &last)
	require.Equal(t, "X", last.Result.Value.Data)
	f.send("POST", path+":submit", body).Into(http.StatusCreated, &made)
	require.True(t, made.Futures[n-1].Existed, "a repeated request is harmless")

	items[0], items[1] = items[1], items[0]
	f = newFixture(t, httpapi.Options{})
	f.send("POST", path+":submit", `{"futures":[`+strings.Join(items, ",")+`]}`).
		Problem(http.StatusBadRequest, "bad_future", inputID(0)+": submit it first")
}

func TestInvalidInputsAreNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, c := range []struct {
		body   string
		status int
		code   string
		says   string
	}{
		{`{"function":"go:f","inputs":["` + never + `"]}`, 400, "bad_future", never + ": submit it first"},
		{`{"function":"go:f","inputs":["` + never + `","x"]}`, 400, "bad_id", `inputs[1]: not a future id: "x"`},
		{`{"function":"go:f","id":"` + never + `","inputs":["` + never + `"]}`, 400, "bad_future", "is its own input"},
		{`{"function":"go:f","codec":"inputs"}`, 400, "bad_future", "codec inputs"},
		{`{"function":"go:f","codec":"inputs","args":"x","inputs":["` + never + `"]}`, 400, "bad_future", "codec inputs"},
		{`{"function":"go:f","input":{"$future":7}}`, 400, "bad_future", "must be the id of a future"},
		{`{"function":"go:f","inputs":"` + never + `"}`, 422, "bad_request", "inputs"},
	} {
		f.send("POST", path, c.body).Problem(c.status, c.code, c.says)
	}
}

// TestRequestsThatAreTooLarge has one too many, or too much, of what a request is made of.
func TestRequestsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var refs strings.Builder
	for i := range 100_001 {
		fmt.Fprintf(&refs, `,{"$future":%q}`, inputID(i))
	}
	for body, says := range map[string]string{
		`{"function":"go:f","input":[` + refs.String()[1:] + `]}`:                    "100001 inputs: at most 100000",
		`{"function":"go:f","args":"` + strings.Repeat("x", layout.MaxArgs+1) + `"}`: "8388608",
		`{"function":"go:f","args":"` + strings.Repeat("x", httpapi.MaxBody) + `"}`:  "16777216",
	} {
		f.send("POST", path, body).Problem(http.StatusRequestEntityTooLarge, "too_large", says)
	}
}

func TestViewNamesTheFirstOfManyInputs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const n = 100
	var items, ids []string
	for i := range n {
		items, ids = append(items, fmt.Sprintf(`{"function":"go:f","id":%q}`, inputID(i))), append(ids, inputID(i))
	}
	f.send("POST", path+":submit", `{"futures":[`+strings.Join(items, ",")+`]}`).Into(http.StatusCreated, &struct{}{})
	var got httpapi.Future
	f.send("POST", path, `{"function":"go:g","inputs":["`+strings.Join(ids, `","`)+`"]}`).Into(http.StatusCreated, &got)
	require.Equal(t, n, got.InputCount)
	require.Len(t, got.Inputs, 64)
	require.Equal(t, inputID(63), got.Inputs[63].String())
	require.Len(t, got.WaitsFor, 64)
	require.True(t, got.MoreWaitsFor)
	var graph httpapi.Graph
	f.send("GET", path+"/"+got.ID.String()+"/graph?fan=10", "").Into(http.StatusOK, &graph)
	require.Len(t, graph.Nodes, 11)
	require.True(t, graph.Truncated)
	require.Equal(t, got.ID, graph.Nodes[0].ID)
	require.Equal(t, n, graph.Nodes[0].InputCount)
	require.EqualValues(t, "blocked", graph.Nodes[0].State)
	require.EqualValues(t, "ready", graph.Nodes[1].State)
	require.True(t, graph.Nodes[1].Waited)
}

func TestGraphOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var top, left, right, bottom httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:upper","args":"abc"}`).Into(http.StatusCreated, &top)
	for _, side := range []*httpapi.Future{&left, &right} {
		f.send("POST", path+"?wait=1m", fmt.Sprintf(`{"function":"go:echo","codec":"inputs","inputs":[%q]}`, top.ID)).
			Into(http.StatusCreated, side)
	}
	f.send("POST", path, fmt.Sprintf(`{"function":"go:nobody","inputs":[%q,%q]}`, left.ID, right.ID)).
		Into(http.StatusCreated, &bottom)
	var graph httpapi.Graph
	f.send("GET", path+"/"+bottom.ID.String()+"/graph", "").Into(http.StatusOK, &graph)
	require.Len(t, graph.Nodes, 4)
	require.False(t, graph.Truncated)
	require.Equal(t, []futures.ID{left.ID, right.ID}, graph.Nodes[0].Inputs)
	last := graph.Nodes[3]
	require.Equal(t, top.ID, last.ID)
	require.EqualValues(t, 3, last.ResultBytes)
	require.Equal(t, -2, last.Level)
	require.NotNil(t, last.EndedAt)
	graph = httpapi.Graph{}
	f.send("GET", path+"/"+right.ID.String()+"/graph?dependants=true&limit=2", "").Into(http.StatusOK, &graph)
	require.Len(t, graph.Nodes, 2)
	require.True(t, graph.Truncated)
	f.send("GET", path+"/"+never+"/graph", "").Problem(http.StatusNotFound, "not_found", never)
	f.send("GET", path+"/"+never+"/graph?limit=1001", "").Problem(422, "bad_request", "limit")
	f.send("GET", path+"/x/graph", "").Problem(http.StatusBadRequest, "bad_id", "x")
}

package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

type view struct {
	ID       string
	Items    int
	Status   batch.Status
	State    string
	Code     string
	Reason   string
	Progress map[string]int
	Rate     float64
	Left     *float64   `json:"seconds_left"`
	Finished *time.Time `json:"finished_at"`
}

// TestABusyBatch is one that another request creates.
func TestABusyBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	f.head.refuse = fmt.Errorf("%w: batch b", batch.ErrBusy)
	const body = `{"template":{"function_id":"f","method":"m"},"arguments":[["a"]]}`
	a := f.send("POST", submitPath, body, "Idempotency-Key", "k")
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Contains(t, string(a.Body), `"name":"busy"`)
}

// TestBatchesBeyondALimit are refused with when to come back.
func TestBatchesBeyondALimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	f.head.refuse = &quota.LimitError{Limit: quota.LimitPending, Used: 2, Max: 2, Asked: 1, RetryAfter: time.Second}
	const body = `{"template":{"function_id":"f","method":"m"},"arguments":[["a"]]}`
	a := f.send("POST", submitPath, body)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Contains(t, string(a.Body), "2 futures are pending, of at most 2")
}

func TestABatchShowsItsProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b", "c", "d")
	var v view
	f.send("GET", batchesPath+"/"+id, "").Into(200, &v)
	require.Equal(t, "created", v.State)
	require.Zero(t, v.Rate)
	require.Nil(t, v.Left)
	chunk := f.assign(id, "w", 0, 1, 2)
	f.complete(id, chunk, map[int]batch.Result{0: {}, 1: {ExitCode: 1}})
	f.send("GET", batchesPath+"/"+id, "").Into(200, &v)
	require.Equal(t, map[string]int{
		"created": 1, "in_progress": 1, "done": 1, "failed": 0, "permanently_failed": 1,
	}, v.Progress)
	require.Positive(t, v.Rate)
	require.Nil(t, v.Left, "two items tell nothing of the others")
	f.complete(id, chunk, map[int]batch.Result{2: {}})
	f.complete(id, f.assign(id, "w", 3), map[int]batch.Result{3: {}})
	v = view{}
	f.send("GET", batchesPath+"/"+id, "").Into(200, &v)
	require.Equal(t, batch.Done, v.Status)
	require.Nil(t, v.Left)
	require.NotNil(t, v.Finished)
}

// TestTheRateOfACancelledBatch cancels batches an hour after they began: one of which an item is
// done, and one of which none is.
func TestTheRateOfACancelledBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	for _, done := range []int{0, 1} {
		id := f.submit("a", "b", "c", "d")
		chunk := f.assign(id, "w", 0, 1)
		if done == 1 {
			f.complete(id, chunk, map[int]batch.Result{0: {}})
		}
		require.NoError(t, f.head.store.Cancel(f.Context(), id, "by request", time.Now().Add(time.Hour)))
		var v view
		f.send("GET", batchesPath+"/"+id, "").Into(200, &v)
		require.Equal(t, "cancelled", v.State)
		require.Equal(t, done, v.Progress["done"])
		require.Positive(t, v.Progress["permanently_failed"])
		require.InDelta(t, float64(done), v.Rate*time.Hour.Seconds(), 0.5)
		require.Nil(t, v.Left)
	}
}

func TestBatchesAreListedInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	var ids []string
	for range 5 {
		ids = append(ids, f.submit("a"))
	}
	f.run(ids[1], 1)
	var got []string
	for after, pages := "", 0; ; pages++ {
		require.Less(t, pages, 4)
		var page struct {
			Batches []view
			Next    string
		}
		f.send("GET", batchesPath+"?limit=2&after="+after, "").Into(200, &page)
		for _, b := range page.Batches {
			got = append(got, b.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.ElementsMatch(t, ids, got)
	require.NotContains(t, string(f.send("GET", batchesPath+"?limit=5", "").Body), `"next"`)
	var active struct{ Batches []view }
	f.send("GET", batchesPath+"?active=true", "").Into(200, &active)
	require.Len(t, active.Batches, 4)
	for _, wrong := range []string{"?limit=0", "?limit=501", "?limit=x", "?active=2"} {
		f.send("GET", batchesPath+wrong, "").Problem(400, "bad_request", "use")
	}
	f.send("GET", batchesPath+"?after=x", "").Problem(404, "not_found", "UUID")
	f.send("GET", batchesPath+"?after="+uuid.NewString(), "").Problem(404, "not_found", "does not exist any more")
}

type item struct {
	Index     int
	ID        string
	Arguments []string
	Status    batch.Status
	State     string
	Reason    string
	Result    *struct {
		Stdout       string
		StdoutBase64 string `json:"stdout_base64"`
		LeftOut      int    `json:"left_out"`
		ExitCode     int    `json:"exit_code"`
	}
}

func TestTheInputOfItemsIsShownByTheBatchAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	var made struct {
		ID string `json:"request_id"`
	}
	request := `{"template":{"function_id":"f","config":{"stdin":"long"}},"arguments":[[]]}`
	f.send("POST", submitPath, request).Into(200, &made)
	require.NotContains(t, string(f.send("GET", batchesPath, "").Body), "stdin")
	require.Contains(t, string(f.send("GET", batchesPath+"/"+made.ID, "").Body), `"stdin":"long"`)
	require.NoError(t, f.head.Cancel(t.Context(), made.ID, "enough"))
	require.NotContains(t, string(f.send("GET", batchesPath+"/"+made.ID+"/events", "").Body), "stdin")
}

func TestResultsArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("0", "1", "2", "3", "4")
	f.run(id, 5, 1, 3)
	var indexes []int
	for from, pages := 0, 0; ; pages++ {
		require.Less(t, pages, 4)
		var page struct {
			Items []item
			Next  *int
		}
		f.send("GET", fmt.Sprintf("%s/%s/results?limit=2&from=%d", batchesPath, id, from), "").Into(200, &page)
		for _, i := range page.Items {
			require.NotNil(t, i.Result)
			indexes = append(indexes, i.Index)
		}
		if page.Next == nil {
			break
		}
		from = *page.Next
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, indexes)
	for query, more := range map[string]bool{
		"limit=5": false, "limit=4": true,
		"limit=2&state=-2": false, "limit=1&state=-2": true, "limit=1&state=-2&from=3": false,
	} {
		body := string(f.send("GET", batchesPath+"/"+id+"/results?"+query, "").Body)
		require.Equal(t, more, strings.Contains(body, `"next"`), query)
	}
	for _, states := range []string{"permanently_failed", "-2", "-2,created"} {
		var failed struct{ Items []item }
		f.send("GET", batchesPath+"/"+id+"/results?state="+states, "").Into(200, &failed)
		require.Len(t, failed.Items, 2)
		require.Equal(t, "permanently_failed", failed.Items[1].State)
		require.Equal(t, []string{"3"}, failed.Items[1].Arguments)
	}
	f.send("GET", batchesPath+"/"+id+"/results?state=x", "").Problem(400, "bad_request", "permanently_failed")
	f.send("GET", batchesPath+"/"+uuid.NewString()+"/results", "").Problem(404, "not_found", "")
}

// outlined fails where a whole result is read.
type outlined struct{ batch.Recorder }

func (outlined) Items(context.Context, string, int, int, ...batch.Status) ([]batch.Item, error) {
	return nil, errors.New("whole results are read")
}

// TestBeginningsOfResults asks for parts of outputs, as pages and as streams.
func TestBeginningsOfResults(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	f.head.store = outlined{f.head.store.(batch.Recorder)}
	n := 600
	id := f.submit(make([]string, n)...)
	all, results := make([]int, n), map[int]batch.Result{}
	for i := range n {
		all[i], results[i] = i, batch.Result{Stdout: "éé" + strings.Repeat("x", 50_000), ExitCode: 0}
	}
	results[1] = batch.Result{Stdout: "\xff\xfe\xfd\xfc\xfb"}
	f.complete(id, f.assign(id, "w", all...), results)
	get := func(query string, headers ...string) *stacktest.Answer {
		return f.send("GET", batchesPath+"/"+id+"/results?"+query, "", headers...)
	}
	var page struct {
		Items []item
		Next  int
	}
	get("limit=500&output=3").Into(200, &page)
	require.Len(t, page.Items, 500)
	require.Equal(t, 500, page.Next)
	require.Equal(t, "é", page.Items[0].Result.Stdout)
	require.Equal(t, 50_002, page.Items[0].Result.LeftOut)
	require.Equal(t, "//79", page.Items[1].Result.StdoutBase64)
	require.Equal(t, 2, page.Items[1].Result.LeftOut)
	lines := strings.Split(strings.TrimSpace(string(get("output=2", "Accept", "application/x-ndjson").Body)), "\n")
	require.Len(t, lines, n)
	require.Contains(t, lines[n-1], `"stdout":"é"`)
	without := get("output=0&state=done")
	require.Equal(t, 200, without.Status)
	require.NotContains(t, string(without.Body), `"result"`)
	for _, wrong := range []string{"-1", "8193", "x"} {
		get("output="+wrong).Problem(400, "bad_request", "0 to 8192")
	}
	// The largest page is no larger than others, and a whole one is read as before.
	require.Less(t, len(get("limit=500&output=8192").Body), batch.PageBytes)
	require.NotEqual(t, 200, get("").Status)
}

func TestResultsAreStreamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	const n = 1234
	arguments, results := make([]string, n), map[int]batch.Result{}
	var indexes []int
	for i := range n {
		arguments[i], results[i] = fmt.Sprint(i), batch.Result{Stdout: fmt.Sprint("<", i, ">")}
		indexes = append(indexes, i)
	}
	results[7] = batch.Result{Stdout: "\xff\xfe"}
	id := f.submit(arguments...)
	f.complete(id, f.assign(id, "w", indexes...), results)
	for from, want := range map[string]int{"": 0, "?from=1000": 1000} {
		answer := f.send("GET", batchesPath+"/"+id+"/results"+from, "", "Accept", "application/x-ndjson")
		require.Equal(t, "application/x-ndjson", answer.Header.Get("Content-Type"))
		lines := bufio.NewScanner(strings.NewReader(string(answer.Body)))
		for lines.Scan() {
			var i item
			require.NoError(t, json.Unmarshal(lines.Bytes(), &i))
			require.Equal(t, want, i.Index)
			if i.Index == 7 {
				require.Equal(t, "//4=", i.Result.StdoutBase64)
			} else {
				require.Equal(t, fmt.Sprint("<", want, ">"), i.Result.Stdout)
			}
			want++
		}
		require.Equal(t, n, want)
	}
	f.send("GET", batchesPath+"/"+uuid.NewString()+"/results", "", "Accept", "application/x-ndjson").
		Problem(404, "not_found", "")
}

// events reads a stream of events.
type events struct {
	*testing.T
	lines *bufio.Scanner
}

func (f *fixture) events(id string) *events {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), "GET", f.url+batchesPath+"/"+id+"/events", nil)
	require.NoError(f, err)
	r.Header.Set("Accept-Encoding", "gzip")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, response.Body.Close()) })
	require.Equal(f, "text/event-stream", response.Header.Get("Content-Type"))
	return &events{f.T, bufio.NewScanner(response.Body)}
}

// next returns the next event, and false at the end.
func (e *events) next() (name string, v view, ok bool) {
	for e.lines.Scan() {
		if text, found := strings.CutPrefix(e.lines.Text(), "event: "); found {
			name = text
		}
		if text, found := strings.CutPrefix(e.lines.Text(), "data: "); found {
			require.NoError(e, json.Unmarshal([]byte(text), &v))
			return name, v, true
		}
	}
	return "", v, false
}

func TestEventsFollowABatchToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b")
	e := f.events(id)
	name, v, ok := e.next()
	require.True(t, ok)
	require.Equal(t, "progress", name)
	require.Equal(t, "created", v.State)
	chunk := f.assign(id, "w", 0, 1)
	_, v, ok = e.next()
	require.True(t, ok)
	require.Equal(t, "running", v.State)
	f.complete(id, chunk, map[int]batch.Result{0: {}, 1: {}})
	for name != "over" {
		name, v, ok = e.next()
		require.True(t, ok)
	}
	require.Equal(t, "done", v.State)
	_, _, ok = e.next()
	require.False(t, ok)
	f.send("GET", batchesPath+"/"+uuid.NewString()+"/events", "").Problem(404, "not_found", "")
}

func TestStoppingEndsEventsAndWaits(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := newFixture(t, rest.Options{Stack: stack.Options{Stopping: stopping}})
	id := f.submit("a")
	e := f.events(id)
	_, _, ok := e.next()
	require.True(t, ok)
	close(stopping)
	_, _, ok = e.next()
	require.False(t, ok)
	var v view
	f.send("GET", batchesPath+"/"+id+"?wait=1m", "").Into(200, &v)
	require.Equal(t, "created", v.State)
}

func TestGetWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a")
	got := make(chan *stacktest.Answer, 1)
	go func() { got <- f.send("GET", batchesPath+"/"+id+"?wait=1m", "") }()
	f.run(id, 1)
	var v view
	(<-got).Into(200, &v)
	require.Equal(t, "done", v.State)
	f.send("GET", batchesPath+"/"+f.submit("a")+"?wait=x", "").Problem(400, "bad_request", "30s")
}

func TestABatchIsCancelledRetriedAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b")
	f.send("DELETE", batchesPath+"/"+id, "").Problem(409, "wrong_state", "")
	f.run(id, 2, 1)
	f.send("POST", batchesPath+"/"+id+":cancel", "").Problem(409, "wrong_state", "")
	var again struct {
		Items int
		Batch view
	}
	f.send("POST", batchesPath+"/"+id+":retry", "").Into(200, &again)
	require.Equal(t, 1, again.Items)
	require.Equal(t, batch.InProgress, again.Batch.Status)
	var v view
	f.send("POST", batchesPath+"/"+id+":cancel", `{"reason":"no more"}`).Into(200, &v)
	require.Equal(t, "cancelled", v.State)
	require.Equal(t, "no more", v.Reason)
	require.Equal(t, 204, f.send("DELETE", batchesPath+"/"+id, "").Status)
	f.send("GET", batchesPath+"/"+id, "").Problem(404, "not_found", "")
	for _, path := range []string{":cancel", ":retry"} {
		f.send("POST", batchesPath+"/"+id+path, "").Problem(404, "not_found", "")
	}
	f.send("DELETE", batchesPath+"/"+id, "").Problem(404, "not_found", "")
	f.send("POST", batchesPath+"/"+id+":pause", "").Problem(404, "no_such_path", ":cancel")
}

package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
)

const jobs = "/api/v1/jobs"

// park has a consumer pass jobs up to an index, of which it parks some, and returns its
// lease.
func park(t *testing.T, c *fdbmodel.Cluster, k joblog.Consumer, to int64, parked ...int64) *joblog.Lease {
	lease, _, err := joblog.Of(c).Take(t.Context(), k, joblog.Take{About: "here"})
	require.NoError(t, err)
	list := make([]joblog.ParkedJob, len(parked))
	for i, index := range parked {
		list[i] = joblog.ParkedJob{Index: index, Attempts: 5, Error: "it is bad", Value: []byte("bad")}
	}
	require.NoError(t, lease.Commit(t.Context(), lease.Progress, to, list, joblog.Effects{}))
	return lease
}

func TestJobsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const log = jobs + "/orders"
	f.send("GET", log, "").Problem(http.StatusNotFound, "not_found", "orders")
	var done httpapi.Appended
	f.send("POST", log+":append", `{"input":[{"n":1}, "two" ]}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Appended{Queue: "orders", Appended: 2, First: 1}, done)
	f.send("POST", log+":append", `{"values":["AP8=",""],"encoding":"base64"}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Appended{Queue: "orders", Appended: 2, First: 3}, done)
	for range 2 {
		once := f.send("POST", log+":append", `{"values":["five"],"producer":"file","sequence":7}`)
		require.Equal(t, http.StatusOK, once.Status)
	}
	f.send("POST", log+":append", `{"values":["five"],"producer":"file","sequence":7}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Appended{Queue: "orders", First: 5}, done)
	f.send("POST", log+":append", `{"values":["five"],"producer":"file","sequence":6}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Appended{Queue: "orders"}, done)

	var read struct{ Jobs []httpapi.Job }
	f.send("GET", log+"/log?from=2", "").Into(http.StatusOK, &read)
	require.Len(t, read.Jobs, 4)
	require.EqualValues(t, 2, read.Jobs[0].Index)
	require.Equal(t, &httpapi.Bytes{Encoding: "text", Data: `"two"`}, read.Jobs[0].Value)
	require.Equal(t, &httpapi.Bytes{Encoding: "base64", Data: "AP8="}, read.Jobs[1].Value)
	require.Nil(t, read.Jobs[2].Value)
	read.Jobs = nil
	f.send("GET", log+"/log?limit=1", "").Into(http.StatusOK, &read)
	require.Len(t, read.Jobs, 1)
	require.Equal(t, `{"n":1}`, read.Jobs[0].Value.Data)
	read.Jobs = nil
	f.send("GET", log+"/log?from=6", "").Into(http.StatusOK, &read)
	require.Empty(t, read.Jobs)

	lease := park(t, f.client.Cluster(), joblog.Consumer{Queue: "orders", Name: "price"}, 4, 2, 3, 4)
	f.send("POST", jobs+"/mail:append", `{"values":["x"]}`).Into(http.StatusOK, &done)
	var list struct{ Logs []httpapi.JobLog }
	f.send("GET", jobs+"?after=mail", "").Into(http.StatusOK, &list)
	require.Len(t, list.Logs, 1)
	f.send("GET", jobs+"?limit=1", "").Into(http.StatusOK, &list)
	require.Equal(t, "mail", list.Logs[0].Queue)
	var orders httpapi.JobLog
	f.send("GET", log, "").Into(http.StatusOK, &orders)
	require.EqualValues(t, 5, orders.Last)
	require.Len(t, orders.Consumers, 1)
	price := orders.Consumers[0]
	require.EqualValues(t, 1, *price.Behind)
	require.EqualValues(t, 4, price.Processed)
	require.Equal(t, 3, price.Parked)
	require.Equal(t, "here", price.Process)
	testParkedOverHTTP(t, f)
	f.send("DELETE", log+"/consumers/price", "").Problem(http.StatusConflict, "in_use", "stop its consumers")
	f.send("DELETE", log, "").Problem(http.StatusConflict, "in_use", "stop its consumers")
	require.NoError(t, lease.Release(t.Context()))
	require.Equal(t, http.StatusNoContent, f.send("DELETE", log+"/consumers/price", "").Status)
	f.send("DELETE", log+"/consumers/price", "").Problem(http.StatusNotFound, "not_found", "orders/price")
	park(t, f.client.Cluster(), joblog.Consumer{Queue: "orders", Name: "price"}, 5)
	_, err := joblog.Of(f.client.Cluster()).Trim(t.Context(), "orders", 2)
	require.NoError(t, err)
	f.send("GET", log+"/log?limit=1", "").Into(http.StatusOK, &read)
	require.EqualValues(t, 4, read.Jobs[0].Index)
	require.Equal(t, http.StatusNoContent, f.send("DELETE", log+"?force=true", "").Status)
	f.send("GET", log, "").Problem(http.StatusNotFound, "not_found", "orders")
}

// TestJobsBeforeOneThatCantBeReadOverHTTP has the third job of a log in the words of a newer version.
func TestJobsBeforeOneThatCantBeReadOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("POST", jobs+"/orders:append", `{"values":["one","two","three","four"]}`).
		Into(http.StatusOK, new(httpapi.Appended))
	c := f.client.Cluster()
	_, err := c.Transact(t.Context(), kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(joblog.Keys(c.Keys()).Job("orders", 3), []byte{layout.RecordVersion + 1, 0x80})
		return nil
	})
	require.NoError(t, err)
	type answer struct {
		Jobs       []httpapi.Job
		Unreadable string
	}
	var read answer
	f.send("GET", jobs+"/orders/log", "").Into(http.StatusOK, &read)
	require.Len(t, read.Jobs, 2)
	require.Contains(t, read.Unreadable, "newer version")
	for query, n := range map[string]int{"limit=2": 2, "from=4": 1} {
		read = answer{}
		f.send("GET", jobs+"/orders/log?"+query, "").Into(http.StatusOK, &read)
		require.Len(t, read.Jobs, n, query)
		require.Empty(t, read.Unreadable, query)
	}
	f.send("GET", jobs+"/orders/log?from=3", "").Problem(http.StatusInternalServerError, "newer_record", "newer version")
}

func testParkedOverHTTP(t *testing.T, f *fixture) {
	const parked = jobs + "/orders/consumers/price/parked"
	var list struct{ Jobs []httpapi.ParkedJob }
	f.send("GET", parked+"?after=2&limit=1", "").Into(http.StatusOK, &list)
	require.Len(t, list.Jobs, 1)
	require.EqualValues(t, 3, list.Jobs[0].Index)
	require.EqualValues(t, 5, list.Jobs[0].Attempts)
	require.Equal(t, "it is bad", list.Jobs[0].Error)
	require.Equal(t, "bad", list.Jobs[0].Value.Data)
	want := httpapi.SettledJobs{Queue: "orders", Consumer: "price", Indexes: []int64{3}, Missing: []int64{9}}
	var settled httpapi.SettledJobs
	f.send("POST", parked+":retry", `{"indexes":[3,9]}`).Into(http.StatusOK, &settled)
	require.Equal(t, want, settled)
	list.Jobs = nil
	f.send("GET", parked, "").Into(http.StatusOK, &list)
	require.Len(t, list.Jobs, 3)
	require.True(t, list.Jobs[1].Retrying)
	require.False(t, list.Jobs[2].Retrying)
	settled = httpapi.SettledJobs{}
	f.send("POST", parked+":drop", `{"indexes":[3,3]}`).Into(http.StatusOK, &settled)
	require.Equal(t, []int64{3}, settled.Indexes)
	require.Empty(t, settled.Missing)
	settled = httpapi.SettledJobs{}
	f.send("POST", parked+":drop", `{"all":true,"after":2}`).Into(http.StatusOK, &settled)
	require.Equal(t, []int64{4}, settled.Indexes)
	require.False(t, settled.More)
	for _, bad := range []string{`{}`, `{"all":true,"indexes":[2]}`} {
		f.send("POST", parked+":drop", bad).Problem(http.StatusBadRequest, "bad_request", "one of them")
	}
	f.send("POST", parked+":drop", `{"indexes":[2],"after":1}`).Problem(http.StatusBadRequest, "bad_request", "after")
	f.send("POST", "/api/v1/jobs/orders:append", `{"input":[1],"encoding":"base64"}`).
		Problem(http.StatusBadRequest, "bad_request", "leave out encoding")
	for _, none := range []string{"GET " + parked, "POST " + parked + ":retry", "POST " + parked + ":drop"} {
		method, at, _ := strings.Cut(strings.Replace(none, "price", "nobody", 1), " ")
		body := ""
		if method == "POST" {
			body = `{"all":true}`
		}
		f.send(method, at, body).Problem(http.StatusNotFound, "not_found", "orders/nobody")
	}
}

// TestTimesOfJobsThatNoCalendarHas shows records whose times JSON can't write.
func TestTimesOfJobsThatNoCalendarHas(t *testing.T) {
	t.Parallel()
	log := joblog.Log{Consumers: []joblog.ConsumerState{{Progress: joblog.Progress{At: 1 << 62}}}}
	_, err := json.Marshal(httpapi.JobLogOf(&log))
	require.NoError(t, err)
}

// TestHostileJobsOverHTTP sends what is too much, or nothing that makes sense.
func TestHostileJobsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	ones := "[1" + strings.Repeat(",1", joblog.MaxAppend) + "]"
	texts := `["x"` + strings.Repeat(`,"x"`, joblog.MaxAppend) + "]"
	large := strings.Repeat("x", joblog.MaxJob)
	many := strings.Repeat(`"`+large+`",`, joblog.MaxAppendBytes/joblog.MaxJob) + `"x"`
	for _, c := range []struct {
		at, body string
		status   int
		code     string
	}{
		{"/q:append", `{}`, 400, "bad_request"},
		{"/q:append", `{"input":[]}`, 400, "bad_request"},
		{"/q:append", `{"input":{"a":1}}`, 400, "bad_request"},
		{"/q:append", `{"input":null}`, 400, "bad_request"},
		{"/q:append", `{"input":[1],"values":["x"]}`, 400, "bad_request"},
		{"/q:append", `{"values":["?"],"encoding":"base64"}`, 400, "bad_request"},
		{"/q:append", `{"values":["x"],"producer":"p"}`, 400, "bad_request"},
		{"/q:append", `{"values":["x"],"sequence":1}`, 400, "bad_request"},
		{"/q:append", `{"input":` + ones + `}`, 400, "bad_request"},
		{"/q:append", `{"values":` + texts + `}`, 422, "bad_request"},
		{"/q:append", `{"values":["x"],"sequence":-1}`, 422, "bad_request"},
		{"/q:append", `{"value":["x"]}`, 422, "bad_request"},
		{"/q:append", `{"values":["x"],"producer":"a b","sequence":1}`, 400, "bad_name"},
		{"/a%20b:append", `{"values":["x"]}`, 400, "bad_name"},
		{"/q:append", `{"values":["` + large + `x"]}`, 413, "too_large"},
		{"/q:append", `{"values":[` + many + `]}`, 413, "too_large"},
		{"/q/consumers/a%20b/parked:drop", `{"all":true}`, 400, "bad_name"},
		{"/q/consumers/c/parked:drop", `{"indexes":` + ones + `}`, 422, "bad_request"},
	} {
		f.send("POST", jobs+c.at, c.body).Problem(c.status, c.code, "")
	}
	for _, at := range []string{"?limit=0", "?limit=1001", "?after=" + strings.Repeat("x", 65), "/q/log?from=-1",
		"/q/log?limit=1001", "/q/log?from=99999999999999999999", "/q/consumers/c/parked?after=-1"} {
		require.Equal(t, http.StatusUnprocessableEntity, f.send("GET", jobs+at, "").Status, at)
	}
	f.send("GET", jobs+"/q", "").Problem(http.StatusNotFound, "not_found", "q")
	body := fmt.Sprintf(`{"values":[%q],"encoding":"base64"}`, base64.StdEncoding.EncodeToString([]byte(large)))
	f.send("POST", jobs+"/q:append", body).Into(http.StatusOK, new(httpapi.Appended))
}

// TestAppendsAtOnceOverHTTP appends from many clients: each job is there once.
func TestAppendsAtOnceOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const clients, each = 8, 5
	ended := make(chan int, clients)
	for range clients {
		go func() {
			good := 0
			for range each {
				if f.send("POST", jobs+"/q:append", `{"values":["x","y"]}`).Status == http.StatusOK {
					good++
				}
			}
			ended <- good
		}()
	}
	good := 0
	for range clients {
		good += <-ended
	}
	require.Equal(t, clients*each, good)
	var log httpapi.JobLog
	f.send("GET", jobs+"/q", "").Into(http.StatusOK, &log)
	require.EqualValues(t, 2*clients*each, log.Last)
}

func TestMetricsOfJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("POST", jobs+"/q:append", `{"values":["1","2","3","4","5"]}`).Into(http.StatusOK, new(httpapi.Appended))
	lease := park(t, f.client.Cluster(), joblog.Consumer{Queue: "q", Name: "c"}, 3, 2)
	_, err := lease.Beat(t.Context(), joblog.Trouble{Index: 4, Attempts: 2, Error: "no"}, 0)
	require.NoError(t, err)
	text := string(f.send("GET", "/metrics", "").Body)
	const of = `{cluster="default",consumer="c",queue="q"} `
	for _, line := range []string{
		`futura_jobs_head{cluster="default",queue="q"} 5`, "futura_jobs_processed" + of + "3", "futura_jobs_lag" + of + "2",
		"futura_jobs_parked" + of + "1", "futura_jobs_held" + of + "1", "futura_jobs_failing_attempts" + of + "2",
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NoError(t, lease.Release(t.Context()))
	require.Contains(t, string(f.send("GET", "/metrics", "").Body), "futura_jobs_held"+of+"0\n")
}

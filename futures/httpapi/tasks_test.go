package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

const tasks = "/api/v1/tasks"

// writeRows runs a worker that writes rows of a table together; those that say fail, fail.
// It sends how many rows were in each call.
func (f *fixture) writeRows() chan string {
	f.Helper()
	calls, _ := f.writer()
	return calls
}

func (f *fixture) writer() (calls chan string, w *workers.Worker) {
	calls = make(chan string, 100)
	w, err := workers.New(f.client, workers.Options{})
	require.NoError(f, err)
	require.NoError(f, w.RegisterBundle("write",
		func(_ context.Context, table string, members []workers.Member) ([]workers.MemberEnd, error) {
			ends := make([]workers.MemberEnd, len(members))
			for i, m := range members {
				if ends[i].Value = m.Args; strings.Contains(string(m.Args), "fail") {
					ends[i].Err = workers.Permanent(errors.New("no such column"))
				}
			}
			calls <- table
			return ends, nil
		}))
	storetest.Background(f, w.Run)
	<-w.Ready()
	return calls, w
}

func TestTasksOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const users = `{"handler":"write","input":{"row":{"table":"users"},"value":7},"key":"k"}`
	f.send("POST", tasks, users).Problem(http.StatusNotFound, "not_found", "futura lane set")
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","target":"/row/table","most":50}`).
		Into(http.StatusOK, new(httpapi.LaneKind))
	var task, got httpapi.TaskView
	a := f.send("POST", tasks, users).Into(http.StatusCreated, &task)
	require.Equal(t, tasks+"/"+task.ID.String(), a.Header.Get("Location"))
	require.Equal(t, "write", task.Handler)
	require.Equal(t, "users", task.Target)
	require.EqualValues(t, "created", task.Status)
	f.send("POST", tasks, users).Into(http.StatusOK, &got)
	require.Equal(t, task, got, "the same key is the same task")
	one := tasks + "/" + task.ID.String()
	f.send("GET", one+"/result", "").Problem(http.StatusConflict, "not_over", "wait")

	var waiting httpapi.TaskView
	f.send("POST", tasks, `{"handler":"write","label":"row 7","input":{"row":{"table":"users"}}}`).
		Into(http.StatusCreated, &waiting)
	var future httpapi.Future
	f.send("GET", path+"/"+waiting.ID.String(), "").Into(http.StatusOK, &future)
	require.Equal(t, "row 7", future.Label)
	var cancelled struct{ Outcome string }
	f.send("POST", tasks+"/"+waiting.ID.String()+":cancel", `{"reason":"why"}`).Into(http.StatusOK, &cancelled)
	require.Equal(t, "cancelled", cancelled.Outcome)
	f.send("GET", tasks+"/"+waiting.ID.String(), "").Into(http.StatusOK, &got)
	require.EqualValues(t, "failed", got.Status)
	require.EqualValues(t, "cancelled", got.Failure.Kind)

	calls := f.writeRows()
	got = httpapi.TaskView{}
	f.send("GET", one+"?wait=30s", "").Into(http.StatusOK, &got)
	require.EqualValues(t, "succeeded", got.Status)
	require.JSONEq(t, `{"row":{"table":"users"},"value":7}`, string(got.Result.Output))
	require.Equal(t, "users", <-calls)
	a = f.send("GET", one+"/result", "")
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.JSONEq(t, string(got.Result.Output), string(a.Body))
	got = httpapi.TaskView{}
	f.send("POST", tasks+"?wait=30s", `{"handler":"write","input":{"row":{"table":3},"fail":true}}`).
		Into(http.StatusCreated, &got)
	require.Equal(t, "3", got.Target)
	require.EqualValues(t, "failed", got.Status)
	require.Contains(t, got.Failure.Message, "no such column")
	f.send("GET", tasks+"/"+got.ID.String()+"/result", "").Problem(http.StatusConflict, "future_failed", "no such column")
}

// TestManyTasksOverHTTP submits tasks of several handlers at once, one of which does not
// say where an input has its target.
func TestManyTasksOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","target":"/table"}`).Into(http.StatusOK, new(httpapi.LaneKind))
	f.send("PUT", lanes+"/plain", `{"bundle":"go:write"}`).Into(http.StatusOK, new(httpapi.LaneKind))
	var made struct{ Tasks []httpapi.Submitted }
	f.send("POST", tasks+":submit", `{"tasks":[{"handler":"write","input":{"table":"a"}},`+
		`{"handler":"write","input":{"table":"a"},"target":"a"},{"handler":"plain","input":[1],"target":"b"}]}`).
		Into(http.StatusCreated, &made)
	require.Len(t, made.Tasks, 3)
	calls := f.writeRows()
	for i, want := range []string{"a", "a", "b"} {
		var got httpapi.TaskView
		f.send("GET", tasks+"/"+made.Tasks[i].ID.String()+"?wait=30s", "").Into(http.StatusOK, &got)
		require.Equal(t, want, got.Target)
		require.EqualValues(t, "succeeded", got.Status)
	}
	require.ElementsMatch(t, []string{"a", "b"}, []string{<-calls, <-calls}, "the tasks of a shared a call")
}

func TestBadTasks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","target":"/table"}`).Into(http.StatusOK, new(httpapi.LaneKind))
	f.send("PUT", lanes+"/plain", `{"bundle":"go:write"}`).Into(http.StatusOK, new(httpapi.LaneKind))
	f.send("PUT", lanes+"/single", `{}`).Into(http.StatusOK, new(httpapi.LaneKind))
	for _, target := range []string{"table", "/a~b", strings.Repeat("/", 257)} {
		body, err := json.Marshal(map[string]string{"bundle": "go:write", "target": target})
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity},
			f.send("PUT", lanes+"/write", string(body)).Status)
	}
	f.send("PUT", lanes+"/single", `{"target":"/table"}`).
		Problem(http.StatusBadRequest, "bad_settings", "without a function")
	for _, bad := range []struct {
		status           int
		code, says, body string
	}{
		{http.StatusNotFound, "not_found", "none", `{"handler":"none","input":{}}`},
		{http.StatusBadRequest, "bad_future", "no handler", `{"handler":"single","input":{},"target":"x"}`},
		{http.StatusBadRequest, "bad_future", "/table", `{"handler":"write","input":{}}`},
		{http.StatusBadRequest, "bad_future", "/table", `{"handler":"write","input":{"table":1.5}}`},
		{http.StatusBadRequest, "bad_future", `"y"`, `{"handler":"write","input":{"table":"x"},"target":"y"}`},
		{http.StatusBadRequest, "bad_future", "--target", `{"handler":"plain","input":{"table":"x"}}`},
		{http.StatusBadRequest, "bad_name", "257",
			`{"handler":"write","input":{"table":"` + strings.Repeat("x", 257) + `"}}`},
		{http.StatusBadRequest, "bad_name", "1 to 256", `{"handler":"write","input":{"table":""}}`},
		{http.StatusUnprocessableEntity, "bad_request", "", `{"handler":"write"}`},
		{http.StatusUnprocessableEntity, "bad_request", "", `{"handler":"write","input":{},"function":"go:write"}`},
		{http.StatusBadRequest, "bad_request", "delay_ms",
			`{"handler":"write","input":{"table":"x"},"delay_ms":9223372036854775807}`},
		{http.StatusRequestEntityTooLarge, "too_large", "at most",
			`{"handler":"write","input":{"table":"x","v":"` + strings.Repeat("x", 9<<20) + `"}}`},
	} {
		f.send("POST", tasks, bad.body).Problem(bad.status, bad.code, bad.says)
	}
	f.send("POST", tasks+":submit", `{"tasks":[{"handler":"write","input":{"table":"x"}},`+
		`{"handler":"write","input":{}}]}`).Problem(http.StatusBadRequest, "bad_future", "tasks[1]")
	f.send("POST", tasks, `{"handler":"write","input":{"table":"x"},"key":"a"}`, "Idempotency-Key", "b").
		Problem(http.StatusBadRequest, "bad_request", "differ")
	var future httpapi.Future
	f.send("POST", path, `{"function":"go:write"}`).Into(http.StatusCreated, &future)
	for _, id := range []string{future.ID.String(), never} {
		f.send("GET", tasks+"/"+id, "").Problem(http.StatusNotFound, "not_found", id)
		f.send("GET", tasks+"/"+id+"/result", "").Problem(http.StatusNotFound, "not_found", id)
		f.send("POST", tasks+"/"+id+":cancel", "").Problem(http.StatusNotFound, "not_found", id)
	}
	f.send("GET", tasks+"/x", "").Problem(http.StatusBadRequest, "bad_id", "x")
}

// TestMetricsOfTasks has what calls saved in the answer of /metrics.
func TestMetricsOfTasks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	require.NoError(t, f.client.SetLaneKind(t.Context(), "write", futures.LaneSettings{Bundle: "go:write", Target: "/t"}))
	var made struct{ Tasks []httpapi.Submitted }
	const one = `{"handler":"write","input":{"t":"a"}}`
	f.send("POST", tasks+":submit", `{"tasks":[`+one+`,`+one+`,`+one+`]}`).Into(http.StatusCreated, &made)
	_, w := f.writer()
	server := httptest.NewServer(httpapi.Handler(f.client, httpapi.Options{
		Stack: stack.Options{Collectors: []prometheus.Collector{workers.NewCollector(w)}},
	}))
	defer server.Close()
	for _, task := range made.Tasks {
		f.send("GET", tasks+"/"+task.ID.String()+"?wait=30s", "").Into(http.StatusOK, new(httpapi.TaskView))
	}
	text := string(stacktest.Send(t, "GET", server.URL+"/metrics", "").Body)
	for _, line := range []string{
		"futura_worker_bundles_total{worker=\"worker\"} 1", "futura_worker_members_total{worker=\"worker\"} 3",
		"futura_worker_calls_saved_total{worker=\"worker\"} 2",
		"futura_worker_bundle_members_bucket{worker=\"worker\",le=\"2\"} 0",
		"futura_worker_bundle_members_sum{worker=\"worker\"} 3",
		"futura_worker_member_wait_seconds_count{worker=\"worker\"} 3",
	} {
		require.Contains(t, text, line+"\n")
	}
}

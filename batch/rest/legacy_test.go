package rest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(content)
}

// TestTheDocumentsRequest sends the request of b7s's document as curl sends it.
func TestTheDocumentsRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	for _, media := range []string{"application/json", "application/x-www-form-urlencoded", "text/plain"} {
		answer := f.send("POST", submitPath, testdata(t, "request.json"), "Content-Type", media)
		var made map[string]string
		answer.Into(200, &made)
		require.Len(t, made, 1)
		require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", made["request_id"])
		b, err := f.head.store.Get(t.Context(), made["request_id"])
		require.NoError(t, err)
		require.Equal(t, 4, b.Items)
		require.Equal(t, 2, b.MaxAttempts)
		require.Equal(t, 4, b.Template.Config.Nodes)
		require.Equal(t, "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q/echo.wasm", b.Template.Invocation())
	}
}

// plain adds to the results of the document the fields of a plain result that it
// does not show.
func plain(document string) string {
	return strings.ReplaceAll(document, `"result": {`, `"code": "200", "usage": {}, "result": {`)
}

// TestTheDocumentsResult lets the runs of the document happen, and compares the
// answer with the document's, field by field.
func TestTheDocumentsResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	var document struct {
		Chunks map[string]struct {
			Peer    string
			Results map[string]struct {
				Arguments []string
				Result    struct {
					Stdout   string
					ExitCode int `json:"exit_code"`
				}
			}
		}
	}
	want := testdata(t, "result.json")
	require.NoError(t, json.Unmarshal([]byte(want), &document))
	var request map[string]any
	require.NoError(t, json.Unmarshal([]byte(testdata(t, "request.json")), &request))
	lists := make([][]string, 20)
	for i := range lists {
		lists[i] = []string{fmt.Sprintf("https://example.com/dir1/dir2/resource/some-random-slug-%d", i)}
	}
	request["arguments"] = lists
	body, err := json.Marshal(request)
	require.NoError(t, err)
	var made struct {
		ID string `json:"request_id"`
	}
	f.send("POST", submitPath, string(body)).Into(200, &made)
	for id, c := range document.Chunks {
		chunk, ended := batch.Chunk{ID: id, Batch: made.ID, Worker: c.Peer, CreatedAt: time.Now()}, []batch.Completion(nil)
		var indexes []int
		for _, r := range c.Results {
			index, err := strconv.Atoi(r.Arguments[0][strings.LastIndex(r.Arguments[0], "-")+1:])
			require.NoError(t, err)
			indexes = append(indexes, index)
			ended = append(ended, batch.Completion{
				Index: index, At: time.Now(), Result: batch.Result{Stdout: r.Result.Stdout, ExitCode: r.Result.ExitCode},
			})
		}
		_, err := f.head.store.Assign(t.Context(), &chunk, indexes)
		require.NoError(t, err)
		_, err = f.head.store.(batch.Recorder).Complete(t.Context(), made.ID, id, ended)
		require.NoError(t, err)
	}
	_, err = f.head.store.Settle(t.Context(), made.ID, time.Now())
	require.NoError(t, err)
	want = strings.Replace(want, "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10", made.ID, 1)
	want = plain(want)
	answer := f.send("POST", resultPath, `{"id": "`+made.ID+`"}`)
	require.Equal(t, 200, answer.Status)
	require.JSONEq(t, want, string(answer.Body))
	require.Contains(t, string(answer.Body), "268a4145a50ade48aed2b1147d3518c6")
}

type chunks struct {
	Chunks map[string]struct {
		Peer    string `json:"peer"`
		Results map[string]struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Result  struct {
				Stdout   string `json:"stdout"`
				Stderr   string `json:"stderr"`
				ExitCode int    `json:"exit_code"`
			} `json:"result"`
			Invocation string   `json:"function_invocation"`
			Arguments  []string `json:"arguments"`
		} `json:"results"`
	} `json:"chunks"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

func (f *fixture) result(id string) chunks {
	f.Helper()
	var c chunks
	f.send("POST", resultPath, `{"id":"`+id+`"}`).Into(200, &c)
	require.Equal(f, id, c.RequestID)
	return c
}

func TestItemsThatRunTheSameEachHaveTheirResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submitLists([]string{"a b"}, []string{"a", "b"}, []string{"c"}, []string{"a b"}, nil)
	one := f.assign(id, "w1", 0, 1, 2, 3)
	two := f.assign(id, "w2", 4)
	f.complete(id, one, map[int]batch.Result{0: {Stdout: "0"}, 1: {Stdout: "1"}, 2: {Stdout: "2"}, 3: {Stdout: "3"}})
	f.complete(id, two, map[int]batch.Result{4: {Stdout: "4"}})
	c := f.result(id)
	require.Equal(t, "200", c.Code)
	require.Empty(t, c.Message)
	template := &batch.Template{FunctionID: "myfunc", Method: "echo.wasm"}
	same := batch.ItemID(template, []string{"a", "b"})
	results := c.Chunks[one].Results
	require.Len(t, results, 4)
	require.Equal(t, "0", results[same].Result.Stdout)
	require.Equal(t, "1", results[same+"#2"].Result.Stdout)
	require.Equal(t, []string{"a", "b"}, results[same+"#2"].Arguments)
	require.Equal(t, "3", results[same+"#3"].Result.Stdout)
	require.Equal(t, "w1", c.Chunks[one].Peer)
	require.Contains(t, c.Chunks[two].Results, "1138b0725982d052a0c247eeb46ac1e4")
}

func TestFailedItemsKeepTheirStreams(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b")
	f.run(id, 2, 1)
	c := f.result(id)
	require.Equal(t, "206", c.Code)
	for _, chunk := range c.Chunks {
		r := chunk.Results[batch.ItemID(&batch.Template{FunctionID: "myfunc", Method: "echo.wasm"}, []string{"b"})]
		require.Equal(t, "500", r.Code)
		require.Equal(t, "some", r.Result.Stdout)
		require.Equal(t, "trouble", r.Result.Stderr)
		require.Equal(t, 3, r.Result.ExitCode)
		require.NotEmpty(t, r.Message)
	}
}

// TestLargeResultsAreGatheredOnDisk makes results that do not fit into the
// memory of an answer.
func TestLargeResultsAreGatheredOnDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := newFixture(t, rest.Options{})
	const n, size = 10, 1 << 20
	id := f.submit(make([]string, n)...)
	results := map[int]batch.Result{}
	var indexes []int
	for i := range n {
		indexes = append(indexes, i)
		results[i] = batch.Result{Stdout: strings.Repeat(string(rune('a'+i)), size)}
	}
	f.complete(id, f.assign(id, "w", indexes...), results)
	c := f.result(id)
	found := map[byte]bool{}
	for _, chunk := range c.Chunks {
		require.Len(t, chunk.Results, n)
		for _, r := range chunk.Results {
			require.Len(t, r.Result.Stdout, size)
			found[r.Result.Stdout[0]] = true
		}
	}
	require.Len(t, found, n)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	created, running, done, partly := f.submit("a"), f.submit("a", "b", "c"), f.submit("a"), f.submit("a", "b")
	failed, cancelled := f.submit("a"), f.submit("a")
	f.complete(running, f.assign(running, "w", 0, 1), map[int]batch.Result{0: {}})
	f.run(done, 1)
	f.run(partly, 2, 0)
	f.run(failed, 1, 0)
	require.NoError(t, f.head.Cancel(t.Context(), cancelled, "enough"))
	for _, c := range []struct{ name, id, code, message string }{
		{"created", created, "202", "not started yet"}, {"running", running, "202", "running: 1 of 3 items are over"},
		{"done", done, "200", ""}, {"partly_failed", partly, "206", "1 of 2 items failed for good"},
		{"failed", failed, "500", "1 of 1 items failed for good"},
		{"cancelled", cancelled, "410", "cancelled: enough; 0 of 1 items are done"},
	} {
		result := f.result(c.id)
		require.Equal(t, c.code, result.Code, c.name)
		require.Equal(t, c.message, result.Message, c.name)
		var view struct{ State, Code, Message string }
		f.send("GET", batchesPath+"/"+c.id, "").Into(200, &view)
		require.Equal(t, struct{ State, Code, Message string }{c.name, c.code, c.message}, view)
	}
	for _, id := range []string{"cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10", "x"} {
		answer := f.send("POST", resultPath, `{"id":"`+id+`"}`)
		answer.Problem(404, "not_found", "there is no batch")
		require.Contains(t, string(answer.Body), `"code":"404"`)
	}
	f.send("POST", submitPath, `{"template":{"function_id":"f"},"arguments":[]}`).Problem(400, "bad_batch", "empty")
	f.send("POST", resultPath, `{}`).Problem(400, "bad_request", "id is missing")
}

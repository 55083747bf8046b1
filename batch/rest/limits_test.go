package rest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

func zipped(t *testing.T, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

func TestRequestsThatCantBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	template, long := `"template":{"function_id":"f","method":"m"}`, strings.Repeat("x", batch.MaxArguments)
	with := func(config string) string {
		return `{"template":{"function_id":"f","config":{` + config + `}},"arguments":[["a"]]}`
	}
	for _, c := range []struct {
		body, code, says string
		status           int
	}{
		{"", "bad_request", "empty", 400},
		{"null", "bad_request", "object", 400},
		{"[]", "bad_request", "object", 400},
		{`{"template":`, "bad_request", "cut off", 400},
		{`{"arguments":[["a"]`, "bad_request", "", 400},
		{`{` + template + `,"arguments":[["a"]]} {}`, "bad_request", "continues after", 400},
		{`{` + template + `,"arguments":{"a":1}}`, "bad_request", "lists of strings", 400},
		{`{` + template + `,"arguments":[["a",1]]}`, "bad_request", "arguments[0]", 400},
		{`{` + template + `,"arguments":[["a"],"b"]}`, "bad_request", "arguments[1]", 400},
		{`{` + template + `,"arguments":[["a"]],"max_attempts":-1}`, "bad_request", "max_attempts", 400},
		{`{` + template + `,"arguments":[["a"]],"max_attempts":18446744073709551616}`, "bad_request", "max_attempts", 400},
		{`{` + template + `,"arguments":[["a"]],"max_attempts":1.5}`, "bad_request", "max_attempts", 400},
		{`{` + template + `,"arguments":[["a"]],"topic":"other/x"}`, "not_supported", "topic", 400},
		{`{"template":{"function_id":7},"arguments":[["a"]]}`, "bad_request", "template.function_id", 400},
		{`{"template":{"method":"m"},"arguments":[["a"]]}`, "bad_batch", "function_id", 400},
		{with(`"number_of_nodes":-2`), "bad_batch", "number_of_nodes", 400},
		{with(`"timeout":-1`), "bad_batch", "timeout", 400},
		{with(`"env_vars":[{"name":"A=B"}]`), "bad_batch", "env_vars", 400},
		{`{` + template + `,"arguments":[["` + long + `x"]]}`, "bad_batch", "arguments[0]", 400},
		{`{` + template + `,"arguments":[[` + strings.Repeat(`"",`, 50_000) + `""]]}`, "bad_batch", "arguments[0]", 400},
		{with(`"stdin":"` + strings.Repeat("x", batch.MaxTemplate) + `"`), "bad_batch", "at most 90000", 400},
		{with(`"stdin":"` + strings.Repeat("x", rest.MaxTemplate) + `"`), "too_large", "template", 413},
	} {
		answer := f.send("POST", submitPath, c.body)
		answer.Problem(c.status, c.code, c.says)
		require.Contains(t, string(answer.Body), fmt.Sprintf(`"code":"%d"`, c.status))
	}
	f.send("POST", submitPath, "x", "Content-Encoding", "br").Problem(415, "bad_media_type", "gzip")
	f.send("POST", submitPath, "x", "Content-Encoding", "gzip").Problem(400, "bad_request", "gzip")
	f.send("POST", resultPath, zipped(t, bytes.Repeat([]byte(" "), 64<<10+1)), "Content-Encoding", "gzip").
		Problem(413, "too_large", "bytes")
	require.Contains(t, f.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n", rest.MaxBody+1)), "413 Request Entity Too Large")
	f.send("POST", submitPath, `{`+template+`,"arguments":[["a"]]}`, "Idempotency-Key", strings.Repeat("k", 2000)).
		Problem(400, "bad_batch", "Idempotency-Key")
	f.send("GET", submitPath, "").Problem(405, "method_not_allowed", "POST")
	f.send("PUT", batchesPath, "").Problem(405, "method_not_allowed", "GET")
	f.send("GET", "/api/v2", "").Problem(404, "no_such_path", "openapi")
	f.send("POST", submitPath, "{}", "Sec-Fetch-Site", "cross-site").Problem(403, "foreign_origin", "origin")
}

// TestEveryFieldOfAConfigActsOrIsRefused goes through the config of b7s.
func TestEveryFieldOfAConfigActsOrIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	send := func(config string) *stacktest.Answer {
		return f.send("POST", submitPath,
			`{"template":{"function_id":"f","method":"m","config":`+config+`},"arguments":[["a"]],"unknown":{"a":[1]}}`)
	}
	for _, c := range []struct{ field, refused, empty string }{
		{"runtime.debug_info", `{"runtime":{"debug_info":true}}`, `{"runtime":{"debug_info":false}}`},
		{"runtime.limited_fuel", `{"runtime":{"limited_fuel":1}}`, `{"runtime":{"limited_fuel":0}}`},
		{"runtime.runtime_logger", `{"runtime":{"runtime_logger":"x"}}`, `{"runtime":{}}`},
		{"runtime.drivers_root_path", `{"runtime":{"drivers_root_path":"x"}}`, `{"runtime":null}`},
		{"permissions", `{"permissions":["http://a"]}`, `{"permissions":[]}`},
		{"result_aggregation", `{"result_aggregation":{"enable":true}}`, `{"result_aggregation":{"type":"a"}}`},
		{"attributes", `{"attributes":{"attestation_required":true}}`, `{"attributes":{"values":[],"attestors":{}}}`},
		{"attributes", `{"attributes":{"attestors":{"each":["x"]}}}`, `{"attributes":null}`},
		{"attributes", `{"attributes":{"other":1}}`, `{"attributes":{"other":0}}`},
		{"consensus_algorithm", `{"consensus_algorithm":"raft"}`, `{"consensus_algorithm":""}`},
		{"threshold", `{"threshold":0.5}`, `{"threshold":0}`},
	} {
		send(c.refused).Problem(400, "not_supported", "template.config."+c.field)
		require.Equal(t, 200, send(c.empty).Status, c.field)
	}
	send(`{"permissions":["a"],"threshold":1}`).Problem(400, "not_supported", "; template.config.threshold")
	require.Equal(t, 200, send(`{"number_of_nodes":-1,"stdin":"in","env_vars":[{"name":"A","value":"1"}],"timeout":5,
		"concurrency":3,"rate_per_host":0.5,"something":"new",
		"runtime":{"entry":"main","run_time":1500,"limited_memory":20},
		"attributes":{"values":[{"name":"zone","value":"eu"},{"name":"gpu"}]}}`).Status)
	require.Equal(t, batch.Config{
		Nodes: -1, Stdin: "in", Environment: []batch.EnvVar{{Name: "A", Value: "1"}}, Timeout: 5, Concurrency: 3,
		RatePerHost: .5, Entry: "main", RunTime: 1500, Memory: 20 << 16, Labels: map[string]string{"zone": "eu", "gpu": ""},
	}, f.head.request().Template.Config)
	require.Equal(t, 200, send(`{"runtime":{"entry":"_start"}}`).Status)
	require.Empty(t, f.head.request().Template.Config.Entry)
}

// TestWrongTypesAreNamedInJSON rather than in Go.
func TestWrongTypesAreNamedInJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	batchOf := func(more string) string { return `{"template":{"function_id":"f"},"arguments":[["a"]],` + more + `}` }
	const wholes = "max_attempts: use a whole number from 0 to 18446744073709551615, not "
	for _, c := range []struct{ path, body, says string }{
		{submitPath, batchOf(`"max_attempts":"3"`), wholes + "a string"},
		{submitPath, batchOf(`"max_attempts":1e1`), wholes + "1e1"},
		{submitPath, batchOf(`"max_attempts":` + strings.Repeat("7", 1000)), wholes + "7"},
		{submitPath, batchOf(`"max_attempts":[3]`), wholes + "a list"},
		{submitPath, batchOf(`"topic":5`), "topic: use a string, not a number"},
		{submitPath, batchOf(`"template":true`), "template: use an object, not true or false"},
		{submitPath, batchOf(`"template":{"config":{"timeout":"1"}}`),
			"template.config.timeout: use a whole number up to 9223372036854775807, not a string"},
		{submitPath, batchOf(`"template":{"config":{"rate_per_host":{}}}`),
			"template.config.rate_per_host: use a number, not an object"},
		{submitPath, `{"arguments":["a"]}`, "arguments[0] must be a list of strings"},
		{submitPath, `{"arguments":[[],[1]]}`, "arguments[1] must be a list of strings"},
		{executePath, `{"parameters":"x"}`, "parameters: use a list, not a string"},
		{executePath, `{"parameters":["x"]}`, "parameters: use an object, not a string"},
		{executePath, `[]`, "the body: use an object, not a list"},
	} {
		answer := f.send("POST", c.path, c.body)
		answer.Problem(400, "bad_request", c.says)
		require.Less(t, len(answer.Body), 500, "a long number is not repeated")
	}
}

func TestTheLargestMaxAttemptsIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	for text, want := range map[string]uint64{
		`,"max_attempts":18446744073709551615`: math.MaxUint64, `,"max_attempts":0`: 0, ``: 0, `,"MAX_ATTEMPTS":7`: 7,
	} {
		body := `{"template":{"function_id":"f"},"arguments":[null,[]]` + text + `}`
		require.Equal(t, 200, f.send("POST", submitPath, body).Status)
		require.Equal(t, want, f.head.request().MaxAttempts)
		require.Len(t, f.head.request().Arguments, 2)
	}
}

// TestNullIsNothing as for nodes of b7s.
func TestNullIsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	body := `{"template":{"function_id":"f"},"arguments":[[null,"a"],null]}`
	require.Equal(t, 200, f.send("POST", submitPath, body).Status)
	require.Equal(t, [][]string{{"", "a"}, nil}, f.head.request().Arguments)
}

func TestAKeyMakesARequestRepeatable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	one := `{"template":{"function_id":"f"},"arguments":[["a"]]}`
	two := `{"template":{"function_id":"f"},"arguments":[["a"],[]]}`
	first := f.send("POST", submitPath, one, "Idempotency-Key", "k")
	require.Equal(t, string(first.Body), string(f.send("POST", submitPath, one, "Idempotency-Key", "k").Body))
	f.send("POST", submitPath, two, "Idempotency-Key", "k").Problem(409, "id_in_use", "")
	require.NotEqual(t, string(first.Body), string(f.send("POST", submitPath, one).Body))
}

func TestGzipBothWays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	answer := f.send("POST", submitPath, zipped(t, []byte(testdata(t, "request.json"))),
		"Content-Encoding", "gzip", "Accept-Encoding", "br;q=1, gzip;q=0.5")
	require.Equal(t, "gzip", answer.Header.Get("Content-Encoding"))
	z, err := gzip.NewReader(bytes.NewReader(answer.Body))
	require.NoError(t, err)
	var made map[string]string
	require.NoError(t, json.NewDecoder(z).Decode(&made))
	require.NotEmpty(t, made["request_id"])
	for _, refused := range []string{"", "br", "gzip;q=0", "gzip; q=0.0"} {
		plain := f.send("GET", batchesPath, "", "Accept-Encoding", refused)
		require.Empty(t, plain.Header.Get("Content-Encoding"), refused)
		require.True(t, json.Valid(plain.Body))
	}
	failed := f.send("GET", batchesPath+"/x", "", "Accept-Encoding", "gzip")
	require.Equal(t, 404, failed.Status)
	require.Equal(t, "gzip", failed.Header.Get("Content-Encoding"))
}

// raw sends the end of a request for a batch, hangs up on its side, and returns
// what comes back.
func (f *fixture) raw(end string) string {
	f.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(f, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s", submitPath, end)
	require.NoError(f, err)
	require.NoError(f, conn.(*net.TCPConn).CloseWrite())
	content, err := io.ReadAll(conn)
	require.NoError(f, err)
	return string(content)
}

// TestAHalfClosedRequestIsAnswered sends a part of a body and closes its side.
func TestAHalfClosedRequestIsAnswered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	content := f.raw("Content-Length: 1000\r\n\r\n" + `{"template"`)
	if len(content) > 0 { // the server may close without a word to a client that has hung up
		require.Contains(t, content, "400 Bad Request")
		require.Contains(t, content, "cut off")
	}
	require.Equal(t, http.StatusOK, f.send("GET", batchesPath, "").Status)
}

// TestAHundredThousandItemsAreOneRequest sends the documented maximum of items.
func TestAHundredThousandItemsAreOneRequest(t *testing.T) {
	t.Parallel()
	n := 10_000
	if os.Getenv("FUTURA_LONG") != "" {
		n = 100_000
	}
	f := newFixture(t, rest.Options{})
	var body strings.Builder
	body.WriteString(`{"template":{"function_id":"f","method":"m"},"arguments":[`)
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `["https://example.com/%d"]`, i)
	}
	body.WriteString(`]}`)
	var made struct {
		ID string `json:"request_id"`
	}
	f.send("POST", submitPath, body.String()).Into(200, &made)
	var v view
	f.send("GET", batchesPath+"/"+made.ID, "").Into(200, &v)
	require.Equal(t, n, v.Items)
	answer := f.send("GET", batchesPath+"/"+made.ID+"/results", "", "Accept", "application/x-ndjson")
	require.Equal(t, n, bytes.Count(answer.Body, []byte("\n")))
}

// TestEveryRequestIsLogged finds its id, status and size in the log, and no
// token.
func TestEveryRequestIsLogged(t *testing.T) {
	t.Parallel()
	var log stacktest.Buffer
	f := newFixture(t, rest.Options{Stack: stack.Options{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)), AccessLog: true, Tokens: stack.NewTokens("admin", adminToken),
	}})
	f.send("GET", batchesPath+"/x", "", "X-Request-Id", "mine", "Authorization", "Bearer "+adminToken)
	var line struct {
		Msg, ID, Method, Path string
		Status                int
	}
	require.Eventually(t, func() bool { return log.String() != "" }, 10*time.Second, time.Millisecond)
	require.NoError(t, json.Unmarshal([]byte(log.String()), &line))
	require.Equal(t, []any{"mine", "GET", batchesPath + "/x", 404}, []any{line.ID, line.Method, line.Path, line.Status})
	require.NotContains(t, log.String(), adminToken)
}

func TestRequestIDsAndHealth(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Stack: stack.Options{Version: "v1"}})
	require.Equal(t, "abc", f.send("GET", batchesPath, "", "X-Request-Id", "abc").Header.Get("X-Request-Id"))
	require.NotEmpty(t, f.send("GET", batchesPath, "").Header.Get("X-Request-Id"))
	var health map[string]any
	f.send("GET", "/api/v1/health", "").Into(200, &health)
	require.Equal(t, map[string]any{"code": 200.0, "type": "MsgHealthCheck", "status": "ok", "version": "v1"}, health)
	metrics := string(f.send("GET", "/metrics", "").Body)
	require.Contains(t, metrics, `futura_http_requests_total{route="GET /api/v1/batches",status="200"} 2`)
}

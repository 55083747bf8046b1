package collectortest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// program builds the command.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "futura")
	build := exec.Command("go", "build", "-tags", "pebblegozstd", "-trimpath", "-o", path, "./cmd/futura")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// said is what a head or a worker prints once it runs.
type said struct {
	URL    string
	Peers  []string
	Worker string
}

// start runs the command as a process that sends its spans to the collector. stop ends it as an
// operator does.
func start(t *testing.T, c *collector, program, service string, args ...string,
) (s said, log *bytes.Buffer, stop func()) {
	t.Helper()
	cmd := exec.Command(program, append(args, "--json")...)
	log, cmd.Dir = &bytes.Buffer{}, t.TempDir()
	cmd.Stderr = log
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir,
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_SERVICE_NAME=" + service,
		"OTEL_SEMCONV_STABILITY_OPT_IN=messaging", "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=0", // nothing but what the request asks for
	}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait(), "%s: %s", service, log)
	})
	t.Cleanup(stop)
	require.NoError(t, json.NewDecoder(out).Decode(&s), "%s: %s", service, log)
	return s, log, stop
}

// module is a WASM module that ends at once.
const module = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// send sends a request of the trace and returns its answer.
func send(t *testing.T, url, kind, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("traceparent", "00-"+traceID+"-"+clientID+"-01")
	r.Header.Set("tracestate", "vendor=1")
	r.Header.Set("baggage", "secret=1")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s", text)
	return string(text)
}

// The trace of the client that sends the request, and its span.
const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	clientID = "b7ad6b7169203331"
)

// TestOneTraceLeadsToEachPeer sends a batch to a head whose workers are two peers, each a process, over
// libp2p: a collector sees how the request led to each attempt, wherever the batch is kept.
func TestOneTraceLeadsToEachPeer(t *testing.T) {
	futura := program(t)
	for _, store := range []string{"futures", "memory"} {
		t.Run(store, func(t *testing.T) { leadsToEachPeer(t, futura, store) })
	}
}

func leadsToEachPeer(t *testing.T, futura, store string) {
	c := startCollector(t)
	head, log, stopHead := start(t, c, futura, "head", "head", "--store", "embedded:"+t.TempDir(), "--batch-store", store,
		"--open", "--rest-api", "127.0.0.1:0", "--peers", "/ip4/127.0.0.1/tcp/0", "--any-peer", "--verbose")
	var stops []func()
	for _, name := range []string{"peer-1", "peer-2"} {
		_, _, stop := start(t, c, futura, name, "worker", "--head", head.Peers[0], "--slots", "1")
		stops = append(stops, stop)
	}
	const functions = "/api/v1/functions/"
	query := url.Values{"function_id": {"work"}, "method": {"run.wasm"}}
	send(t, head.URL+functions+"install?"+query.Encode(), "application/wasm", module)
	answer := send(t, head.URL+functions+"execute/batch?answer=chunks", "application/json",
		`{"template": {"function_id": "work", "method": "run.wasm", "config": {"number_of_nodes": 2}},
			"arguments": [["1"], ["2"], ["3"], ["4"], ["5"], ["6"]]}`)
	require.Contains(t, answer, `"code":"200"`)
	for _, stop := range append(stops, stopHead) {
		stop() // which sends the last spans
	}

	request := c.one(t, "POST /api/v1/functions/execute/batch")
	require.Equal(t, ptrace.SpanKindServer, request.Kind())
	require.Equal(t, "head", request.service)
	require.Equal(t, []string{traceID, clientID}, []string{request.trace(), request.parent()})
	require.Equal(t, "200", request.text("http.response.status_code"))
	require.Equal(t, "vendor=1", request.TraceState().AsRaw())

	create := c.one(t, "create wasm:work/run.wasm")
	require.Equal(t, ptrace.SpanKindProducer, create.Kind())
	require.Equal(t, []string{traceID, request.id()}, []string{create.trace(), create.parent()})
	require.Equal(t, "6", create.text("messaging.batch.message_count"))

	attempts := c.named("process wasm")
	require.Len(t, attempts, 6)
	peers, traces, ids := map[string]bool{}, map[string]bool{traceID: true}, map[string]bool{}
	for _, s := range attempts {
		peers[s.service], traces[s.trace()], ids[s.text("futura.id")] = true, true, true
		require.Equal(t, ptrace.SpanKindConsumer, s.Kind())
		require.Empty(t, s.parent(), "an attempt is a trace of its own")
		require.Equal(t, 1, s.Links().Len())
		link := s.Links().At(0)
		require.Equal(t, []string{traceID, create.id()}, []string{link.TraceID().String(), link.SpanID().String()})
		require.Equal(t, "1", s.text("futura.attempt"))
		require.Equal(t, "process", s.text("messaging.operation.type"))
		require.NotContains(t, s.Name(), "baf")
	}
	require.Equal(t, map[string]bool{"peer-1": true, "peer-2": true}, peers)
	require.Len(t, traces, 7)
	require.Len(t, ids, 6)
	for _, s := range c.spans {
		require.NotContains(t, s.Attributes().AsRaw(), "secret", "baggage goes nowhere")
	}
	require.Contains(t, log.String(), "trace_id="+traceID+" span_id="+request.id())
}

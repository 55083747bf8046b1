package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts with an environment. The log is complete once the provider is closed.
func start(t *testing.T, environment map[string]string) (p *Provider, log, console *bytes.Buffer, err error) {
	log, console = &bytes.Buffer{}, &bytes.Buffer{}
	p, err = Start(t.Context(), Options{
		Getenv: func(name string) string { return environment[name] }, Service: "futura", Version: "1", Console: console,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	return p, log, console, err
}

// TestOffUnlessAnExporterIsNamed sets up nothing.
func TestOffUnlessAnExporterIsNamed(t *testing.T) {
	t.Parallel()
	for _, environment := range []map[string]string{
		nil,
		{"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nonsense"},
		{"OTEL_TRACES_EXPORTER": "none", otlpEndpoint: "http://localhost:4318"},
		{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"},
	} {
		p, _, _, err := start(t, environment)
		require.NoError(t, err)
		require.Nil(t, p, environment)
		p.Close()
	}
}

// TestMistakesNameTheirVariable has values that can't be used.
func TestMistakesNameTheirVariable(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"OTEL_TRACES_EXPORTER", "zipkin"}, {otlpEndpoint, "localhost:4318"}, {tracesEndpoint, "unix:///x"},
		{otlpEndpoint, "http://"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"}, {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret"}, {"OTEL_EXPORTER_OTLP_HEADERS", "a=%0d%0asecret"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "=secret"}, {"OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%00secret"}, {"OTEL_EXPORTER_OTLP_TIMEOUT", "9999999999999999"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere"}, {"OTEL_TRACES_SAMPLER", "x"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "-5"}, {"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"}, {"OTEL_BSP_SCHEDULE_DELAY", "5s"}, {"OTEL_BSP_EXPORT_TIMEOUT", "-1"},
	} {
		environment := map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}
		environment[c[0]] = c[1]
		_, _, _, err := start(t, environment)
		require.ErrorContains(t, err, c[0])
		require.NotContains(t, err.Error(), "secret")
	}
	for _, ratio := range []string{"2", "-0.1", "0.5x", "NaN"} {
		_, _, _, err := start(t, map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": ratio})
		require.ErrorContains(t, err, "OTEL_TRACES_SAMPLER_ARG", ratio)
	}
}

// collector takes spans.
type collector struct {
	*httptest.Server
	requests atomic.Int64
	got      chan *http.Request
	spans    chan *tracepb.TracesData
	answer   func(n int64, w http.ResponseWriter)
}

func newCollector(t *testing.T, secure bool) *collector {
	c := &collector{got: make(chan *http.Request, 100), spans: make(chan *tracepb.TracesData, 100)}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		data, err := io.ReadAll(body)
		var got tracepb.TracesData
		if err != nil || proto.Unmarshal(data, &got) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.got <- r
		if n := c.requests.Add(1); c.answer != nil {
			c.answer(n, w)
		}
		c.spans <- &got
	}))
	if secure {
		c.StartTLS()
	} else {
		c.Start()
	}
	t.Cleanup(c.Close)
	return c
}

// TestSpansAreSent sends a span, compressed and with headers, when the process ends.
func TestSpansAreSent(t *testing.T) {
	t.Parallel()
	c := newCollector(t, true)
	file := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, certificate, 0o600))
	p, log, _, err := start(t, map[string]string{
		otlpEndpoint: c.URL + "/base/", "OTEL_EXPORTER_OTLP_HEADERS": "a=x, b=%79", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": file,
	})
	require.NoError(t, err)
	_, span := p.Tracer("t").Start(t.Context(), "work")
	span.End()
	p.Close()
	require.Empty(t, log.String())
	r, data := <-c.got, <-c.spans
	require.Equal(t, "/base/v1/traces", r.URL.Path)
	require.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
	require.Equal(t, []string{"x", "y"}, []string{r.Header.Get("a"), r.Header.Get("b")})
	require.Equal(t, "work", data.ResourceSpans[0].ScopeSpans[0].Spans[0].Name)
	require.Contains(t, data.ResourceSpans[0].Resource.String(), "service.name")
}

// TestWhatFailsForAMomentIsTriedAgain has a collector that is busy, and one that refuses.
func TestWhatFailsForAMomentIsTriedAgain(t *testing.T) {
	t.Parallel()
	upload := func(answer func(int64, http.ResponseWriter)) (int64, error) {
		c := newCollector(t, false)
		c.answer = answer
		sender, err := newClient(func(name string) string { return map[string]string{tracesEndpoint: c.URL + "/own"}[name] })
		require.NoError(t, err)
		require.Equal(t, c.URL+"/own", sender.url)
		sender.retry = time.Millisecond
		err = sender.UploadTraces(t.Context(), nil)
		require.NoError(t, sender.Stop(t.Context()))
		return c.requests.Load(), err
	}
	n, err := upload(func(n int64, w http.ResponseWriter) {
		if n < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusUnauthorized} {
		n, err = upload(func(_ int64, w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		})
		require.ErrorContains(t, err, http.StatusText(status))
		require.EqualValues(t, 1, n)
	}
}

// TestALostCollectorIsLogged ends within its time.
func TestALostCollectorIsLogged(t *testing.T) {
	t.Parallel()
	p, log, _, err := start(t, map[string]string{otlpEndpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
	require.NoError(t, err)
	_, span := p.Tracer("t").Start(t.Context(), "work")
	span.End()
	p.Close()
	require.Contains(t, log.String(), "spans were not exported")
}

// TestTheConsole writes spans as JSON.
func TestTheConsole(t *testing.T) {
	t.Parallel()
	p, _, console, err := start(t, map[string]string{"OTEL_TRACES_EXPORTER": "console,none"})
	require.NoError(t, err)
	_, span := p.Tracer("t").Start(t.Context(), "work")
	span.End()
	p.Close()
	require.Contains(t, console.String(), `"Name":"work"`)
}

// TestSamplersHeedLinks samples what is linked to a sampled span, and nothing else.
func TestSamplersHeedLinks(t *testing.T) {
	t.Parallel()
	linkTo := func(flags trace.TraceFlags) trace.Link {
		return trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags,
		})}
	}
	for name, want := range map[string][3]bool{ // without a link, with one that is sampled, with one that is not
		"": {true, true, false}, "parentbased_always_off": {false, true, false}, "always_off": {false, false, false},
		"always_on": {true, true, true}, "parentbased_traceidratio": {false, true, false},
	} {
		s, err := samplerOf(func(variable string) string {
			return map[string]string{"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": "0"}[variable]
		})
		require.NoError(t, err)
		for i, links := range [][]trace.Link{nil, {linkTo(0), linkTo(trace.FlagsSampled)}, {linkTo(0)}} {
			p := sdk.SamplingParameters{ParentContext: context.Background(), TraceID: trace.TraceID{15: 1}, Links: links}
			require.Equal(t, want[i], s.ShouldSample(p).Decision == sdk.RecordAndSample, "%s %d", name, i)
		}
	}
}

package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/tracing"
)

const traceParent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// TestHostileContexts extracts what others may send.
func TestHostileContexts(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "x", traceParent + "-x", "ff" + traceParent[2:], strings.ToUpper(traceParent), strings.Repeat("0", 55),
		"00-00000000000000000000000000000000-0123456789abcdef-01", traceParent + strings.Repeat("0", 1<<20),
	} {
		ctx := tracing.Extract(t.Context(), func(name string) string {
			return map[string]string{"traceparent": bad}[name]
		})
		require.False(t, trace.SpanContextFromContext(ctx).IsValid(), "%.80q", bad)
	}
	for state, kept := range map[string]bool{
		"": false, "a=b": true, "a=" + strings.Repeat("b", 255): true, strings.Repeat("a=b,", 1000) + "c=d": false,
		"a\n=b": false, "a=b," + strings.Repeat(" ", 509): false,
	} {
		ctx := tracing.Extract(t.Context(), func(name string) string {
			return map[string]string{"traceparent": traceParent, "tracestate": state, "baggage": "secret=1"}[name]
		})
		span := trace.SpanContextFromContext(ctx)
		require.True(t, span.IsValid())
		require.Equal(t, kept, span.TraceState().Len() > 0, "%.80q", state)
		carrier, _ := tracing.Inject(ctx).Value(layout.TraceKey{}).(map[string]string)
		require.Equal(t, traceParent, carrier["traceparent"])
		require.NotContains(t, carrier, "baggage")
	}
}

// TestALargeStateIsNotInjected has a trace of the program's own with a state of many members.
func TestALargeStateIsNotInjected(t *testing.T) {
	t.Parallel()
	large := "a=" + strings.Repeat("b", 250) + ",c=" + strings.Repeat("d", 250) + ",e=" + strings.Repeat("f", 250)
	state, err := trace.ParseTraceState(large)
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state,
	})
	carrier := tracing.Inject(trace.ContextWithSpanContext(t.Context(), span)).Value(layout.TraceKey{})
	require.Equal(t, map[string]string{
		"traceparent": "00-01000000000000000000000000000000-0200000000000000-00",
	}, carrier)
	require.Equal(t, t.Context(), tracing.Inject(t.Context()))
}

// TestLogsHaveTraceIDs logs within and without a span.
func TestLogsHaveTraceIDs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(tracing.LogHandler(slog.NewTextHandler(&out, nil))).With("a", 1)
	log.InfoContext(t.Context(), "without")
	require.NotContains(t, out.String(), "trace_id")
	out.Reset()
	ctx := tracing.Extract(t.Context(), func(name string) string {
		return map[string]string{"traceparent": traceParent}[name]
	})
	log.WithGroup("g").InfoContext(ctx, "within")
	require.Contains(t, out.String(), "trace_id=0123456789abcdef0123456789abcdef")
	require.Contains(t, out.String(), "span_id=0123456789abcdef")
	require.Contains(t, out.String(), "a=1")
}

// TestSpansOfRequests have the name of the route and the parent that the headers name.
func TestSpansOfRequests(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	spans := tracing.New(tracing.Options{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/futures/17", nil)
	r.Header.Set("traceparent", traceParent)
	for i, status := range []int{200, 404, 500} {
		_, ended := spans.Request(r, "GET /api/v1/futures/{id}")
		ended(status)
		span := recorder.Ended()[i]
		require.Equal(t, "GET /api/v1/futures/{id}", span.Name())
		require.Equal(t, trace.SpanKindServer, span.SpanKind())
		require.Equal(t, "0123456789abcdef", span.Parent().SpanID().String())
		require.True(t, span.Parent().IsRemote())
		require.Equal(t, "/api/v1/futures/{id}", valueOf(span, "http.route"))
		require.EqualValues(t, status, valueOf(span, "http.response.status_code"))
		require.Equal(t, status == 500, span.Status().Code == codes.Error)
	}
}

// TestNamesHaveNoIDs creates futures of a module by its content id.
func TestNamesHaveNoIDs(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	spans := tracing.New(tracing.Options{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))})
	const cid = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
	for i, c := range [][2]string{
		{"go:greet", "create go:greet"}, {"wasm:count", "create wasm:count"}, {"wasm:" + cid, "create wasm"},
		{"wasm:" + cid + "/run.wasm", "create wasm/run.wasm"}, {"", "create"},
	} {
		_, ended := spans.Create(t.Context(), c[0], "", 2)
		ended(nil)
		require.Equal(t, c[1], recorder.Ended()[i].Name())
	}
}

// TestMessagingAttributes opts in to conventions that are in development.
func TestMessagingAttributes(t *testing.T) {
	for value, want := range map[string]any{
		"": nil, "http": nil, "messaging": "futura", "http, messaging/dup": "futura", "database,messaging": "futura",
	} {
		t.Setenv("OTEL_SEMCONV_STABILITY_OPT_IN", value)
		recorder := tracetest.NewSpanRecorder()
		spans := tracing.New(tracing.Options{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))})
		_, ended := spans.Create(context.Background(), "go:greet", "mail", 2)
		ended(nil)
		span := recorder.Ended()[0]
		require.Equal(t, want, valueOf(span, "messaging.system"), value)
		if want != nil {
			require.Equal(t, "mail", valueOf(span, "messaging.destination.name"))
			require.Equal(t, "create", valueOf(span, "messaging.operation.type"))
			require.EqualValues(t, 2, valueOf(span, "messaging.batch.message_count"))
		}
	}
}

package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Request begins the span of a request that a server has admitted, for stack.Options.Trace: a child of
// the one that the headers traceparent and tracestate name, with the name of the route, such
// as "POST /api/v1/futures". ended must be called with the status of the answer.
func (t *Tracing) Request(r *http.Request, route string) (traced context.Context, ended func(status int)) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	method, path, _ := strings.Cut(route, " ")
	ctx, span := t.tracer.Start(Extract(r.Context(), r.Header.Get), route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(path),
			semconv.URLScheme(scheme), semconv.URLPath(r.URL.Path)))
	return ctx, func(status int) {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

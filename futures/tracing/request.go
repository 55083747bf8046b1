package tracing

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxPath is how many bytes of a path a span has.
const maxPath = 256

// Request begins the span of a request that a server has admitted, for stack.Options.Trace: a
// child of the one that the headers traceparent and tracestate name, with the name of the route,
// such as "POST /api/v1/futures". ended must be called with the status of the answer.
func (t *Tracing) Request(r *http.Request, route string) (traced context.Context, ended func(status int)) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	method, pattern, _ := strings.Cut(route, " ")
	path, _, _ := strings.Cut(cmp.Or(r.RequestURI, r.URL.Path), "?")
	ctx, span := t.tracer.Start(Extract(r.Context(), r.Header.Get), route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(pattern),
			semconv.URLScheme(scheme), semconv.URLPath(layout.Shorten(path, maxPath))))
	return ctx, func(status int) {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

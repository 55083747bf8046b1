package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// The names of W3C's Trace Context, and the most bytes of their values: those of a traceparent
// of version 00, and of a tracestate what is stored with each future.
const (
	parent    = "traceparent"
	state     = "tracestate"
	maxParent = 55
	maxState  = 512
)

// Inject returns a context in which futures are made as part of the trace of ctx, if it has a
// span: by a client without a Tracer, or a head of batches. A tracestate of more than 512
// bytes is left out.
func Inject(ctx context.Context) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if len(carrier[state]) > maxState {
		delete(carrier, state)
	}
	return context.WithValue(ctx, layout.TraceKey{}, map[string]string(carrier))
}

// Extract returns a context whose spans are children of the one that a carrier names by
// traceparent and tracestate, which may come from anywhere. A traceparent that is malformed
// counts as none, and so does a tracestate that is malformed or has more than 512 bytes.
func Extract(ctx context.Context, get func(name string) string) context.Context {
	carrier := propagation.MapCarrier{parent: get(parent)}
	if len(carrier[parent]) != maxParent {
		return ctx
	}
	if text := get(state); len(text) <= maxState {
		carrier[state] = text
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// creation is the span that created a future, invalid for none.
func creation(carrier map[string]string) trace.SpanContext {
	ctx := Extract(context.Background(), func(name string) string { return carrier[name] })
	return trace.SpanContextFromContext(ctx)
}

// LogHandler returns a handler that adds trace_id and span_id to records that are logged with the
// context of a span.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

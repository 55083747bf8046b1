// Package tracing records what futures do as spans of OpenTelemetry. It uses the API of
// OpenTelemetry alone: which spans are kept and where they go is for the program's SDK.
//
//	spans := tracing.New(tracing.Options{Provider: otel.GetTracerProvider()})
//	client, err := futures.New(ctx, db, futures.Options{Tracer: spans})
//	worker, err := workers.New(client, workers.Options{Middleware: []workers.Middleware{spans.Middleware}})
//
// A submit is a span "create FUNCTION" of the kind producer, whose context is stored with its
// futures. An attempt is a span "process FUNCTION" of the kind consumer with a link to it. Awaits
// are spans "await" within the caller's. Context travels as W3C's Trace Context has it, by no other
// propagator, and baggage does not.
package tracing

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// Options of a Tracing.
type Options struct {
	// Provider makes the tracer: that of the program's SDK, or otel.GetTracerProvider(). It is
	// required.
	Provider trace.TracerProvider
	// Child has the span of an attempt be a child of the one that created its future, and so part
	// of its trace. Defaults to false: futures may run days later, in any number, so an attempt
	// begins a trace of its own, unless a span surrounds it. It has a link to the creation in
	// any case.
	Child bool
}

// Tracing makes spans. It is a futures.Tracer.
type Tracing struct {
	tracer    trace.Tracer
	child     bool
	messaging bool
}

// New returns a Tracing. Its spans also have the attributes of OpenTelemetry's conventions for
// messaging, which may still change, if OTEL_SEMCONV_STABILITY_OPT_IN has messaging or
// messaging/dup in its list.
func New(o Options) *Tracing {
	opted := strings.FieldsFunc(os.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"),
		func(r rune) bool { return r == ',' || r == ' ' })
	return &Tracing{
		tracer: o.Provider.Tracer("github.com/futura-run/futura/futures/tracing"), child: o.Child,
		messaging: slices.Contains(opted, "messaging") || slices.Contains(opted, "messaging/dup"),
	}
}

// Submit implements futures.Tracer: tasks of one call share a span. There is none if all have
// a Trace of their own.
func (t *Tracing) Submit(ctx context.Context, tasks []futures.Task) (context.Context, func([]*futures.Future, error)) {
	function, queue, follow := tasks[0].Function, "", false
	if function != "" { // forks have those of their sources
		queue = cmp.Or(tasks[0].Queue, layout.DefaultQueue)
	}
	for i := range tasks {
		if tasks[i].Function != function {
			function = ""
		}
		if cmp.Or(tasks[i].Queue, layout.DefaultQueue) != queue {
			queue = ""
		}
		follow = follow || tasks[i].Trace == nil
	}
	if !follow {
		return ctx, func([]*futures.Future, error) {}
	}
	ctx, span := t.create(ctx, function, queue, len(tasks))
	return ctx, func(made []*futures.Future, err error) {
		if err == nil && len(made) == 1 {
			span.SetAttributes(t.id(made[0].ID())...)
		}
		end(span, err, layout.KindError)
	}
}

// Create begins the span of n futures of a function that no client submits, such as the items
// of a batch: they are part of its trace if they are made with the context that it returns.
// ended must be called with the error. An empty function or queue stands for several.
func (t *Tracing) Create(ctx context.Context, function, queue string, n int,
) (traced context.Context, ended func(error)) {
	ctx, span := t.create(ctx, function, queue, n)
	return ctx, func(err error) { end(span, err, layout.KindError) }
}

func (t *Tracing) create(ctx context.Context, function, queue string, n int) (context.Context, trace.Span) {
	ctx, span := t.tracer.Start(ctx, nameOf("create", function), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(t.attributes("create", function, queue, n)...))
	return Inject(ctx), span
}

// Await implements futures.Tracer. An await outside of any span has none.
func (t *Tracing) Await(ctx context.Context, fs []*futures.Future) (ended func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return func(error) {}
	}
	attributes := []attribute.KeyValue{keyCount.Int(len(fs))}
	if len(fs) == 1 {
		attributes = append(attributes, keyID.String(fs[0].ID().String()))
	}
	_, span := t.tracer.Start(ctx, "await", trace.WithAttributes(attributes...))
	return func(err error) { end(span, err, layout.KindError) }
}

// maxError is how many bytes of an error a span has.
const maxError = 256

// end ends a span.
func end(span trace.Span, err error, kind layout.FailureKind) {
	if err != nil {
		span.SetStatus(codes.Error, layout.Shorten(err.Error(), maxError))
		span.SetAttributes(keyError.String(string(kind)))
	}
	span.End()
}

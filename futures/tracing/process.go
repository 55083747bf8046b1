package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// Middleware has each attempt be a span. What the function does with its context is within it,
// and futures that it makes are part of its trace. It passes on what functions return, so that
// workers.Options.StreamsOutput may be set.
func (t *Tracing) Middleware(next workers.Call) workers.Call {
	return func(ctx context.Context, args []byte) (value []byte, err error) {
		info, _ := workers.InfoFrom(ctx)
		var links []trace.Link
		if link := creation(info.Trace); link.IsValid() {
			links = []trace.Link{{SpanContext: link}}
		}
		ctx, span := t.process(ctx, info.Function, links, t.attempt(&info))
		returned := false
		defer func() { endProcess(ctx, span, returned, err) }()
		value, err = next(ctx, args)
		returned = true
		return value, err
	}
}

// Bundle has each call of a function that takes many futures be a span, with a link for each
// of them. Arguments and results are those of workers.Worker.RegisterBundle.
func (t *Tracing) Bundle(name string, fn workers.BundleFunction) (string, workers.BundleFunction) {
	return name, func(ctx context.Context, key string, members []workers.Member) (ends []workers.MemberEnd, err error) {
		if len(members) == 1 && key == "" {
			return fn(ctx, key, members) // no bundle: Middleware is around it
		}
		info, _ := workers.InfoFrom(ctx)
		var links []trace.Link
		for i := range members {
			if link := creation(members[i].Trace); link.IsValid() {
				links = append(links, trace.Link{SpanContext: link, Attributes: t.id(members[i].ID)})
			}
		}
		attributes := append(t.attributes("process", info.Function, info.Queue, len(members)),
			keyWorker.String(string(info.Worker)), keyLane.String(key))
		ctx, span := t.process(ctx, info.Function, links, attributes)
		returned := false
		defer func() { endProcess(ctx, span, returned, err) }()
		ends, err = fn(ctx, key, members)
		returned = true
		for i := range min(len(ends), len(members)) {
			if failed := ends[i].Err; failed != nil && !snoozes(members[i].Context(), failed) {
				kind := keyError.String(string(kindOf(members[i].Context(), failed)))
				span.AddEvent("failed", trace.WithAttributes(append(t.id(members[i].ID), kind)...))
			}
		}
		return ends, err
	}
}

// process begins the span of a call.
func (t *Tracing) process(ctx context.Context, function string, links []trace.Link, attributes []attribute.KeyValue,
) (context.Context, trace.Span) {
	if t.child && len(links) == 1 && !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, links[0].SpanContext)
	}
	ctx, span := t.tracer.Start(ctx, nameOf("process", function), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(attributes...))
	return Inject(ctx), span
}

// endProcess ends the span of a call, which has panicked if it has not returned.
func endProcess(ctx context.Context, span trace.Span, returned bool, err error) {
	if !returned {
		span.SetStatus(codes.Error, "panic")
		span.SetAttributes(keyError.String(string(layout.KindPanic)))
	}
	if snoozes(ctx, err) {
		err = nil
	}
	end(span, err, kindOf(ctx, err))
}

// snoozes reports whether an attempt with this error has not failed, and is to run again later.
func snoozes(ctx context.Context, err error) bool {
	var later interface{ Snoozes() bool }
	return ctx.Err() == nil && errors.As(err, &later) && later.Snoozes()
}

// kindOf is how an attempt with this error fails.
func kindOf(ctx context.Context, err error) layout.FailureKind {
	var module *workers.ModuleError
	switch {
	case errors.Is(context.Cause(ctx), workers.ErrCancelled):
		return layout.KindCancelled
	case errors.Is(context.Cause(ctx), workers.ErrTimeout):
		return layout.KindTimeout
	case errors.As(err, &module):
		return module.Kind
	default:
		return layout.KindError
	}
}

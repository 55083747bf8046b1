package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/tracing"
	"github.com/futura-run/futura/internal/telemetry"
	"github.com/futura-run/futura/workers"
)

// traces are the spans of a process. A nil one makes none.
type traces struct {
	provider *telemetry.Provider
	spans    *tracing.Tracing
}

// startTraces has the process make spans if its environment names an exporter.
func (a *app) startTraces(ctx context.Context) error {
	p, err := telemetry.Start(ctx, telemetry.Options{
		Getenv: os.Getenv, Service: "futura", Version: version, Console: a.err, Logger: a.notices(),
	})
	if err != nil {
		return usageError{err}
	}
	if p != nil {
		a.traces = &traces{p, tracing.New(tracing.Options{Provider: p})}
	}
	return nil
}

// close exports what has ended.
func (t *traces) close() {
	if t != nil {
		t.provider.Close()
	}
}

// tracer is that of clients.
func (t *traces) tracer() futures.Tracer {
	if t == nil {
		return nil
	}
	return t.spans
}

// middleware is that of workers. It passes on what functions return.
func (t *traces) middleware() []workers.Middleware {
	if t == nil {
		return nil
	}
	return []workers.Middleware{t.spans.Middleware}
}

// requests is what a server tells of its requests.
func (t *traces) requests() func(*http.Request, string) (context.Context, func(int)) {
	if t == nil {
		return nil
	}
	return t.spans.Request
}

// logs returns a handler whose records have the ids of their spans.
func (t *traces) logs(h slog.Handler) slog.Handler {
	if t == nil {
		return h
	}
	return tracing.LogHandler(h)
}

// head returns a head that makes a span of each batch.
func (t *traces) head(h rest.Head) rest.Head {
	if t == nil {
		return h
	}
	return tracedHead{h, t.spans}
}

type tracedHead struct {
	rest.Head
	spans *tracing.Tracing
}

// Submit implements rest.Head.
func (h tracedHead) Submit(ctx context.Context, r batch.Request) (b batch.Batch, existed bool, err error) {
	function, queue := r.Template.Functions()[0], futurestore.Queue(&r.Template)
	ctx, ended := h.spans.Create(ctx, function, queue, len(r.Arguments))
	defer func() { ended(err) }()
	return h.Head.Submit(ctx, r)
}

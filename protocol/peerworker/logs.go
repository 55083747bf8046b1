package peerworker

import (
	"context"
	"log/slog"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// headNames has log lines name futures as their heads do, instead of by their ids here, so that
// one id is found in the logs of both.
type headNames struct {
	slog.Handler
	worker *Worker
}

// futureKey is by which lines name a future.
const futureKey = "future"

// Handle implements slog.Handler.
func (h headNames) Handle(ctx context.Context, r slog.Record) error {
	var renamed []slog.Attr
	found := false
	r.Attrs(func(a slog.Attr) bool {
		names := h.worker.nameAttr(a)
		found = found || len(names) > 1
		renamed = append(renamed, names...)
		return true
	})
	if !found {
		return h.Handler.Handle(ctx, r)
	}
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	line.AddAttrs(renamed...)
	return h.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h headNames) WithAttrs(attrs []slog.Attr) slog.Handler {
	var renamed []slog.Attr
	for _, a := range attrs {
		renamed = append(renamed, h.worker.nameAttr(a)...)
	}
	return headNames{h.Handler.WithAttrs(renamed), h.worker}
}

// WithGroup implements slog.Handler.
func (h headNames) WithGroup(name string) slog.Handler {
	return headNames{h.Handler.WithGroup(name), h.worker}
}

// nameAttr returns what a line says instead of an attribute: of a future of a head its id and
// attempt there, the head, and the chunk or the request.
func (w *Worker) nameAttr(a slog.Attr) []slog.Attr {
	id, ok := a.Value.Any().(layout.ID)
	if a.Key != futureKey || !ok {
		return []slog.Attr{a}
	}
	w.mu.Lock()
	at, found := w.places[id]
	w.mu.Unlock()
	if !found {
		return []slog.Attr{a}
	}
	c := at.chunk
	names := []slog.Attr{slog.String("head", c.name.head), slog.String("chunk", c.name.chunk)}
	if c.order != nil { // nodes of b7s know an item by its place alone
		return append(names, slog.String("request", c.request), slog.Int("item", at.index))
	}
	it := c.items[at.index]
	return append([]slog.Attr{slog.Any(futureKey, it.future), slog.Int("attempt", int(it.attempt))}, names...)
}

// maxNamed bounds the futures that one line names.
const maxNamed = 20

// named are the futures of items of a chunk, all that have not ended if indexes is nil, as its
// head names them, for a line.
func (c *chunk) named(indexes []int) slog.Attr {
	if indexes == nil {
		indexes = c.openItems()
	}
	ids := make([]string, 0, min(len(indexes), maxNamed))
	for _, i := range indexes[:min(len(indexes), maxNamed)] {
		if i >= 0 && i < len(c.items) {
			ids = append(ids, c.items[i].future.String())
		}
	}
	return slog.Any("futures", ids)
}

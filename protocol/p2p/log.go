package p2p

import (
	"context"
	"log/slog"

	"github.com/libp2p/go-libp2p/gologshim"
)

// LibraryLog is where libp2p's own packages log to, in the whole process: their
// warnings and errors, as debug records, since most are about peers that behave badly
// or connections that end as they should. Without it they write errors to standard
// error. A program calls it once, before it opens a host.
func LibraryLog(to slog.Handler) { gologshim.SetDefaultHandler(quiet{to}) }

// quiet passes warnings and errors on as debug records, so that no peer fills a log.
type quiet struct{ to slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.to.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.to.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.to.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.to.WithGroup(name)} }

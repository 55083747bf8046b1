package workers

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Failure is a failed attempt, as the store has recorded it.
type Failure struct {
	ID       layout.ID
	Function string
	Queue    string
	// Worker ran it, or died with it. It is empty if no worker could run it.
	Worker layout.WorkerID
	// Attempt counts from 1, and Attempts is how many there are at most.
	Attempt, Attempts int
	Kind              layout.FailureKind
	// Message is the error, without the stack of a panic.
	Message string
	// Stack is where a Go function panicked, empty for other failures.
	Stack string
	// Final is set if the future has failed for good. Otherwise Next is when it is
	// due again.
	Final bool
	Next  time.Time
	// Trace is the context of the trace that the future is part of, as in Info. Its id is
	// trace_id in the log.
	Trace map[string]string
}

// failureOf describes a failed attempt that was recorded.
func failureOf(c *fdbmodel.Completion) Failure {
	spec := c.Future.Spec
	f := Failure{
		ID: c.Future.ID, Worker: c.Future.Token.Worker, Attempt: c.Future.Attempt(),
		Kind: c.Exception.Kind, Message: c.Exception.Message,
		Final: c.After.State == layout.Failed, Next: c.After.Due,
	}
	if spec != nil {
		f.Function, f.Queue, f.Attempts, f.Trace = spec.Function, spec.Queue, spec.MaxRetries+1, spec.Trace
	}
	if f.Kind == layout.KindPanic {
		f.Message, f.Stack, _ = strings.Cut(f.Message, stackMark)
	}
	return f
}

// failureOfLost describes a future that a janitor gave up.
func failureOfLost(row *layout.Row) Failure {
	return Failure{
		ID: row.ID, Function: row.Spec.Function, Queue: row.Spec.Queue,
		Worker: row.Exception.Worker, Attempt: row.Exception.Attempt,
		Attempts: row.Spec.MaxRetries + 1, Kind: row.Exception.Kind, Message: row.Exception.Message, Final: true,
		Trace: row.Spec.Trace,
	}
}

// report tells the log and the hooks of a failed attempt that was recorded.
func (w *Worker) report(c *fdbmodel.Completion) {
	f := failureOf(c)
	w.failures.add(&f)
	callHook(w.options.Logger, "OnAttemptFailed", w.options.OnAttemptFailed, f)
	if f.Final {
		callHook(w.options.Logger, "OnFailed", w.options.OnFailed, f)
	}
}

// reportLost tells them of futures that have failed with a dead worker, or without
// one that could run them.
func (w *Worker) reportLost(rows []layout.Row) {
	reportLost(rows, w.failures, w.options.Logger, w.options.OnFailed)
}

func reportLost(rows []layout.Row, failures *failureLog, logger *slog.Logger, hook func(Failure)) {
	for i := range rows {
		f := failureOfLost(&rows[i])
		failures.add(&f)
		callHook(logger, "OnFailed", hook, f)
	}
}

// hearLost has the worker hear of lost futures from now on.
func (w *Worker) hearLost() {
	if w.unhear == nil {
		w.unhear = w.cluster.OnLost(w.reportLost)
	}
}

// stopReporting writes what has not been summarised, and hears no more.
func (w *Worker) stopReporting() {
	if w.unhear != nil {
		w.unhear()
		w.unhear = nil
	}
	w.failures.pass(true)
	w.rare.Close()
}

// callHook calls a hook. Its panic costs a line in the log.
func callHook(logger *slog.Logger, name string, hook func(Failure), f Failure) {
	if hook == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logger.Error("a hook panicked", "hook", name, "future", f.ID, "panic", p)
		}
	}()
	hook(f)
}

// Bounds of what failures write into the log.
const (
	failureInterval = time.Minute // between two summaries
	failureLines    = 5           // of one kind in an interval
	failureKinds    = 100         // that are told apart in an interval
	failureText     = 500         // bytes of an error in a line
	traceID         = 32          // digits of the id of a trace
)

// alike are failures that differ only in what numbers and ids they name.
type alike struct {
	function string
	kind     layout.FailureKind
	shape    string
	final    bool
}

// failureCount counts failures that are alike.
type failureCount struct {
	count int
	last  Failure // of those that were counted only
}

// failureLog writes failures into the log. Of those that are alike only the
// first of an interval have lines of their own, unless the logger wants even
// what is for debugging; the others are counted, and summarised when the
// interval has passed.
type failureLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	ends  time.Time // of the interval
	kinds map[alike]*failureCount
}

func newFailureLog(log *slog.Logger, now func() time.Time) *failureLog {
	return &failureLog{log: log, now: now, kinds: map[alike]*failureCount{}}
}

func levelOf(final bool) slog.Level {
	if final {
		return slog.LevelError
	}
	return slog.LevelWarn
}

func (l *failureLog) add(f *Failure) {
	level, ctx := levelOf(f.Final), context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kinds) == 0 {
		l.ends = l.now().Add(failureInterval)
	}
	key := alike{f.Function, f.Kind, shapeOf(f.Message), f.Final}
	t := l.kinds[key]
	if t == nil && len(l.kinds) >= failureKinds {
		key = alike{final: f.Final}
		t = l.kinds[key]
	}
	if t == nil {
		t = &failureCount{}
		l.kinds[key] = t
	}
	if t.count++; t.count > failureLines || key.kind == "" {
		t.last = *f
		if level = slog.LevelDebug; !l.log.Enabled(ctx, level) {
			return
		}
	}
	l.log.LogAttrs(ctx, level, titleOf(f.Final), attrsOf(f)...)
}

func titleOf(final bool) string {
	if final {
		return "a future failed for good"
	}
	return "an attempt failed"
}

func attrsOf(f *Failure) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("future", f.ID.String()), slog.String("function", f.Function), slog.Int("attempt", f.Attempt),
		slog.Int("of", f.Attempts), slog.String("kind", string(f.Kind)),
		slog.String("error", layout.Shorten(f.Message, failureText)),
	}
	if f.Worker != "" {
		attrs = append(attrs, slog.String("worker", string(f.Worker)))
	}
	if !f.Final && !f.Next.IsZero() {
		attrs = append(attrs, slog.Time("next", f.Next))
	}
	// VERSION-TRACE-SPAN-FLAGS, from whoever submitted the future
	if parts := strings.Split(f.Trace["traceparent"], "-"); len(parts) == 4 && len(parts[1]) == traceID {
		attrs = append(attrs, slog.String("trace_id", parts[1]))
	}
	if f.Stack != "" {
		attrs = append(attrs, slog.String("stack", f.Stack))
	}
	return attrs
}

// pass writes the summaries of an interval that has passed, or with all of any.
func (l *failureLog) pass(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kinds) == 0 || !all && l.now().Before(l.ends) {
		return
	}
	for key, t := range l.kinds {
		more := t.count - failureLines
		if key.kind == "" {
			more = t.count
		}
		if more <= 0 {
			continue
		}
		attrs := []slog.Attr{slog.Int("more", more), slog.Duration("within", failureInterval)}
		if key.kind == "" {
			attrs = append(attrs, slog.String("why", "too many different failures to tell them apart"))
		}
		l.log.LogAttrs(context.Background(), levelOf(key.final), titleOf(key.final)+", and more like it",
			append(attrs, attrsOf(&t.last)...)...)
	}
	clear(l.kinds)
}

// shapeOf returns the first line of an error without what differs from one
// failure to the next: words with a digit in them.
func shapeOf(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = line[:min(len(line), failureText)]
	var b strings.Builder
	for len(line) > 0 {
		end := strings.IndexFunc(line, func(r rune) bool { return !isWord(r) })
		if end < 0 {
			end = len(line)
		}
		if word := line[:end]; strings.ContainsAny(word, "0123456789") {
			b.WriteByte('#')
		} else {
			b.WriteString(word)
		}
		line = line[end:]
		gap := strings.IndexFunc(line, isWord)
		if gap < 0 {
			gap = len(line)
		}
		b.WriteString(line[:gap])
		line = line[gap:]
	}
	return b.String()
}

func isWord(r rune) bool {
	return r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f
}

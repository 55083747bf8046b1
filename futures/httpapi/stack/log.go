package stack

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// logs bound the lines that others can cause.
type logs struct {
	// failures are of the server, refused and open of requests without a valid token.
	failures, refused, open boundedLog
}

// log writes the line for a request that has ended.
func (s *Stack) log(r *http.Request, q *request, out *response, took time.Duration) {
	level, omitted, ok := slog.LevelDebug, 0, true
	if s.options.AccessLog || q.administers {
		level = slog.LevelInfo
	}
	switch {
	case (out.status >= http.StatusInternalServerError || q.panicked != "") && r.Context().Err() == nil:
		// Its client is still there.
		if ok, omitted = s.logs.failures.add(time.Now()); ok {
			level = slog.LevelError
		}
		ok = ok || q.authenticated
	case q.authenticated:
	case out.status >= http.StatusBadRequest:
		ok, omitted = s.logs.refused.add(time.Now())
	default:
		ok, omitted = s.logs.open.add(time.Now())
	}
	if !ok {
		return
	}
	attributes := []slog.Attr{
		slog.String("id", q.id), slog.String("method", r.Method), slog.String("path", q.path),
		slog.Int("status", out.status), slog.Int64("bytes", out.bytes), slog.Duration("took", took),
		slog.String("from", r.RemoteAddr), slog.String("principal", q.bearer.Name),
	}
	if q.cause != nil && out.status >= http.StatusInternalServerError || q.panicked != "" {
		attributes = append(attributes, slog.Any("error", q.cause))
	}
	if q.panicked != "" {
		attributes = append(attributes, slog.String("stack", q.panicked))
	}
	if omitted > 0 {
		attributes = append(attributes, slog.Int("omitted", omitted))
	}
	s.options.Logger.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attributes...)
}

// boundedLog bounds the lines about one kind of requests, so that they can't fill a log.
type boundedLog struct {
	mu      sync.Mutex
	since   time.Time
	lines   int
	omitted int
}

const (
	// logTime is in which at most logLines of a kind are logged.
	logTime  = 10 * time.Second
	logLines = 20
)

// add reports whether a line is logged, and how many before it were not.
func (f *boundedLog) add(now time.Time) (ok bool, omitted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= logTime {
		f.since, f.lines = now, 0
	}
	if f.lines == logLines {
		f.omitted++
		return false, 0
	}
	f.lines++
	omitted, f.omitted = f.omitted, 0
	return true, omitted
}

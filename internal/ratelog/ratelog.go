// Package ratelog logs events that others can cause as often as they like, so that they
// can't fill a log.
package ratelog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
)

// Interval is the time between two lines of a kind.
const Interval = 10 * time.Second

// Log logs the first event of each kind in an interval, and counts the others. Its methods
// may be called from many goroutines. It keeps a count for each kind, so kinds are few and
// not made of what comes from outside.
type Log struct {
	log   *slog.Logger
	clock clock.Clock

	mu    sync.Mutex
	kinds map[string]*omitted
}

// omitted is how many events of a kind were left out since it was logged.
type omitted struct {
	logged time.Time
	count  int
}

// New returns a log that writes warnings to log.
func New(log *slog.Logger, c clock.Clock) *Log {
	return &Log{log: log, clock: c, kinds: map[string]*omitted{}}
}

// Warn logs an event with its arguments, which are those of slog, and with the number of
// those that were left out before it. Within Interval after a line of its kind it counts
// the event instead.
func (l *Log) Warn(kind string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	k := l.kinds[kind]
	switch {
	case k == nil:
		k = &omitted{}
		l.kinds[kind] = k
	case now.Sub(k.logged) < Interval:
		k.count++
		return
	}
	if k.count > 0 {
		args = append(args, "omitted", k.count)
	}
	k.logged, k.count = now, 0
	l.log.Warn(kind, args...)
}

// Close logs how many events were left out, and forgets them. Warn may be called
// afterwards.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, k := range l.kinds {
		if k.count > 0 {
			l.log.Warn(kind, "omitted", k.count)
		}
	}
	clear(l.kinds)
}

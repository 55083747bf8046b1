// Package away tells a log that a store does not answer, and when it does again.
package away

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// Watch logs one line for each outage of a store that its requests meet, and one when a request
// is answered after that. Its methods may be called from many goroutines.
type Watch struct {
	log   *slog.Logger
	clock clock.Clock

	mu    sync.Mutex
	since time.Time // when the request began that was first left open; zero while the store answers
	last  error     // after which transactions were repeated since the last answer
}

// leastPatience is the least time after which a request that is open is a store that does not answer.
const leastPatience = 3 * time.Second

// PatienceOf is how long whoever asks a store once in an interval waits before the log has it.
func PatienceOf(interval time.Duration) time.Duration { return max(2*interval, leastPatience) }

// New returns a watch that writes to log.
func New(log *slog.Logger, c clock.Clock) *Watch { return &Watch{log: log, clock: c} }

// Await asks the store, and tells the log once that takes longer than patience. It returns the
// error of ask; nil is an answer.
func (w *Watch) Await(ctx context.Context, patience time.Duration, ask func(ctx context.Context) error) error {
	began, over := w.clock.Now(), false
	stop := w.clock.AfterFunc(began.Add(patience), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !over {
			w.missing(began)
		}
	})
	err := ask(kv.Told(ctx, w.repeated))
	stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	over = true
	if err == nil {
		w.answered()
	}
	return err
}

// repeated keeps an error after which a transaction is repeated.
func (w *Watch) repeated(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

// missing is called under mu.
func (w *Watch) missing(began time.Time) {
	if !w.since.IsZero() {
		return
	}
	w.since = began
	about := []any{"since", began, "waited", w.clock.Now().Sub(began)}
	if w.last != nil {
		about = append(about, "error", w.last)
	}
	w.log.Warn("the store does not answer; waiting until it does", about...)
}

// answered is called under mu.
func (w *Watch) answered() {
	if !w.since.IsZero() {
		w.log.Info("the store answers again", "since", w.since, "waited", w.clock.Now().Sub(w.since))
	}
	w.since, w.last = time.Time{}, nil
}

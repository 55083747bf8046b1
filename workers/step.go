package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// manual is what Step keeps between its calls.
type manual struct {
	beatAt, pollAt time.Time
}

// Step runs a worker with Options.Manual: what is due of its heartbeat and its
// janitor, one claim, the functions that it took, and the end of those. It
// returns when the next step is due at the latest. A worker that was declared
// dead becomes a member anew. Step and Run exclude each other.
func (w *Worker) Step(ctx context.Context, now time.Time) (time.Time, error) {
	if w.vanished() {
		return now.Add(time.Hour), nil
	}
	w.mu.Lock()
	l := w.life
	w.started = true
	w.mu.Unlock()
	if l == nil {
		var err error
		if l, err = w.join(ctx); err != nil {
			return now.Add(w.options.Poll), err
		}
		w.manual = manual{beatAt: now.Add(w.cluster.Config().Heartbeat)}
	}
	next, err := w.stepLife(ctx, l, now)
	if errors.Is(err, fdbmodel.ErrReaped) {
		w.mu.Lock()
		w.life = nil
		w.mu.Unlock()
		return now, nil
	}
	return next, err
}

func (w *Worker) stepLife(ctx context.Context, l *life, now time.Time) (time.Time, error) {
	if !now.Before(w.manual.beatAt) {
		w.manual.beatAt = now.Add(w.cluster.Config().Heartbeat)
		if err := l.beat(ctx); err != nil {
			return now, err
		}
	}
	next := w.janitor.step(ctx, now)
	if w.manual.beatAt.Before(next) {
		next = w.manual.beatAt
	}
	// What an earlier step could not write comes first.
	if err := l.flush(ctx); err != nil {
		return now, err
	}
	n, err := l.claim(ctx)
	if err != nil {
		return now, err
	}
	for {
		l.mu.Lock()
		j := l.pick()
		l.mu.Unlock()
		if j == nil {
			break
		}
		start := w.cluster.Now()
		l.settle(j, l.execute(j), w.cluster.Now().Sub(start))
	}
	if err := l.flush(ctx); err != nil && !kv.Retryable(err) {
		return now, err
	}
	if n > 0 {
		return now, nil
	}
	if poll := now.Add(w.options.Poll); poll.Before(next) {
		next = poll
	}
	return next, nil
}

package futures

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/internal/away"
	"github.com/futura-run/futura/internal/signal"
)

// Intervals and bounds of the await loop.
const (
	// Notices are removed from the store once there are this many, or once they
	// are this old.
	ackAfter    = 1000
	ackInterval = time.Second
	// pagesPerRound bounds how much mail one round reads, so that the session is
	// refreshed in time under any load.
	pagesPerRound = 32
	// Awaited futures are subscribed to again from time to time, one batch after
	// the other: this makes up for a notice that was lost with a session that was
	// declared dead.
	recheckInterval = 30 * time.Second
	recheckPause    = 100 * time.Millisecond
	// A failed round is followed by another after a wait that doubles, and so is a look that found no mail
	// where the store has no room for a watch.
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
)

// listener is the client's one loop around its mailbox. Its fields belong to
// the goroutine that runs a round.
type listener struct {
	client  *Client
	mailbox *mailbox.Mailbox
	news    chan struct{}
	fetcher fetcher
	hinted  atomic.Bool // there may be mail

	step                        sync.Mutex
	watch                       kv.Watch
	lookAt                      time.Time         // the next look where there is no room for a watch
	looks                       int               // those in a row
	pace                        fdbmodel.HintPace // of looks because of hints
	unacked                     int
	ackAt, refreshAt, recheckAt time.Time
	refreshed                   time.Time // when the session was last refreshed
	recheck                     []ID      // left of the present pass
	again                       bool      // another pass is due after it
	failures                    int

	away *away.Watch
}

func (l *listener) init(c *Client) {
	l.client, l.news = c, make(chan struct{}, 1)
	l.mailbox = mailbox.Open(c.cluster, c.session)
	l.fetcher.client = c
	l.away = away.New(c.options.Logger.With("session", c.session), c.cluster.Clock())
}

// wake makes the loop look for wanted subscriptions.
func (l *listener) wake() {
	signal.Send(l.news)
}

// fetch gets the ends of futures whose notices don't carry them.
func (l *listener) fetch(ids []ID) { l.fetcher.add(ids) }

func (l *listener) loop() {
	ctx, clk := l.client.base, l.client.cluster.Clock()
	patience := away.PatienceOf(l.client.cluster.Config().Heartbeat)
	for ctx.Err() == nil {
		var next time.Time
		err := l.away.Await(ctx, patience, func(ctx context.Context) (err error) {
			next, err = l.stepOnce(ctx, clk.Now())
			return err
		})
		news := l.news
		if err != nil {
			if isFatal(err) || ctx.Err() != nil {
				return
			}
			news = nil
		}
		var fired <-chan struct{}
		if l.watch != nil && err == nil {
			fired = l.watch.Done()
		}
		timer := clk.At(next)
		select {
		case <-fired:
		case <-news:
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// stop ends the watch once no round is running.
func (l *listener) stop() {
	l.step.Lock()
	defer l.step.Unlock()
	l.stopWatch()
}

func (l *listener) stopWatch() {
	if l.watch != nil {
		l.watch.Cancel()
		l.watch = nil
	}
}

// stepOnce runs a round and says when the next is due. A permanent failure of
// the store ends all futures.
func (l *listener) stepOnce(ctx context.Context, now time.Time) (time.Time, error) {
	l.step.Lock()
	defer l.step.Unlock()
	next, err := l.round(ctx, now)
	if l.client.manual() {
		l.stopWatch()
	}
	if err == nil {
		l.failures = 0
		return next, nil
	}
	if isFatal(err) {
		l.client.registry.close(err)
	} else if ctx.Err() == nil {
		level := slog.LevelWarn
		if l.failures == 0 && errors.Is(err, kv.ErrUnavailable) {
			level = slog.LevelInfo // such as a store that another process takes over
		}
		l.client.options.Logger.Log(ctx, level, "the look for results failed; looking again", "session", l.client.session,
			"error", err)
	}
	l.failures++
	return now.Add(retryWait(l.failures)), err
}

// retryWait is the wait after the n-th failure in a row, from 1.
func retryWait(n int) time.Duration { return min(retryMin<<min(n-1, 10), retryMax) }

// isFatal reports whether the store will not come back within this process.
func isFatal(err error) bool {
	return errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed)
}

// round does everything that is due. A failure of one part does not prevent the
// others.
func (l *listener) round(ctx context.Context, now time.Time) (next time.Time, err error) {
	refreshErr := l.refresh(ctx, now)
	subscribeErr := l.subscribe(ctx)
	recheckErr := l.recheckSome(ctx, now)
	more, listenErr := l.receive(ctx, now)
	ackErr := l.acknowledge(ctx, now)
	failed := []error{refreshErr, subscribeErr, recheckErr, listenErr, ackErr}
	if at := slices.IndexFunc(failed, isFatal); at >= 0 {
		return now, failed[at] // the others say the same
	}
	if err := errors.Join(failed...); err != nil {
		return now, err
	}
	if more {
		return now, nil
	}
	next = l.refreshAt
	if l.recheckAt.Before(next) {
		next = l.recheckAt
	}
	if l.unacked > 0 && l.ackAt.Before(next) {
		next = l.ackAt
	}
	if l.hinted.Load() && l.pace.Next().Before(next) {
		next = l.pace.Next()
	}
	if l.watch == nil && now.Before(l.lookAt) && l.lookAt.Before(next) {
		next = l.lookAt
	}
	return next, nil
}

// refresh updates the session's heartbeat. If that failed for long, or the
// session was removed, because it was declared dead or the cluster has moved to
// another store, mail may be lost: all awaited futures are then subscribed to
// again.
func (l *listener) refresh(ctx context.Context, now time.Time) error {
	if now.Before(l.refreshAt) {
		return nil
	}
	if err := l.mailbox.Refresh(ctx); err != nil {
		return err
	}
	if l.mailbox.Restarted() {
		l.stopWatch()
		l.unacked = 0
		l.client.registry.want(l.client.registry.awaited())
	}
	if l.refreshed.IsZero() {
		l.recheckAt = now.Add(recheckInterval)
	} else if now.Sub(l.refreshed) >= l.client.cluster.Config().DeadAfter {
		l.client.registry.want(l.client.registry.awaited())
	}
	l.refreshed, l.refreshAt = now, now.Add(l.mailbox.Interval())
	return nil
}

// subscribe asks for the notices of wanted futures.
func (l *listener) subscribe(ctx context.Context) error {
	ids := l.client.registry.takeWanted()
	for len(ids) > 0 {
		n := min(len(ids), layout.MaxSubmit)
		if err := l.subscribeBatch(ctx, ids[:n]); err != nil {
			l.client.registry.want(l.client.registry.open(ids))
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// recheckSome continues the present pass over the awaited futures.
func (l *listener) recheckSome(ctx context.Context, now time.Time) error {
	if now.Before(l.recheckAt) {
		return nil
	}
	if len(l.recheck) == 0 {
		l.recheck = l.client.registry.awaited()
	}
	n := min(len(l.recheck), layout.MaxSubmit)
	if n > 0 {
		if err := l.subscribeBatch(ctx, l.recheck[:n]); err != nil {
			return err
		}
	}
	if l.recheck = l.recheck[n:]; len(l.recheck) > 0 {
		l.recheckAt = now.Add(recheckPause)
	} else {
		l.recheck, l.recheckAt = nil, now.Add(recheckInterval)
		if l.again {
			l.again, l.recheckAt = false, now.Add(recheckPause)
		}
	}
	return nil
}

// missed subscribes to all awaited futures again, because mail could not be
// read.
func (l *listener) missed(now time.Time, err error) {
	l.client.options.Logger.Warn("futures: unreadable mail; subscribing again", "session", l.client.session, "error", err)
	if l.again = len(l.recheck) > 0; !l.again {
		l.recheckAt = now
	}
}

// subscribeBatch subscribes to futures. One that can't be subscribed to ends
// with the reason and does not affect the others.
func (l *listener) subscribeBatch(ctx context.Context, ids []ID) error {
	registry := &l.client.registry
	over, missing, err := l.mailbox.Subscribe(ctx, ids)
	if err == nil || errors.Is(err, kv.ErrReadOnly) {
		for _, id := range missing {
			registry.missing(id)
		}
		l.fetch(registry.deliver(over))
		return err
	}
	switch {
	case !isMistake(err):
		return err
	case len(ids) == 1:
		registry.end(ids[0], Settled{Err: err})
	default:
		for i := range ids {
			if err := l.subscribeBatch(ctx, ids[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive takes mail and leaves a watch for the next. It reports whether there
// may be more.
func (l *listener) receive(ctx context.Context, now time.Time) (more bool, err error) {
	if err := l.endedWatch(now); err != nil {
		return false, err
	}
	hinted := false
	if l.watch != nil || now.Before(l.lookAt) {
		if hinted = l.takeHint(now); !hinted {
			return false, nil
		}
		l.stopWatch()
	}
	l.hinted.Store(false) // what it was about is seen
	for range pagesPerRound {
		notices, watch, err := l.mailbox.Listen(ctx)
		if hinted && err == nil {
			l.pace.Looked(now, len(notices) > 0, hintedGap)
			hinted = false
		}
		if errors.Is(err, layout.ErrNewerRecord) || errors.Is(err, layout.ErrBadRecord) {
			l.missed(now, err)
			l.unacked++
			continue
		}
		if err != nil {
			return false, err
		}
		l.watch = watch
		if err := l.deliver(ctx, now, notices); err != nil || watch != nil {
			return watch == nil, err
		}
	}
	l.lookAt = time.Time{} // the rest does not wait
	return true, nil
}

// endedWatch gives up a watch that has ended. Without room for one, the next look is later.
func (l *listener) endedWatch(now time.Time) (err error) {
	if l.watch == nil {
		return nil
	}
	select {
	case <-l.watch.Done():
		err = l.watch.Err()
		l.watch = nil
	default:
	}
	if !errors.Is(err, kv.ErrTooManyWatches) {
		l.looks = 0
		return err
	}
	if l.looks++; l.looks == 1 {
		l.client.options.Logger.Warn("the store has no room to tell of results; looking for them from time to time",
			"session", l.client.session, "error", err)
	}
	l.lookAt = now.Add(retryWait(l.looks))
	return nil
}

// deliver passes notices on, and removes them from the store once they are many.
func (l *listener) deliver(ctx context.Context, now time.Time, notices []layout.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	l.looks = min(l.looks, 1)
	l.fetch(l.client.registry.deliver(notices))
	if l.unacked == 0 {
		l.ackAt = now.Add(ackInterval)
	}
	if l.unacked += len(notices); l.unacked < ackAfter {
		return nil
	}
	err := l.mailbox.Acknowledge(ctx)
	if err == nil {
		l.unacked = 0
	}
	return err
}

// acknowledge removes mail that has waited long enough.
func (l *listener) acknowledge(ctx context.Context, now time.Time) error {
	if l.unacked == 0 || now.Before(l.ackAt) {
		return nil
	}
	err := l.mailbox.Acknowledge(ctx)
	if err == nil {
		l.unacked = 0
	}
	return err
}

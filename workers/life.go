package workers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// life is one membership of a worker: until it leaves, is reaped, or vanishes.
type life struct {
	worker  *Worker
	reg     *fdbmodel.Registration
	janitor *janitor // nil for a member of a fleet
	endings *endings
	// progress is what functions tell of theirs.
	progress *reports
	// values is what functions' contexts come from: it never ends.
	values context.Context
	runs   func(function string) bool // whether it can run a function
	// store is for transactions. It ends when nothing may be written any more.
	store context.Context
	stop  context.CancelFunc

	kept       *keeper       // results that are objects, nil without an object store
	more       bool          // the last claim left something behind
	fromSource int           // claims since the store was asked
	limited    time.Time     // until when the cluster's limit of running futures is exceeded
	misses     int           // claims in a row that did not find what EnterIdleRing saw
	closing    atomic.Bool   // claims no more
	drains     chan struct{} // has a value when the next heartbeat is to say so at once
	// backlogged is set if the claimer may wait for completions to be written.
	backlogged atomic.Bool
	broke      chan struct{}
	breakIt    sync.Once
	cause      error // why it broke
	others     company
}

func (w *Worker) newLife(ctx context.Context, reg *fdbmodel.Registration, runs func(string) bool) *life {
	l := &life{
		worker: w, reg: reg, runs: runs, endings: newEndings(),
		values: context.WithoutCancel(ctx), broke: make(chan struct{}), drains: make(chan struct{}, 1),
	}
	if w.options.Fleet == nil {
		l.janitor = newJanitor(w, reg.ID())
	}
	l.endings.lazy = w.options.Fleet != nil && !w.manual()
	l.progress = newReports(l)
	l.store, l.stop = context.WithCancel(l.values)
	return l
}

// fail ends the life because of err, nil for nothing. The first one counts.
func (l *life) fail(err error) {
	if err != nil {
		l.breakIt.Do(func() {
			l.cause = err
			close(l.broke)
		})
	}
}

// Bounds of the end of a life.
const (
	leaveTimeout = 10 * time.Second // the last transactions
	returnGrace  = time.Second      // for functions whose contexts have ended
)

// run lives until ctx ends or the life breaks, and returns why it broke.
func (l *life) run(ctx context.Context) error {
	w := l.worker
	unhook := context.AfterFunc(w.vanish, func() {
		l.fail(errVanished)
		l.stop()
	})
	defer unhook()
	defer l.stop()
	claims, stopClaims := context.WithCancel(l.store)
	defer stopClaims()
	var claiming sync.WaitGroup
	claiming.Go(func() { l.fail(l.claimLoop(claims)) })
	others := &l.others
	others.start(func() { l.fail(l.beatLoop(l.store)) })
	if fleet := w.options.Fleet; fleet != nil {
		defer fleet.enter()()
	} else {
		claiming.Go(func() { l.fail(l.janitor.loop(claims)) })
		for range finishers + 1 { // one may settle edges
			others.start(func() { l.fail(l.finishLoop(l.store)) })
		}
		others.start(func() { l.progress.loop(l.store) })
	}
	if l.kept != nil {
		others.start(func() { l.kept.serve(l.store, w) })
	}

	select {
	case <-ctx.Done():
	case <-l.broke:
	}
	l.closing.Store(true)
	if len(w.slots.runningOf(l)) > 0 {
		signal.Send(l.drains)
	}
	l.stopHolding()
	drainBy := w.cluster.Now().Add(w.options.DrainTimeout)
	w.gate.release()
	stopClaims()
	claiming.Wait()
	l.leaveRing()
	for _, j := range w.slots.unqueue(func(j *job) bool { return j.life == l }) {
		j.relinquish()
	}
	l.drain()
	l.awaitEndings()
	l.handOver(drainBy)
	l.endings.close()
	err := l.leave()
	l.stop()
	others.wait()
	if l.kept != nil {
		err = errors.Join(err, l.kept.close())
	}
	return err
}

// leaveRing makes hints go to workers that can heed them.
func (l *life) leaveRing() {
	if l.broken() {
		return
	}
	ctx, cancel := withTimeout(l.store, l.worker.cluster.Clock(), leaveTimeout)
	defer cancel()
	if err := l.reg.LeaveIdleRing(ctx); err != nil {
		l.worker.options.Logger.Warn("the worker is still in the ring of idle workers", "error", err)
	}
}

// drain lets what runs end, for a while. After it nothing of the life runs with
// its claim.
func (l *life) drain() {
	w := l.worker
	timer := w.cluster.Clock().At(w.cluster.Now().Add(w.options.DrainTimeout))
	defer timer.Stop()
	for timeout := false; !timeout && len(w.slots.runningOf(l)) > 0; {
		select {
		case <-w.slots.returned:
		case <-timer.C():
			timeout = true
		case <-l.broke:
			timeout = true
		}
	}
	if l.broken() {
		l.dropRunning(l.cause)
		return
	}
	l.interrupt()
}

// interrupt gives back what still runs when the worker stops.
func (l *life) interrupt() {
	for _, j := range l.worker.slots.runningOf(l) {
		if j.relinquish() {
			l.worker.options.Logger.Info("stopping a function and giving back its future", "future", j.future.ID)
		}
		j.cancel(ErrStopping)
	}
}

// dropRunning ends the functions of a life that holds no claims any more.
func (l *life) dropRunning(cause error) {
	for _, j := range l.worker.slots.runningOf(l) {
		j.drop()
		j.cancel(cause)
	}
}

func (l *life) broken() bool {
	select {
	case <-l.broke:
		return true
	default:
		return false
	}
}

// lost reports whether the membership may no longer write to the store.
func (l *life) lost() bool {
	return l.broken() && (errors.Is(l.cause, errVanished) || isFatal(l.cause))
}

// awaitEndings waits until what has ended is written. A life that was reaped
// writes it as well: where the claim still stands, the result counts.
func (l *life) awaitEndings() {
	timer := l.worker.cluster.Clock().At(l.worker.cluster.Now().Add(leaveTimeout))
	defer timer.Stop()
	for !l.lost() && l.endings.open() > 0 {
		select {
		case <-l.endings.landed:
		case <-l.worker.vanish.Done():
			return
		case <-timer.C():
			l.worker.options.Logger.Warn("results could not be written before the worker left", "number", l.endings.open())
			return
		}
	}
}

// leave ends the membership. It returns why the life broke, or why it could not
// leave.
func (l *life) leave() error {
	if l.lost() {
		return l.cause
	}
	ctx, cancel := withTimeout(l.store, l.worker.cluster.Clock(), leaveTimeout)
	defer cancel()
	if l.janitor != nil {
		if err := maintenance.Of(l.worker.cluster).Release(ctx, l.reg.ID()); err != nil {
			l.worker.options.Logger.Warn("the janitor's role could not be given up", "error", err)
		}
	}
	err := l.reg.Leave(ctx)
	if l.broken() {
		return l.cause
	}
	return err
}

// withTimeout is context.WithTimeout by a clock.
func withTimeout(parent context.Context, clk clock.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := clk.AfterFunc(clk.Now().Add(d), cancel)
	return ctx, func() { stop(); cancel() }
}

package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// membership is what a worker is from its registration until it leaves, is reaped, or vanishes.
type membership struct {
	worker  *Worker
	reg     *fdbmodel.Registration
	janitor *janitor // nil for a member of a fleet
	endings *endings
	// progress is what functions tell of theirs.
	progress *reports
	// stepWrites are steps that functions record.
	stepWrites stepWrites
	// values is what functions' contexts come from: it never ends.
	values context.Context
	runs   func(function string) bool // whether it can run a function
	// store is for transactions. It ends when nothing may be written any more.
	store context.Context
	stop  context.CancelFunc

	kept       *keeper   // results that are objects, nil without an object store
	more       bool      // the last claim left something behind
	fromSource int       // claims since the store was asked
	limited    time.Time // until when the cluster's limit of running futures is exceeded
	misses     int       // claims in a row that did not find what EnterIdleRing saw
	byHint     bool      // a hint led to the last claim after a wait
	// idleSince is when the worker last had nothing to do, and hintedAfter how long the last
	// hint took to come since then. hintless is how often it does not count on that.
	idleSince   time.Time
	hintedAfter time.Duration
	hintless    int
	closing     atomic.Bool   // claims no more
	drains      chan struct{} // has a value when the next heartbeat is to say so at once
	// backlogged is set if the claimer may wait for completions to be written.
	backlogged atomic.Bool
	broke      chan struct{}
	breakIt    sync.Once
	cause      error // why it broke
	others     company
	away       bool // one of the last transactions got no answer in leaveTimeout
	graceBy    time.Time
	// circling is set while a search for functions that wait for each other is under way.
	circling atomic.Bool
}

func (w *Worker) newMembership(ctx context.Context, reg *fdbmodel.Registration, runs func(string) bool) *membership {
	m := &membership{
		worker: w, reg: reg, runs: runs, endings: newEndings(),
		values: context.WithoutCancel(ctx), broke: make(chan struct{}), drains: make(chan struct{}, 1),
	}
	if w.options.Fleet == nil {
		m.janitor = newJanitor(w, reg.ID())
	}
	m.endings.lazy = w.options.Fleet != nil && !w.manual()
	m.progress = newReports(m)
	m.stepWrites.membership = m
	m.store, m.stop = context.WithCancel(m.values)
	return m
}

// fail ends the membership because of err, nil for nothing. The first one counts.
func (m *membership) fail(err error) {
	if err != nil {
		m.breakIt.Do(func() {
			m.cause = err
			close(m.broke)
		})
	}
}

// Bounds of the end of a membership.
const (
	leaveTimeout = 10 * time.Second // the last transactions
	returnGrace  = time.Second      // for functions whose contexts have ended
	awayGrace    = 3 * time.Second  // for results and the leave, behind the drain, if the store was away before it
)

// errAway is why a worker did not leave.
var errAway = fmt.Errorf("%w: it has not answered for %v, and the worker ends without leaving: what it holds goes "+
	"back once the store is there and a janitor finds the worker dead", kv.ErrUnavailable, leaveTimeout)

// lastly runs one of the last transactions. The first one that gets no answer in leaveTimeout finds that the store is
// away, and those behind it are left out: a process that is told to stop has little time.
func (m *membership) lastly(transact func(ctx context.Context) error) error {
	if m.away {
		return errAway
	}
	return m.within(leaveTimeout, transact)
}

func (m *membership) within(d time.Duration, transact func(ctx context.Context) error) error {
	ctx, cancel := withTimeout(m.store, m.worker.cluster.Clock(), d)
	defer cancel()
	err := transact(ctx)
	if err != nil && ctx.Err() != nil && m.store.Err() == nil {
		m.away, err = true, errAway
	}
	return err
}

// patience is how long the store has for results, and then for the leave.
func (m *membership) patience() time.Duration {
	if m.away {
		return m.graceBy.Sub(m.worker.cluster.Now())
	}
	return leaveTimeout
}

// run returns after ctx has ended or the membership broke, and says why it broke.
func (m *membership) run(ctx context.Context) error {
	w := m.worker
	unhook := context.AfterFunc(w.vanish, func() {
		m.fail(errVanished)
		m.stop()
	})
	defer unhook()
	defer m.stop()
	claims, stopClaims := context.WithCancel(m.store)
	defer stopClaims()
	var claiming sync.WaitGroup
	claiming.Go(func() { m.fail(m.claimLoop(claims)) })
	others := &m.others
	others.start(func() { m.fail(m.beatLoop(m.store)) })
	if fleet := w.options.Fleet; fleet != nil {
		defer fleet.enter()()
	} else {
		claiming.Go(func() { m.fail(m.janitor.loop(claims)) })
		for range finishers + 1 { // one may settle edges
			others.start(func() { m.fail(m.finishLoop(m.store)) })
		}
		others.start(func() { m.progress.loop(m.store) })
	}
	if m.kept != nil {
		others.start(func() { m.kept.serve(m.store, w) })
	}

	select {
	case <-ctx.Done():
	case <-m.broke:
	}
	m.closing.Store(true)
	if len(w.slots.runningOf(m)) > 0 {
		signal.Send(m.drains)
	}
	drainBy := w.cluster.Now().Add(w.options.DrainTimeout)
	m.stopHolding()
	w.freeze.end()
	stopClaims()
	claiming.Wait()
	m.leaveRing()
	m.giveUpRole()
	for _, j := range w.slots.unqueue(func(j *job) bool { return j.membership == m }) {
		j.relinquish()
	}
	m.drain(drainBy)
	m.graceBy = w.cluster.Now().Add(awayGrace)
	m.awaitEndings()
	m.handOver(drainBy)
	m.endings.close()
	err := m.leave()
	m.stop()
	others.wait()
	if m.kept != nil {
		err = errors.Join(err, m.kept.close())
	}
	return err
}

// leaveRing makes hints go to workers that can heed them.
func (m *membership) leaveRing() {
	if m.broken() {
		return
	}
	if err := m.lastly(m.reg.LeaveIdleRing); err != nil && !errors.Is(err, errAway) {
		m.worker.options.Logger.Warn("the worker is still in the ring of idle workers", "error", err)
	}
}

// giveUpRole has another worker be the janitor at once, and not only when what runs here has
// ended: delayed futures and schedules would wait for that.
func (m *membership) giveUpRole() {
	if m.janitor == nil || m.lost() {
		return
	}
	release := func(ctx context.Context) error { return maintenance.Of(m.worker.cluster).Release(ctx, m.reg.ID()) }
	if err := m.lastly(release); err != nil && !errors.Is(err, errAway) {
		m.worker.options.Logger.Warn("the janitor's role could not be given up", "error", err)
	}
}

// drain lets what runs end, until a time. After it nothing of the membership runs
// with its claim.
func (m *membership) drain(by time.Time) {
	w := m.worker
	timer := w.cluster.Clock().At(by)
	defer timer.Stop()
	for timeout := false; !timeout && len(w.slots.runningOf(m)) > 0; {
		select {
		case <-w.slots.returned:
		case <-timer.C():
			timeout = true
		case <-m.broke:
			timeout = true
		}
	}
	if m.broken() {
		m.dropRunning(m.cause)
		return
	}
	m.interrupt()
}

// interrupt gives back what still runs when the worker stops.
func (m *membership) interrupt() {
	for _, j := range m.worker.slots.runningOf(m) {
		if j.relinquish() {
			m.worker.options.Logger.Info("stopping a function and giving back its future", "future", j.future.ID)
		}
		j.cancel(ErrStopping)
	}
}

// dropRunning ends the functions of a membership that holds no claims any more.
func (m *membership) dropRunning(cause error) {
	for _, j := range m.worker.slots.runningOf(m) {
		j.drop()
		j.cancel(cause)
	}
}

func (m *membership) broken() bool {
	select {
	case <-m.broke:
		return true
	default:
		return false
	}
}

// lost reports whether the membership may no longer write to the store.
func (m *membership) lost() bool {
	return m.broken() && (errors.Is(m.cause, errVanished) || isFatal(m.cause))
}

// awaitEndings waits until what has ended is written. A membership that was reaped
// writes it as well: where the claim still stands, the result counts.
func (m *membership) awaitEndings() {
	timer := m.worker.cluster.Clock().At(m.worker.cluster.Now().Add(m.patience()))
	defer timer.Stop()
	for !m.lost() && m.endings.open() > 0 {
		select {
		case <-m.endings.written:
		case <-m.worker.vanish.Done():
			return
		case <-timer.C():
			m.worker.options.Logger.Warn("results could not be written before the worker left", "number", m.endings.open())
			return
		}
	}
}

// leave ends the membership. It returns why it broke, or why it could not leave.
func (m *membership) leave() error {
	if m.lost() {
		return m.cause
	}
	err := m.within(m.patience(), m.reg.Leave)
	if m.broken() {
		return m.cause
	}
	return err
}

// withTimeout is context.WithTimeout by a clock.
func withTimeout(parent context.Context, clk clock.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := clk.AfterFunc(clk.Now().Add(d), cancel)
	return ctx, func() { stop(); cancel() }
}

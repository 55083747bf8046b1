package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Causes that end a function's context.
var (
	// ErrCancelled is the cause when the future was cancelled.
	ErrCancelled = errors.New("workers: the future was cancelled")
	// ErrStopping is the cause when the worker stops before the function ended.
	ErrStopping = errors.New("workers: the worker is stopping")
	// ErrTimeout is the cause when the function ran longer than its timeout. It
	// is context.DeadlineExceeded as well.
	ErrTimeout = fmt.Errorf("workers: the timeout has passed: %w", context.DeadlineExceeded)
)

// Info is what a function can learn of its own run.
type Info struct {
	ID layout.ID
	// Function is its full name, such as go:resize.
	Function string
	Queue    string
	// Attempts is how many attempts the future has at most, 0 where that is not known: on a
	// peer.
	Attempts int
	// Attempt counts from 1. A claim that ended with the death of its worker does
	// not count.
	Attempt int
	// Token is the fence of the claim: no later run of the future has the same.
	Token layout.Token
	// Worker is the id of the worker's present membership.
	Worker layout.WorkerID
	// Codec is what the arguments are: layout.CodecRaw and others. The result
	// counts as the same, but for CodecArgv, where it is raw.
	Codec string
	// Schedule is the schedule that submitted the future, and ScheduledAt the time that
	// it stands for; empty and zero for others.
	Schedule    string
	ScheduledAt time.Time
	// Trace is the context of the trace that the future is part of, by the names of
	// OpenTelemetry, such as traceparent. It must not be changed. Nil for none.
	Trace map[string]string
}

type infoKey struct{}

// WithInfo returns a context whose InfoFrom returns info: for tests of functions, and for what
// runs functions that others have claimed.
func WithInfo(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom returns what a function's context knows of its run.
func InfoFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

// job is a claimed future on its way through the worker.
type job struct {
	membership *membership
	future     fdbmodel.ClaimedFuture
	claimed    time.Time
	sourced    bool // the source has it, and the store does not

	// Set when it gets a slot.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	due      time.Time   // when its pace lets it start
	unpaced  error       // why that is not known
	streamed []layout.ID // inputs that the module reads itself
	// ranElsewhere is for how long a remote says that it ran, 0 if that is unknown.
	ranElsewhere atomic.Int64
	shares       atomic.Bool // it runs in the call of a bundle, whose run time counts
	// arriving is set once it has ended elsewhere, and its result is on its way.
	arriving atomic.Bool
	extended atomic.Int64 // how often it has had RemotePatience more
	// Set when it starts.
	started  time.Time
	deadline time.Time // zero without a timeout
	final    bool      // it is that of the future

	settled atomic.Bool
	// bundled are the members that a bundle has gathered, nil for other jobs.
	bundled atomic.Pointer[[]*job]
	// unwanted is set if its context ended because all members were cancelled.
	unwanted atomic.Bool

	resultMu sync.Mutex
	result   *resultStream // nil unless the function writes it

	suspicion suspicion

	stepsMu sync.Mutex
	steps   *stepLog // nil until the function asks for one

	turnSoFar atomic.Pointer[turn] // nil until the function asks for it

	// Under the slots' mu.
	calling   bool    // the members that a bundle has are those of its call
	awaits    int     // waits for other futures under way
	waits     []*wait // those of them that say for what
	yielded   bool
	yieldedAt time.Time
	waited    time.Duration // how long it has waited without its slot
	back      chan struct{} // closed when it has its slot back; nil if it needs none
}

// function returns the future's function, empty if it can't be read.
func (j *job) function() string {
	if j.future.Spec == nil {
		return ""
	}
	return j.future.Spec.Function
}

// lent is what others may use while the function waits: its slot as well.
func (j *job) lent() layout.Requirements { return layout.Requirements{CPU: j.requirements().CPU} }

func (j *job) requirements() layout.Requirements {
	if j.future.Spec == nil {
		return layout.Requirements{}
	}
	return j.future.Requirements()
}

// codec is what the function's arguments are.
func (j *job) codec() string {
	if j.future.Spec.Codec == layout.CodecInputs {
		return layout.CodecRaw
	}
	return j.future.Spec.Codec
}

// enterSlot makes the function's context.
func (j *job) enterSlot(now time.Time) {
	j.ctx, j.cancel = context.WithCancelCause(j.membership.values)
	j.due, j.started = now, now
	if j.future.Cancel != nil {
		j.cancel(ErrCancelled)
	}
}

// start begins the attempt.
func (j *job) start(now time.Time) {
	j.started = now
	if timeout := j.timeout(); timeout > 0 {
		j.deadline = now.Add(timeout).Add(j.patience()) // the sum may exceed the longest duration
	}
	j.boundBy(j.futureDeadline())
}

// timeout bounds the attempt, 0 for no bound.
func (j *job) timeout() time.Duration {
	w := j.membership.worker
	timeout := w.policy.Timeout(j.future.Spec.Timeout)
	if timeout == 0 && j.isTimedByRunner() {
		return w.ModuleTimeout()
	}
	return timeout
}

// ModuleTimeout is the timeout here of a module whose future has none, 0 for none. A
// policy's comes before that of the options.
func (w *Worker) ModuleTimeout() time.Duration {
	return cmp.Or(w.policy.Timeout(0), max(w.options.ModuleTimeout, 0))
}

// hasModuleTimeout reports whether the timeout is that of the worker for modules whose
// futures have none.
func (j *job) hasModuleTimeout() bool {
	return j.timeout() != j.membership.worker.policy.Timeout(j.future.Spec.Timeout)
}

// lacksTimeout is how the failure of a job ends that has no timeout of its own.
const lacksTimeout = "the future has no timeout, so that its worker's for modules holds (--module-timeout)"

// moduleGrace is how much longer than its timeout the call of a module may take:
// the runner keeps the timeout itself, not counting the time to load the code.
const moduleGrace = time.Minute

// isTimedByRunner reports whether the runner of a module keeps the timeout of the job.
func (j *job) isTimedByRunner() bool {
	return isModule(j.future.Spec.Function) && j.membership.worker.options.Remote == nil
}

// limit is when the worker itself ends the job.
func (j *job) limit() time.Time {
	if j.isTimedByRunner() {
		return j.deadline.Add(moduleGrace)
	}
	return j.deadline
}

// expire ends a job whose timeout has passed, whether or not its function heeds
// it. It is settled first, so that the function's result is discarded.
func (j *job) expire() {
	if !j.final && (j.arriving.Load() || j.extend()) {
		return
	}
	j.settle(j.overdue())
	if j.final {
		j.cancel(ErrDeadline)
	}
	j.cancel(ErrTimeout)
}

// expireAt ends a job at the deadline of its future.
func (j *job) expireAt(deadline time.Time) {
	j.settle(j.pastDeadline(deadline))
	j.cancel(ErrDeadline)
}

// settle decides how the claim ends, and reports whether it did: the first call
// wins.
func (j *job) settle(c fdbmodel.Completion) bool {
	// A membership that no longer sees the job run waits for what comes of it.
	e := j.membership.endings
	e.settling.Add(1)
	defer func() {
		e.settling.Add(-1)
		signal.Send(e.written)
	}()
	if !j.settled.CompareAndSwap(false, true) {
		return false
	}
	if c.Result != nil || c.Exception != nil {
		c.RunTime = j.ran()
	}
	if j.sourced {
		j.membership.worker.endAtSource(&c)
		return true
	}
	if c.Result != nil {
		j.endTurn(&c)
		j.noteUnused(func(names []string, all bool) {
			unused := steps.Of(j.membership.worker.cluster).Unused(&j.future, names, all)
			c.Beside = cmp.Or(c.Beside, &fdbmodel.Beside{})
			c.Beside.Write = append(c.Beside.Write, unused)
		})
	}
	if seen := j.stepsSeen(); seen > 0 {
		c.Beside = cmp.Or(c.Beside, &fdbmodel.Beside{})
		c.Beside.Seen = max(c.Beside.Seen, seen)
	}
	c.Progress = j.membership.progress.take(j)
	j.membership.put(c)
	j.endMembers(c.Exception)
	return true
}

// ran is how long the attempt ran, 0 for one whose run time is that of a bundle.
func (j *job) ran() time.Duration {
	if j.shares.Load() {
		return 0
	}
	here := j.membership.worker.cluster.Now().Sub(j.started)
	if elsewhere := time.Duration(j.ranElsewhere.Load()); elsewhere > 0 {
		return min(elsewhere, here)
	}
	return here
}

// drop discards the result of the job.
func (j *job) drop() bool {
	if j.sourced {
		return j.relinquish()
	}
	first := j.settled.CompareAndSwap(false, true)
	j.membership.progress.take(j)
	j.membership.endings.forget([]fdbmodel.Completion{{Future: &j.future}})
	return first
}

func (j *job) relinquish() bool {
	return j.settle(fdbmodel.Completion{Future: &j.future, Relinquish: true})
}

// overdue is how an attempt ends that ran longer than it may.
func (j *job) overdue() fdbmodel.Completion {
	if j.final {
		return j.pastDeadline(j.deadline)
	}
	timeout, remedy := j.timeout(), "raise the future's timeout"
	switch {
	case j.hasModuleTimeout():
		remedy = lacksTimeout
	case timeout != j.future.Spec.Timeout:
		remedy = "the policy of its worker or of the cluster allows no more"
	}
	if patience := j.patience(); patience > 0 {
		remedy += fmt.Sprintf("; where it runs, no end was told of within %v after that", patience)
	}
	return fdbmodel.Completion{Future: &j.future, Started: j.started, Exception: &layout.Exception{
		Kind: layout.KindTimeout, Message: fmt.Sprintf("ran longer than its timeout of %v; %s", timeout, remedy),
	}}
}

// jobContext is what a function gets.
type jobContext struct {
	context.Context
	job *job
}

// Deadline implements context.Context, by the cluster's clock: when the worker
// itself ends the context.
func (c jobContext) Deadline() (time.Time, bool) {
	if c.job.deadline.IsZero() {
		return time.Time{}, false
	}
	return c.job.limit(), true
}

// Value implements context.Context.
func (c jobContext) Value(key any) any {
	f := &c.job.future
	switch key {
	case infoKey{}:
		info := Info{
			ID: f.ID, Function: f.Spec.Function, Queue: f.Spec.Queue, Attempts: f.Spec.MaxRetries + 1, Attempt: f.Attempt(),
			Token: f.Token, Worker: f.Token.Worker, Codec: c.job.codec(), Schedule: f.Spec.Schedule,
			Trace: f.Spec.Trace,
		}
		if at := f.Spec.ScheduledAt; at != 0 {
			info.ScheduledAt = time.UnixMilli(at)
		}
		return info
	case taskcontext.AwaitKey{}:
		return func(ctx context.Context, what taskcontext.Awaited, refuse taskcontext.Refuse) func() {
			return c.job.await(ctx, what, refuse)
		}
	case taskcontext.ClientKey{}:
		return taskcontext.ClientSource(&c.job.membership.worker.clients)
	case jobKey{}:
		return c.job
	case taskcontext.KeeperKey{}:
		if k := c.job.membership.kept; k != nil && !c.job.membership.closing.Load() {
			return taskcontext.Keeper(k)
		}
		return nil
	case taskcontext.StepsKey{}:
		return taskcontext.Steps(c.job.stepLog())
	case taskcontext.TurnKey{}:
		return taskcontext.Turn(c.job.turn())
	case taskcontext.CodecKey{}:
		return c.job.codec()
	case taskcontext.LaneKey{}:
		return f.Spec.Lane
	case taskcontext.DeadlineKey{}:
		return c.job.futureDeadline()
	case layout.TraceKey{}:
		return f.Spec.Trace
	}
	return c.Context.Value(key)
}

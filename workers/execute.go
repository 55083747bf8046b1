package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// permanentError fails a future regardless of its remaining attempts.
type permanentError struct{ error }

// Permanent returns true: no further attempt can succeed.
func (permanentError) Permanent() bool { return true }

// Unwrap returns the cause.
func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error after which no further attempt can succeed: the
// future fails at once. It returns nil for nil. An error of another package has
// the same effect with a method Permanent() bool that returns true.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// retryAfterError asks for a wait of its own.
type retryAfterError struct {
	error
	wait time.Duration
}

// Unwrap returns the cause.
func (e retryAfterError) Unwrap() error { return e.error }

// RetryAfter is for those who would try again before the attempt ends.
func (e retryAfterError) RetryAfter() time.Duration { return e.wait }

// RetryAfter marks an error after which the next attempt waits for d instead of
// the backoff. The attempt counts. err may be nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to be run again later")
	}
	return retryAfterError{err, max(d, 0)}
}

// marked is an error that is told apart from all others: errors.Is panics at some that can't be compared.
type marked struct{ error }

// Unwrap returns the error itself.
func (m *marked) Unwrap() error { return m.error }

// slot runs one job after the other until the slots are closed.
func (w *Worker) slot() {
	var j *job
	defer func() {
		if j == nil {
			return
		}
		// The function ended its goroutine, which is the slot's.
		j.settle(fdbmodel.Completion{Future: &j.future, Exception: &layout.Exception{
			Kind: layout.KindPanic, Message: "the function called runtime.Goexit",
		}})
		w.leaveSlot(j)
		w.running.Go(w.slot)
	}()
	for {
		if j = w.slots.take(); j == nil {
			return
		}
		w.paces.reserve(j)
		w.runJob(j)
		j = nil
	}
}

// runJob runs a job in the caller.
func (w *Worker) runJob(j *job) {
	c := w.execute(j)
	if c.Started = j.started; !j.settle(c) {
		w.logDiscarded(j)
		w.acknowledge([]fdbmodel.Completion{c})
	}
	w.leaveSlot(j)
}

func (w *Worker) leaveSlot(j *job) {
	j.cancel(nil)
	took := w.cluster.Now().Sub(j.started)
	j.awaitEnd()
	w.slots.giveBack(j, took)
}

// execute runs a job and says how it ended. It never panics.
func (w *Worker) execute(j *job) fdbmodel.Completion {
	f := &j.future
	if f.Err != nil {
		w.rare.Warn("a future can't be read; rejecting it", "future", f.ID, "error", f.Err)
		return fdbmodel.Completion{Future: f, Reject: true}
	}
	if !w.awaitTurn(j) || !w.recordBegin(j) {
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}
	if late := j.startedLate(w.cluster.Now()); late != nil {
		return *late
	}
	j.start(w.cluster.Now())
	w.countWait(j)
	args := f.Inline
	if f.Spec.ArgsRef != nil {
		var err error
		if args, err = w.cluster.Args(j.ctx, f.ID, f.Spec); err != nil {
			return w.withoutArgs(j, err)
		}
	}
	if near, blocked := w.isNear(j); !near {
		return blocked
	}
	if f.Spec.HasInputs() {
		var failed *fdbmodel.Completion
		if args, failed = w.withInputs(j, args); failed != nil {
			return *failed
		}
	}
	if j.deadline.IsZero() {
		return w.dispatch(j, args)
	}
	stop := w.cluster.Clock().AfterFunc(j.limit(), j.expire)
	defer stop()
	c := w.dispatch(j, args)
	if j.isPast(w.cluster.Now()) && !j.isTimedByRunner() && !c.Reject {
		late := j.overdue()
		late.Exception.Usage = usageIn(&c)
		return late
	}
	return c
}

// usageIn is what an attempt took, nil if that is not known.
func usageIn(c *fdbmodel.Completion) *layout.Usage {
	switch {
	case c.Result != nil:
		return c.Result.Usage
	case c.Exception != nil:
		return c.Exception.Usage
	default:
		return nil
	}
}

func (w *Worker) dispatch(j *job, args []byte) fdbmodel.Completion {
	f := &j.future
	if w.options.Remote != nil && !f.Spec.Bundle {
		return w.executeRemote(j, args)
	}
	if f.Spec.Bundle {
		return w.executeBundle(j)
	}
	if isModule(f.Spec.Function) && w.options.Modules != nil {
		return w.executeModule(j, args)
	}
	w.mu.Lock()
	fn := w.functions[f.Spec.Function]
	w.mu.Unlock()
	if fn == nil {
		return fdbmodel.Completion{Future: f, Reject: true}
	}
	value, err := w.callGo(j, fn, args)
	err = j.mind(err)
	if s := j.written(); s != nil {
		return w.ended(j, s, err, layout.Result{})
	}
	if err != nil {
		return j.failure(err)
	}
	codec := j.codec()
	if codec == layout.CodecArgv {
		codec = layout.CodecRaw
	}
	return w.success(j, layout.Result{Codec: codec, Value: value})
}

// withoutArgs returns the end of an attempt whose arguments can't be read:
// missing ones do not come back.
func (w *Worker) withoutArgs(j *job, err error) fdbmodel.Completion {
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrBadRecord) {
		return fdbmodel.Completion{Future: &j.future, Permanent: true, Exception: &layout.Exception{
			Kind: layout.KindError, Message: err.Error(),
		}}
	}
	w.rare.Warn("arguments can't be read; giving their future back", "future", j.future.ID, "error", err)
	return fdbmodel.Completion{Future: &j.future, Relinquish: true}
}

// call runs a Go function, and turns a panic into an error.
func call(j *job, fn Function, args []byte) (value []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	value, err = fn(jobContext{j.ctx, j}, args)
	return value, j.overTurn(err)
}

// stackMark divides the value of a panic and its stack in a message.
const stackMark = "\n\n"

// maxStack bounds the stack of a panic in a message, in bytes.
const maxStack = 4 << 10

// trimStack cuts a stack to what lies between the panic and the worker.
func trimStack(stack string) string {
	if _, below, found := strings.Cut(stack, "\npanic("); found {
		if _, frames, found := strings.Cut(below, "\n\t"); found {
			_, stack, _ = strings.Cut(frames, "\n")
		}
	}
	if above, _, found := strings.Cut(stack, "github.com/futura-run/futura/workers.call("); found {
		stack = above
	}
	return stack[:min(len(stack), maxStack)]
}

type panicError struct{ text string }

// panicked returns the error of a panic, with the stack of whoever recovers it.
func panicked(value any) error {
	return &panicError{fmt.Sprintf("panic: %v%s%s", value, stackMark, trimStack(string(debug.Stack())))}
}

// Error implements error.
func (e *panicError) Error() string { return e.text }

// failure says how an error ends an attempt. An error after the worker began to
// stop the function is the worker's doing: no attempt.
func (j *job) failure(err error) fdbmodel.Completion {
	c := fdbmodel.Completion{Future: &j.future}
	cause := context.Cause(j.ctx)
	var panicked *panicError
	var snooze snoozeError
	var unrecorded unrecordedError
	switch {
	case errors.As(err, &panicked):
		text := panicked.text
		if j.membership.worker.manual() {
			text, _, _ = strings.Cut(text, stackMark) // paths would make a simulation differ between folders
		}
		c.Exception = &layout.Exception{Kind: layout.KindPanic, Message: text}
	case cause != nil:
		c.Relinquish = true // a requested cancel ends the future with it
	case errors.As(err, &unrecorded):
		c.Relinquish = true
	case errors.As(err, &snooze):
		c.Snooze = &snooze.wait
	default:
		c.Exception = &layout.Exception{Kind: layout.KindError, Message: err.Error()}
		heed(&c, err)
	}
	return c
}

// heed has a failed attempt end as its error asks: without another one, or with
// another wait.
func heed(c *fdbmodel.Completion, err error) {
	var later retryAfterError
	var permanent interface{ Permanent() bool }
	c.Permanent = errors.As(err, &permanent) && permanent.Permanent()
	if errors.As(err, &later) {
		c.RetryIn = &later.wait
	}
}

// success writes large results ahead and says what the result is.
func (w *Worker) success(j *job, r layout.Result) fdbmodel.Completion {
	f := &j.future
	r.RunTime = w.cluster.Now().Sub(j.started)
	r.Size = cmp.Or(r.Size, int64(len(r.Value)))
	if limit := w.policy.MaxOutput; limit > 0 && r.Size > limit {
		return oversized(f, r.Size, limit, "return less, or raise max_output_bytes of the policy")
	}
	// What a worker that stops would keep is lost with it.
	kept, whole := j.membership.kept, r.Object == "" && r.Size == int64(len(r.Value))
	if whole && f.Spec.AsObject && kept != nil && r.Size > kept.above && !j.membership.closing.Load() {
		object, err := kept.keep(j.membership.store, f.ID, r.Value)
		if err != nil {
			w.options.Logger.Warn("a result has no room as an object; storing it with the cluster", "future", f.ID,
				"error", err)
		} else {
			r.Value, r.Object = nil, object
		}
	}
	if len(r.Value) > layout.MaxPut {
		return oversized(f, r.Size, layout.MaxPut,
			"submit the future as an object and give workers room for it, or store the data elsewhere and return where")
	}
	if len(r.Value) > fdbmodel.MaxResultInline && !j.sourced {
		ref, err := results.Of(w.cluster).Store(j.membership.store, f.ID, f.Token, r.Value)
		if err != nil {
			return w.unwritten(j, err)
		}
		r.Value, r.ValueRef = nil, &ref
	}
	var err error
	if r.Stderr, r.StderrRef, err = w.placeStderr(j, r.Stderr, &r.Truncated); err != nil {
		return w.unwritten(j, err)
	}
	w.tallies.of(f.Spec).runs.Observe(r.RunTime.Seconds())
	return fdbmodel.Completion{Future: f, Result: &r}
}

// oversized fails a future for the size of its result.
func oversized(f *fdbmodel.ClaimedFuture, size, most int64, cure string) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Exception: &layout.Exception{
		Kind:    layout.KindTooLarge,
		Message: fmt.Sprintf("result of %d bytes: at most %d; %s", size, most, cure),
	}}
}

// placeStderr keeps the end of a standard error stream: in the record where it
// is short, written ahead otherwise.
func (w *Worker) placeStderr(j *job, stderr []byte, truncated *bool) ([]byte, *layout.ChunkRef, error) {
	if len(stderr) > fdbmodel.MaxStderr {
		stderr, *truncated = stderr[len(stderr)-fdbmodel.MaxStderr:], true
	}
	if len(stderr) <= fdbmodel.MaxResultInline || j.sourced {
		return stderr, nil, nil
	}
	ref, err := results.Of(w.cluster).StoreStderr(j.membership.store, j.future.ID, j.future.Token, stderr)
	return nil, &ref, err
}

// unwritten gives a future back whose result could not be written: the store
// failed, not the function.
func (w *Worker) unwritten(j *job, err error) fdbmodel.Completion {
	w.options.Logger.Warn("a result could not be written", "future", j.future.ID, "error", err)
	if j.sourced {
		return fdbmodel.Completion{Future: &j.future, Reject: true} // it would be run here at once
	}
	return fdbmodel.Completion{Future: &j.future, Relinquish: true}
}

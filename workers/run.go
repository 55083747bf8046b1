package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Info is what a function can learn of its own run.
type Info struct {
	ID      fdbmodel.ID
	Attempt int
	// Token is the fence of the claim: no later run of the future has the same.
	Token fdbmodel.Token
}

type infoKey struct{}

// InfoFrom returns what a function's context knows of its run.
func InfoFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

// permanentError fails a future whatever its attempts.
type permanentError struct{ error }

// Unwrap returns the cause.
func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that no further attempt can cure: the future fails
// at once.
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

// RetryAfter marks an error after which the next attempt waits for d instead of
// the backoff.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to be run again later")
	}
	return retryAfterError{err, max(d, 0)}
}

// maxStack bounds the stack of a panic in a message, in bytes.
const maxStack = 4 << 10

// execute runs a job and says how it ended. It never panics.
func (l *life) execute(j *job) fdbmodel.Completion {
	f := &j.future
	if f.Err != nil {
		l.worker.options.Logger.Warn("a future can't be read and is put back", "future", f.ID, "error", f.Err)
		return fdbmodel.Completion{Future: f, PutBack: true}
	}
	args := f.Inline
	if f.Spec.ArgsRef != nil {
		var err error
		if args, err = l.worker.cluster.Args(j.ctx, f.ID, f.Spec); err != nil {
			l.worker.options.Logger.Warn("arguments can't be read", "future", f.ID, "error", err)
			return fdbmodel.Completion{Future: f, PutBack: true}
		}
	}
	if name, ok := strings.CutPrefix(f.Spec.Function, "wasm:"); ok && l.worker.options.Modules != nil {
		return l.executeModule(j, name, args)
	}
	l.worker.mu.Lock()
	fn := l.worker.functions[f.Spec.Function]
	l.worker.mu.Unlock()
	if fn == nil {
		return fdbmodel.Completion{Future: f, PutBack: true}
	}
	start := l.worker.cluster.Now()
	value, err := l.call(j, fn, args)
	if err != nil {
		return l.failure(j, err)
	}
	return l.success(j, fdbmodel.Result{Codec: f.Spec.Codec, Value: value, RunTime: l.worker.cluster.Now().Sub(start)})
}

// call runs a Go function with its timeout, and turns a panic into an error.
func (l *life) call(j *job, fn Function, args []byte) (value []byte, err error) {
	f := &j.future
	ctx := context.WithValue(j.ctx, infoKey{}, Info{ID: f.ID, Attempt: f.Attempt(), Token: f.Token})
	if f.Spec.Timeout > 0 {
		stop := l.limit(j)
		defer stop()
	}
	defer func() {
		if p := recover(); p != nil {
			stack := string(debug.Stack())
			err = &panicError{fmt.Sprintf("panic: %v\n\n%s", p, stack[:min(len(stack), maxStack)])}
		}
	}()
	return fn(ctx, args)
}

// limit ends a job's context after its timeout.
func (l *life) limit(j *job) (stop func()) {
	clk := l.worker.cluster.Clock()
	timer := clk.At(clk.Now().Add(j.future.Spec.Timeout))
	over := make(chan struct{})
	go func() {
		select {
		case <-timer.C():
			j.cancel(ErrTimeout)
		case <-over:
		case <-j.ctx.Done():
		}
	}()
	return func() {
		timer.Stop()
		close(over)
	}
}

type panicError struct{ text string }

// Error implements error.
func (e *panicError) Error() string { return e.text }

// failure says how an error ends an attempt. An error after the worker began to
// stop the function is the worker's doing: no attempt.
func (l *life) failure(j *job, err error) fdbmodel.Completion {
	c := fdbmodel.Completion{Future: &j.future}
	cause := context.Cause(j.ctx)
	var panicked *panicError
	var later retryAfterError
	var permanent permanentError
	switch {
	case errors.As(err, &panicked):
		c.Exception = &fdbmodel.Exception{Kind: fdbmodel.KindPanic, Message: panicked.text}
	case errors.Is(cause, ErrTimeout):
		c.Exception = &fdbmodel.Exception{
			Kind: fdbmodel.KindTimeout, Message: fmt.Sprintf("ran longer than its timeout of %v", j.future.Spec.Timeout),
		}
	case errors.Is(cause, ErrCancelled):
		c.Relinquish = true // the request ends the future as cancelled
	case cause != nil:
		c.Relinquish = true
	default:
		c.Exception = &fdbmodel.Exception{Kind: fdbmodel.KindError, Message: err.Error()}
		c.Permanent = errors.As(err, &permanent)
		if errors.As(err, &later) {
			c.RetryIn = &later.wait
		}
	}
	return c
}

// success writes large results ahead and says what the result is.
func (l *life) success(j *job, r fdbmodel.Result) fdbmodel.Completion {
	f := &j.future
	r.Size = int64(len(r.Value))
	if len(r.Value) > fdbmodel.MaxPut {
		return fdbmodel.Completion{Future: f, Exception: &fdbmodel.Exception{
			Kind: fdbmodel.KindTooLarge,
			Message: fmt.Sprintf("result of %d bytes: at most %d; store the data elsewhere and return where",
				len(r.Value), fdbmodel.MaxPut),
		}}
	}
	if len(r.Value) > fdbmodel.MaxResultInline {
		ref, err := l.worker.cluster.PutResult(j.ctx, f.ID, f.Token, r.Value)
		if err != nil {
			return l.unwritten(j, err)
		}
		r.Value, r.ValueRef = nil, &ref
	}
	if len(r.Stderr) > fdbmodel.MaxResultInline {
		ref, err := l.putStderr(j, r.Stderr)
		if err != nil {
			return l.unwritten(j, err)
		}
		r.Stderr, r.StderrRef = nil, ref
	}
	return fdbmodel.Completion{Future: f, Result: &r}
}

func (l *life) putStderr(j *job, stderr []byte) (*fdbmodel.ChunkRef, error) {
	if len(stderr) > fdbmodel.MaxStderr {
		stderr = stderr[len(stderr)-fdbmodel.MaxStderr:]
	}
	ref, err := l.worker.cluster.PutStderr(j.ctx, j.future.ID, j.future.Token, stderr)
	return &ref, err
}

// unwritten gives a future back whose result could not be written: the store
// failed, not the function.
func (l *life) unwritten(j *job, err error) fdbmodel.Completion {
	l.worker.options.Logger.Warn("a result could not be written", "future", j.future.ID, "error", err)
	return fdbmodel.Completion{Future: &j.future, Relinquish: true}
}

// executeModule runs a WASM module.
func (l *life) executeModule(j *job, name string, args []byte) fdbmodel.Completion {
	f := &j.future
	cid, method, _ := strings.Cut(name, "/")
	start := l.worker.cluster.Now()
	out, err := l.worker.options.Modules.Run(j.ctx, ModuleCall{
		CID: cid, Method: method, Argv: f.Spec.Argv, Env: f.Spec.Env, Stdin: args, Timeout: f.Spec.Timeout,
		MemoryLimit: f.Spec.Requirements.RAM,
		Load:        func(ctx context.Context) ([]byte, error) { return l.worker.cluster.GetModule(ctx, cid) },
	})
	switch cause := context.Cause(j.ctx); {
	case err != nil && cause == nil:
		l.worker.options.Logger.Warn("a module could not be run here", "future", f.ID, "error", err)
		return fdbmodel.Completion{Future: f, PutBack: true}
	case (err != nil || out.Kind != "") && cause != nil:
		return fdbmodel.Completion{Future: f, Relinquish: true}
	case out.Kind != "":
		return l.moduleFailure(j, &out)
	}
	return l.success(j, fdbmodel.Result{
		Codec: fdbmodel.CodecRaw, Value: out.Stdout, Stderr: out.Stderr, ExitCode: out.ExitCode, Truncated: out.Truncated,
		RunTime: l.worker.cluster.Now().Sub(start),
	})
}

// moduleFailure keeps the streams of a failed attempt: the beginning of the
// output, the end of the errors.
func (l *life) moduleFailure(j *job, out *ModuleOutcome) fdbmodel.Completion {
	e := &fdbmodel.Exception{
		Kind: out.Kind, Message: out.Message, ExitCode: out.ExitCode, Truncated: out.Truncated,
		Stdout: out.Stdout[:min(len(out.Stdout), fdbmodel.MaxResultInline)], Stderr: out.Stderr,
	}
	if len(e.Stderr) > fdbmodel.MaxResultInline {
		ref, err := l.putStderr(j, e.Stderr)
		if err != nil {
			return l.unwritten(j, err)
		}
		e.Stderr, e.StderrRef = nil, ref
	}
	return fdbmodel.Completion{Future: &j.future, Exception: e}
}

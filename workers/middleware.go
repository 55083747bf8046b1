package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Call is a call of a function as middleware sees it: from the bytes of the
// arguments to those of the result. That of a WASM module takes its standard
// input and returns its standard output.
type Call = Function

// Middleware is called once when an attempt begins, with the call that it is to
// wrap, and returns what is called in its place. InfoFrom tells it about the
// attempt. It may change the arguments, the result and the error, call next
// again after next has returned, or leave it out. The context that it gives next
// must come from its own, and it must not return before next has. Its own panic
// counts as one of the function. Another call of next finds the steps that the ones before
// have recorded, and none of what they made of actors. Where it makes a result of a call that
// failed or panicked, what that call has made of actors, sent, and written with ResultWriter is dropped.
//
// A result that the function writes with ResultWriter, or that a module streams
// to the worker's object store, does not pass through the middleware, which gets
// none; another call of next drops what the one before has written. A module
// that fails returns a *ModuleError.
type Middleware func(next Call) Call

// ModuleError is the failure of a WASM module as middleware sees it. If the
// middleware returns it, wrapped or not, the attempt fails as without
// middleware; Permanent and RetryAfter around it count.
type ModuleError struct {
	Kind     layout.FailureKind
	Message  string
	ExitCode int
	// Stdout is the standard output, or its beginning, and Stderr the standard
	// error, or its end.
	Stdout, Stderr []byte
}

// Error implements error.
func (e *ModuleError) Error() string { return fmt.Sprintf("%s: %s", e.Kind, e.Message) }

// validateMiddleware returns an error for middleware that could not be called.
func (o *Options) validateMiddleware() error {
	check := func(where string, all []Middleware) error {
		for i, m := range all {
			if m == nil {
				return fmt.Errorf("workers: middleware %d of %s is nil: leave it out", i+1, where)
			}
		}
		return nil
	}
	for function, all := range o.FunctionMiddleware {
		if err := layout.CheckFunctionName(function); err != nil {
			return fmt.Errorf("workers: middleware of %s: %w", function, err)
		}
		if err := check(function, all); err != nil {
			return err
		}
	}
	return check("all functions", o.Middleware)
}

// around returns a call with the middleware of its function around it.
func (w *Worker) around(function string, call Call) Call {
	for _, all := range [][]Middleware{w.options.FunctionMiddleware[function], w.options.Middleware} {
		for i := len(all) - 1; i >= 0; i-- {
			call = all[i](call)
		}
	}
	return call
}

// wraps reports whether there is middleware around a function.
func (w *Worker) wraps(function string) bool {
	return len(w.options.Middleware) > 0 || len(w.options.FunctionMiddleware[function]) > 0
}

// callGo calls a Go function within its middleware.
func (w *Worker) callGo(j *job, fn Function, args []byte) ([]byte, error) {
	function := j.future.Spec.Function
	if !w.wraps(function) {
		return call(j, fn, args)
	}
	failed := false // the last call of fn
	within := func(ctx context.Context, args []byte) (value []byte, err error) {
		j.dropWritten()
		j.dropTurn()
		defer j.stepLog().call()()
		failed = true
		defer func() {
			if failed {
				_ = j.overTurn(errPanicked) // unless it has ended with an error
			}
		}()
		value, err = fn(ctx, args)
		err = j.overTurn(err)
		failed = err != nil
		return value, err
	}
	// Middleware is made within call, which confines its panic.
	value, err := call(j, func(ctx context.Context, args []byte) ([]byte, error) {
		return w.around(function, within)(ctx, args)
	}, args)
	if err == nil && failed { // it made a result of a failure
		j.dropWritten()
	}
	return value, err
}

// errPanicked ends the turn of a function that has panicked.
var errPanicked = errors.New("workers: the function has panicked")

// dropWritten drops what an earlier call within the attempt has written.
func (j *job) dropWritten() {
	j.resultMu.Lock()
	s := j.result
	j.result = nil
	j.resultMu.Unlock()
	if s != nil {
		_ = s.end(errDropped, &layout.Result{}) // the error is the one given
	}
}

// moduleRun is the attempt of a module, which middleware may call more than once.
type moduleRun struct {
	worker  *Worker
	job     *job
	call    ModuleCall
	streams *moduleStreams
	host    *moduleHost
	// out, failed and failure are what the last call came to.
	out     ModuleOutcome
	failed  error        // of the runner
	failure *ModuleError // of the module
	ended   error        // what the middleware made of failure
}

// once calls the module.
func (m *moduleRun) once(ctx context.Context, stdin []byte) ([]byte, error) {
	m.streams.close() // what an earlier call has left
	m.streams.failed, m.failed, m.failure = nil, nil, nil
	m.host.begin()
	c := m.call
	c.Stdin = stdin
	var err error
	if m.out, err = runModule(ctx, m.worker.options.Modules, c); err != nil {
		m.failed = &marked{err}
		return nil, m.job.overTurn(m.failed)
	}
	if o := &m.out; o.Kind != "" {
		m.failure = &ModuleError{o.Kind, o.Message, o.ExitCode, o.Stdout, o.Stderr}
		return nil, m.job.overTurn(m.failure)
	}
	m.failed = m.host.end()
	return m.out.Stdout, m.failed
}

// run calls the module within its middleware. It returns how the attempt ends if
// that is the middleware's doing: out and failed then say nothing.
func (m *moduleRun) run(args []byte) *fdbmodel.Completion {
	function := m.job.future.Spec.Function
	if !m.worker.wraps(function) {
		_, _ = m.once(jobContext{m.job.ctx, m.job}, args) // out and failed say it
		return nil
	}
	value, err := call(m.job, func(ctx context.Context, args []byte) ([]byte, error) {
		return m.worker.around(function, func(ctx context.Context, stdin []byte) ([]byte, error) {
			defer m.job.stepLog().call()()
			return m.once(ctx, stdin)
		})(ctx, args)
	}, args)
	switch {
	case err == nil && m.failed == nil && m.failure == nil:
		m.out.Stdout = value
	case err == nil: // it made a result of a failure
		m.streams.close()
		m.out, m.failed = ModuleOutcome{Stdout: value}, nil
	case m.failed != nil && errors.Is(err, m.failed):
	case m.failure != nil && errors.Is(err, m.failure):
		m.ended = err
	default:
		c := m.job.failure(err)
		return &c
	}
	return nil
}

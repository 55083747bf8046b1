package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// Executor runs WebAssembly functions. Its methods may be called from many
// goroutines.
type Executor struct {
	config  Config
	backend backend
	slots   chan struct{}
	base    context.Context
	end     context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // under mu where it grows
	sources *lru[source]   // under mu
}

// source is a module as inspect has passed it.
type source struct {
	checked   []byte
	sum       [sha256.Size]byte // of checked
	minMemory uint64
}

// fetch returns a module from memory or from its source.
type fetch func(ctx context.Context) (source, error)

// backend is a place where functions run. Its errors, and those of fetch, are
// *Error.
type backend interface {
	// check compiles a module, unless that was done.
	check(ctx context.Context, cid string, from fetch) error
	// prepare does beforehand what would have others wait for run.
	prepare(ctx context.Context, cid string, from fetch) error
	// run answers with a result whenever the call began.
	run(ctx context.Context, c *call, from fetch) (result, error)
	// close is called once, when nothing runs.
	close(ctx context.Context) error
	// isolation names the kind of place.
	isolation() Isolation
	// walls are the names of the walls around it, and why others are missing.
	walls() (standing, missing []string)
}

// New starts an executor. It takes some tens of milliseconds with
// IsolationProcess, because it starts a process to see that it can. It returns
// ErrBadConfig for an invalid config.
func New(ctx context.Context, config Config) (*Executor, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := guardCache(config.CacheDir); err != nil {
		return nil, err
	}
	placed, err := newBackend(ctx, config)
	if err != nil {
		return nil, err
	}
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	return &Executor{
		config: config, backend: placed, slots: make(chan struct{}, config.PoolSize),
		base: base, end: end, sources: newLRU[source](config.MaxModuleSize),
	}, nil
}

// guardCache makes the directory for compiled code, and refuses one that others
// can change.
func guardCache(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = trust.Directory(dir)
	}
	if err != nil {
		return fmt.Errorf("wasm: directory for compiled code: %w", err)
	}
	return nil
}

func newBackend(ctx context.Context, config Config) (backend, error) {
	if config.Isolation == IsolationInProcess {
		return newInprocess(ctx, config)
	}
	placed, err := newProcesses(ctx, config)
	if err == nil || config.Isolation == IsolationProcess || ctx.Err() != nil {
		return placed, err
	}
	config.Logger.Warn("WebAssembly functions run in this process and not in child processes: loops are slower, and its "+
		"memory is theirs", "reason", err)
	return newInprocess(ctx, config)
}

// Isolation returns where functions run.
func (e *Executor) Isolation() Isolation { return e.backend.isolation() }

// Walls returns what the kernel keeps the processes of functions from, beside the
// engine itself: of "no_new_privs", "rlimits", "landlock" and "seccomp" those that
// stand, and why the others do not. With IsolationInProcess none stands.
func (e *Executor) Walls() (standing, missing []string) { return e.backend.walls() }

// Close ends the executor. Calls that run go on until ctx is done; then they are
// ended with ErrClosed as their cause. Close returns once nothing runs any more,
// and after the first time it does nothing.
func (e *Executor) Close(ctx context.Context) error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { e.end(ErrClosed) })
	e.running.Wait()
	stop()
	e.end(ErrClosed)
	if !first {
		return nil
	}
	return e.backend.close(context.WithoutCancel(ctx))
}

// Check compiles a module under its content id, so that a later Run finds it
// compiled. It takes no place of a call. Its error is an *Error of kind "unloadable" for a module that can
// never run: it is not a WebAssembly module, its code is invalid, it imports
// a function that is not allowed, it exports none that can be called, or it takes too
// long to compile; of kind "too_large" for one beyond Config.MaxModuleSize; "timeout" and
// "cancelled" as for Run. After Close it is ErrClosed.
func (e *Executor) Check(ctx context.Context, cid string, module []byte) error {
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return e.backend.check(ctx, cid, e.fetch(cid, func(context.Context) ([]byte, error) { return module, nil }))
}

// Run calls a function and waits for its end. A failure of
// the function is an *Error; its kind says what happened. The outcome is filled
// in then as well, as far as the call got. After Close the error is ErrClosed, and ErrStream if the
// invocation's Input or Output failed.
func (e *Executor) Run(ctx context.Context, inv Invocation) (Outcome, error) {
	nothing := Outcome{ExitCode: -1}
	c, err := e.config.newCall(&inv)
	if err != nil {
		return nothing, err
	}
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return nothing, err
	}
	defer leave()
	from := e.fetch(c.program, inv.Module)
	if err := e.backend.prepare(ctx, c.program, from); err != nil {
		return nothing, err
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nothing, ended(ctx)
	}
	ran, err := e.backend.run(ctx, c, from)
	if err != nil {
		return nothing, err
	}
	outcome := Outcome{
		Stdout: ran.stdout, Streamed: ran.streamed, Stderr: ran.stderr, StderrTruncated: ran.stderrTruncated,
		ExitCode: ran.exitCode, Duration: ran.duration, PeakMemory: int64(ran.peak), CPUUser: ran.cpuUser, CPUSys: ran.cpuSys,
	}
	if ran.kind == "" {
		return outcome, nil
	}
	failure := &Error{Kind: ran.kind, Message: ran.message}
	if ran.kind == KindCancelled {
		failure.Err = context.Cause(ctx)
	}
	return outcome, failure
}

// enter keeps the executor open until leave is called. The context that it returns
// is also done when Close gives up waiting.
func (e *Executor) enter(outer context.Context) (ctx context.Context, leave func(), err error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, nil, ErrClosed
	}
	e.running.Add(1)
	e.mu.Unlock()
	ctx, cancel := context.WithCancelCause(outer)
	stop := context.AfterFunc(e.base, func() { cancel(context.Cause(e.base)) })
	leave = func() {
		stop()
		cancel(nil)
		e.running.Done()
	}
	if ctx.Err() != nil {
		failure := ended(ctx)
		leave()
		return nil, nil, failure
	}
	return ctx, leave, nil
}

// fetch returns how to come by a module, which is kept for the next time.
func (e *Executor) fetch(cid string, load func(context.Context) ([]byte, error)) fetch {
	return func(ctx context.Context) (source, error) {
		e.mu.Lock()
		kept, ok := e.sources.get(cid)
		e.mu.Unlock()
		if ok {
			return kept, nil
		}
		if load == nil {
			return source{}, failf(KindError, "module %s is not loaded, and the invocation has no way to load it", cid)
		}
		module, err := load(ctx)
		if err != nil && ctx.Err() != nil {
			return source{}, ended(ctx)
		}
		if err != nil {
			return source{}, asError(KindError, fmt.Errorf("module %s can't be fetched: %w", cid, err))
		}
		checked, minMemory, err := inspect(module, e.config.MaxModuleSize)
		if err != nil {
			return source{}, err
		}
		fetched := source{checked: checked, sum: sha256.Sum256(checked), minMemory: minMemory}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sources.put(cid, fetched, int64(len(checked)))
		return fetched, nil
	}
}

// limits returns what an engine must know of the settings.
func (c *Config) limits() limits {
	return limits{maxModuleSize: c.MaxModuleSize, maxInput: c.MaxInput, maxOutput: c.MaxOutput, stderrTail: c.StderrTail}
}

// withLimit returns a context that ends after the time that something may take,
// if there is a limit. What ctx says of its own deadline is not relied on: that
// may be by another clock.
func withLimit(ctx context.Context, limit *timeLimit) (context.Context, context.CancelFunc) {
	if limit.limit <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit.limit, func() { cancel(limit) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

var errNoChildMain = errors.New("main did not call wasm.ChildMain: call it first in main")

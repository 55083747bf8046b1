//go:build unix

package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// processes runs functions in child processes, one call at a time in each.
type processes struct {
	config    Config
	temporary string // the directory of codes, if it is removed at the end
	starter   *starter
	codes     *codeStore
	// Places of compilers: for check, for run, and for those that take long.
	checks, runs, slow chan struct{}
	quick              time.Duration // after which a compiler moves to those
	now                func() time.Time
	// standing and missing are what the first child said of its walls.
	standing, missing []string

	mu       sync.Mutex
	idle     []*worker   // the one used last at the end
	retiring *time.Timer // set while it will fire
	closed   bool
	compiled *lru[struct{}]
	flights  map[[sha256.Size]byte]*flight
	refused  *lru[refusal]     // why modules can't be loaded, by their sums
	unkept   *lru[machineCode] // code that the directory did not take, by their sums

	retired sync.WaitGroup
}

func newProcesses(ctx context.Context, config Config) (backend, error) {
	if !childMainCalled.Load() {
		return nil, errNoChildMain
	}
	b := &processes{
		config: config, starter: newStarter(), quick: quickCompile, now: time.Now,
		checks: make(chan struct{}, config.Compilers), runs: make(chan struct{}, config.Compilers),
		slow: make(chan struct{}, config.Compilers), compiled: newLRU[struct{}](compiledRemembered),
		flights: map[[sha256.Size]byte]*flight{}, refused: newLRU[refusal](refusedRemembered),
		unkept: newLRU[machineCode](unkeptBytes),
	}
	dir := config.CacheDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "futura-wasm-"); err != nil {
			b.starter.stop()
			return nil, fmt.Errorf("wasm: directory for compiled code: %w: set TMPDIR to a directory that can be written", err)
		}
		b.temporary = dir
	}
	var err error
	if b.codes, err = newCodeStore(dir, codeBytes); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	probe, err := b.start(ctx)
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	b.standing, b.missing = probe.standing, probe.missing
	b.release(probe)
	return b, nil
}

func (b *processes) isolation() Isolation { return IsolationProcess }

func (b *processes) walls() (standing, missing []string) { return b.standing, b.missing }

func (b *processes) close(context.Context) error {
	b.mu.Lock()
	idle := b.idle
	b.idle, b.closed = nil, true
	if b.retiring != nil && b.retiring.Stop() {
		b.retired.Done()
	}
	b.mu.Unlock()
	b.retired.Wait()
	for _, w := range idle {
		w.discard()
	}
	b.starter.stop()
	if b.temporary != "" {
		return os.RemoveAll(b.temporary)
	}
	return nil
}

func (b *processes) run(ctx context.Context, c *call, from fetch) (result, error) {
	return b.with(ctx, c.program, func(w *worker) (result, error) {
		if err := b.load(ctx, w, c.program, from); err != nil {
			return result{}, err
		}
		return b.call(ctx, w, c)
	})
}

// with calls do with a worker, and again with another one as long as the worker
// died before it got the request.
func (b *processes) with(ctx context.Context, cid string, do func(*worker) (result, error)) (result, error) {
	for {
		w, reused, err := b.acquire(ctx, cid)
		if err != nil {
			return result{}, err
		}
		ran, err := b.lend(w, do)
		switch {
		case errors.Is(err, errNotSent) && ctx.Err() != nil:
			return result{}, ended(ctx)
		case errors.Is(err, errNotSent) && reused:
			continue
		}
		if errors.Is(err, ErrStream) {
			return result{}, err
		}
		if err != nil {
			return ran, asError(KindLost, err)
		}
		return ran, nil
	}
}

// lend has do use a worker, and takes that back even if do panics.
func (b *processes) lend(w *worker, do func(*worker) (result, error)) (result, error) {
	defer b.release(w)
	return do(w)
}

// acquire returns an idle worker, if there is one that has the module, else any,
// else a new one.
func (b *processes) acquire(ctx context.Context, cid string) (w *worker, reused bool, err error) {
	b.mu.Lock()
	if last := len(b.idle) - 1; last >= 0 {
		at := last
		for i := last; i >= 0; i-- {
			if b.idle[i].loaded.has(cid) {
				at = i
				break
			}
		}
		w = b.idle[at]
		b.idle = append(b.idle[:at], b.idle[at+1:]...)
	}
	b.mu.Unlock()
	if w != nil {
		return w, true, nil
	}
	w, err = b.start(ctx)
	if err != nil {
		return nil, false, asError(KindError, err)
	}
	return w, false, nil
}

func (b *processes) release(w *worker) {
	if w.broken {
		w.discard()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w.idleSince = time.Now()
	b.idle = append(b.idle, w)
	b.retireIn(b.config.IdleTimeout)
}

// retireIn schedules retire, unless it is scheduled. It is called under mu.
func (b *processes) retireIn(d time.Duration) {
	if b.retiring != nil || b.closed || b.config.IdleTimeout < 0 {
		return
	}
	b.retired.Add(1)
	b.retiring = time.AfterFunc(d, func() {
		defer b.retired.Done()
		b.mu.Lock()
		b.retiring = nil
		b.mu.Unlock()
		b.retire(time.Now())
	})
}

// retire ends the processes that have been idle for too long.
func (b *processes) retire(now time.Time) {
	b.mu.Lock()
	n := 0
	for n < len(b.idle) && now.Sub(b.idle[n].idleSince) >= b.config.IdleTimeout {
		n++
	}
	old := b.idle[:n:n]
	if b.idle = b.idle[n:]; len(b.idle) > 0 {
		b.retireIn(b.idle[0].idleSince.Add(b.config.IdleTimeout).Sub(now))
	}
	b.mu.Unlock()
	for _, w := range old {
		w.discard()
	}
}

// start starts a worker and sends it its settings.
func (b *processes) start(ctx context.Context) (*worker, error) {
	largest := max(b.config.MaxOutput, maxKeptOnOverflow) + b.config.StderrTail + maxMessage + frameSlack
	w, err := startWorker(b.starter, b.config.LoadedModules, largest)
	if err != nil {
		return nil, err
	}
	return w, b.setUp(ctx, w, &settings{limits: b.config.limits()})
}

// setUp sends a worker its settings. The worker is gone after an error.
func (b *processes) setUp(ctx context.Context, w *worker, settings *settings) error {
	ctx, cancel := withLimit(ctx, &timeLimit{limit: b.config.LoadTimeout, doing: "starting a process for functions"})
	defer cancel()
	failure, err := w.status(ctx, frameSetup, settings.encode())
	if err == nil && failure != nil {
		err = failure
	}
	if err != nil {
		w.discard()
		return fmt.Errorf("wasm: a process for functions can't be started: %w", err)
	}
	return nil
}

// load has the worker load a module if it has not.
func (b *processes) load(ctx context.Context, w *worker, cid string, from fetch) error {
	if _, ok := w.loaded.get(cid); ok {
		return nil
	}
	module, err := b.fetch(ctx, from)
	if err != nil {
		return err
	}
	for again := true; ; again = false {
		c, fresh, err := b.code(ctx, module, b.runs)
		if err != nil {
			return err
		}
		failure, err := b.loadCode(ctx, w, cid, module, c)
		switch {
		case err != nil:
			return err
		case failure != nil && failure.Kind == kindStale && !fresh && again:
			if err := b.codes.drop(module.sum); err != nil {
				return fail(KindError, err)
			}
			continue
		case failure != nil && failure.Kind == kindStale:
			return failf(KindError, "the module's code can't be used: %s", failure.Message)
		case failure != nil:
			return failure
		}
		b.rememberCompiled(cid)
		return nil
	}
}

func (b *processes) loadCode(ctx context.Context, w *worker, cid string, module source, c machineCode) (*Error, error) {
	ctx, cancel := withLimit(ctx, &timeLimit{limit: b.config.LoadTimeout, doing: "loading the module"})
	defer cancel()
	failure, err := w.load(ctx, cid, module, c)
	if err == nil && failure == nil && w.broken { // its answer and the end of the context crossed
		return ended(ctx), nil
	}
	return failure, err
}

// fetch gets a module from where it is.
func (b *processes) fetch(ctx context.Context, from fetch) (source, error) {
	ctx, cancel := withLimit(ctx, &timeLimit{limit: b.config.LoadTimeout, doing: "fetching the module"})
	defer cancel()
	return from(ctx)
}

func (b *processes) isCompiled(cid string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.compiled.get(cid)
	return ok
}

func (b *processes) call(ctx context.Context, w *worker, c *call) (result, error) {
	number, _ := w.loaded.get(c.program)
	ctx, cancel := withLimit(ctx, functionLimit(c))
	defer cancel()
	flow := newFlow(ctx, c)
	began := time.Now()
	kind, content, err := w.exchange(ctx, flow, frameRun, encodeRun(number, c), c.stdin)
	var failure *Error
	if err != nil && (!errors.As(err, &failure) || errors.Is(err, errNotSent)) {
		return result{}, err
	}
	ran, unsaid := decodeAnswer(kind, content)
	switch {
	case unsaid == nil:
		w.user, w.sys = w.user+ran.cpuUser, w.sys+ran.cpuSys
	case failure == nil:
		w.broken = true
		return result{}, unsaid
	default:
		ran = result{}
		ran.cpuUser, ran.cpuSys = w.unsaid()
	}
	if kind == frameHalted && failure == nil {
		failure = ended(ctx)
	}
	if failure != nil {
		ran.endBy(failure)
		ran.duration = time.Since(began)
	}
	ran.streamed = flow.taken
	return ran, nil
}

// decodeAnswer returns what a child says of a call that has ended.
func decodeAnswer(kind byte, content []byte) (result, error) {
	if kind != frameResult && kind != frameHalted {
		return result{}, fmt.Errorf("%w: kind %q instead of a result", errFrame, kind)
	}
	return decodeResult(content)
}

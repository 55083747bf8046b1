//go:build unix

package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// processes runs functions in child processes, one call at a time in each.
type processes struct {
	config    Config
	cacheDir  string
	temporary bool // cacheDir is removed at the end
	starter   *starter
	compiling chan struct{} // holds one value while a module is compiled

	mu       sync.Mutex
	idle     []*worker   // the one used last at the end
	retiring *time.Timer // set while it will fire
	closed   bool
	compiled *lru[struct{}]

	retired sync.WaitGroup
}

// compiledRemembered is how many modules are remembered to be on disk in their
// compiled form.
const compiledRemembered = 10_000

func newProcesses(ctx context.Context, config Config) (backend, error) {
	if !childMainCalled.Load() {
		return nil, errNoChildMain
	}
	b := &processes{
		config: config, cacheDir: config.CacheDir, starter: newStarter(),
		compiling: make(chan struct{}, 1), compiled: newLRU[struct{}](compiledRemembered),
	}
	if b.cacheDir == "" {
		dir, err := os.MkdirTemp("", "futura-wasm-")
		if err != nil {
			b.starter.stop()
			return nil, fmt.Errorf("wasm: directory for compiled code: %w", err)
		}
		b.cacheDir, b.temporary = dir, true
	}
	probe, err := b.start(ctx)
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	b.release(probe)
	return b, nil
}

func (b *processes) isolation() Isolation { return IsolationProcess }

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
	if b.temporary {
		return os.RemoveAll(b.cacheDir)
	}
	return nil
}

func (b *processes) check(ctx context.Context, cid string, from fetch) error {
	_, err := b.with(ctx, cid, func(w *worker) (result, error) { return result{}, b.load(ctx, w, cid, from) })
	return err
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
		ran, err := do(w)
		b.release(w)
		if errors.Is(err, errNotSent) && reused && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return ran, asError(KindLost, err)
		}
		return ran, nil
	}
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
	w, err := startWorker(b.starter, b.config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withLimit(ctx, &timeLimit{limit: b.config.LoadTimeout, doing: "starting a process for functions"})
	defer cancel()
	settings := &settings{limits: b.config.limits(), cacheDir: b.cacheDir}
	failure, err := w.status(ctx, frameSetup, settings.encode())
	if err == nil && failure != nil {
		err = failure
	}
	if err != nil {
		w.discard()
		return nil, fmt.Errorf("wasm: a process for functions can't be started: %w", err)
	}
	return w, nil
}

// load has the worker load a module if it has not. A module whose compiled form
// may be missing on disk is loaded by one worker at a time.
func (b *processes) load(ctx context.Context, w *worker, cid string, from fetch) error {
	if _, ok := w.loaded.get(cid); ok {
		return nil
	}
	ctx, cancel := withLimit(ctx, &timeLimit{limit: b.config.LoadTimeout, doing: "loading the module"})
	defer cancel()
	if !b.isCompiled(cid) {
		select {
		case b.compiling <- struct{}{}:
			defer func() { <-b.compiling }()
		case <-ctx.Done():
			return ended(ctx)
		}
	}
	module, err := from(ctx)
	if err != nil {
		return err
	}
	failure, err := w.load(ctx, cid, module)
	if err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	if w.broken { // its answer and the end of the context crossed
		return ended(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.compiled.put(cid, struct{}{}, 1)
	return nil
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
	kind, content, err := w.exchange(ctx, frameRun, encodeRun(number, c), c.stdin)
	if err != nil {
		var failure *Error
		if !errors.As(err, &failure) || errors.Is(err, errNotSent) {
			return result{}, err
		}
		return result{kind: failure.Kind, message: failure.Message, exitCode: -1}, nil
	}
	if kind != frameResult && kind != frameHalted {
		w.broken = true
		return result{}, fmt.Errorf("%w: kind %q instead of a result", errFrame, kind)
	}
	ran, err := decodeResult(content)
	if err != nil {
		w.broken = true
		return result{}, err
	}
	if kind == frameHalted {
		failure := ended(ctx)
		ran.kind, ran.message, ran.exitCode = failure.Kind, failure.Message, -1
	}
	return ran, nil
}

// settings are what a child must know before it can do anything.
type settings struct {
	limits   limits
	cacheDir string
}

func (s *settings) encode() []byte {
	var to []byte
	to = appendString(to, s.cacheDir)
	to = appendNumbers(to, s.limits.maxModuleSize, s.limits.maxInput, s.limits.maxOutput, s.limits.stderrTail)
	return to
}

func decodeSettings(from []byte) (*settings, error) {
	frame := &content{bytes: bytes.Clone(from)}
	s := &settings{cacheDir: frame.text()}
	s.limits = limits{
		maxModuleSize: int64(frame.number()), maxInput: int64(frame.number()),
		maxOutput: int64(frame.number()), stderrTail: int64(frame.number()),
	}
	return s, frame.err
}

package wasm

import (
	"context"
	"errors"
	"sync"
)

// inprocess runs functions in the process itself, with code that looks at the
// context of the call.
type inprocess struct {
	config    Config
	engine    *engine
	compiling chan struct{} // holds one value while a module is compiled
	compilers sync.WaitGroup

	mu       sync.Mutex
	programs *lru[*sharedProgram]
}

// sharedProgram is a program that several calls use. Its last user closes it
// after it was evicted.
type sharedProgram struct {
	*program
	users   int
	evicted bool
}

func newInprocess(ctx context.Context, config Config) (*inprocess, error) {
	const stoppable, workers = true, 1
	e, err := newEngine(context.WithoutCancel(ctx), config.limits(), config.CacheDir, stoppable, workers)
	if err != nil {
		return nil, err
	}
	return &inprocess{
		config: config, engine: e, compiling: make(chan struct{}, 1),
		programs: newLRU[*sharedProgram](int64(config.LoadedModules)),
	}, nil
}

func (b *inprocess) isolation() Isolation { return IsolationInProcess }

func (b *inprocess) walls() (standing, missing []string) {
	return nil, []string{"functions run in this process"}
}

func (b *inprocess) prepare(context.Context, string, fetch) error { return nil }

func (b *inprocess) close(ctx context.Context) error {
	b.compilers.Wait()
	b.mu.Lock()
	programs := b.programs.clear()
	b.mu.Unlock()
	for _, p := range programs {
		b.engine.drop(p.program)
	}
	return b.engine.close(ctx)
}

func (b *inprocess) check(ctx context.Context, cid string, from fetch) error {
	p, err := b.program(ctx, cid, from)
	if err != nil {
		return err
	}
	b.release(p)
	return nil
}

func (b *inprocess) run(ctx context.Context, c *call, from fetch) (result, error) {
	p, err := b.program(ctx, c.program, from)
	if err != nil {
		return result{}, err
	}
	defer b.release(p)
	ctx, cancel := withLimit(ctx, functionLimit(c))
	defer cancel()
	out := newStreams(ctx, b.config.limits(), c.output, &answers{host: c.host})
	ran := b.engine.run(ctx, p.program, c, out)
	var failure *Error
	switch {
	case out.failed == nil:
	case ctx.Err() != nil:
		ran.endBy(ended(ctx))
	case errors.As(out.failed, &failure):
		ran.endBy(failure)
	default:
		return result{}, out.failed
	}
	return ran, nil
}

// program returns a loaded program, for release. One is compiled at a time.
func (b *inprocess) program(ctx context.Context, cid string, from fetch) (*sharedProgram, error) {
	if p := b.loaded(cid); p != nil {
		return p, nil
	}
	select {
	case b.compiling <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	compiles := false
	defer func() {
		if !compiles { // a panic of from leaves the place as well
			<-b.compiling
		}
	}()
	if p := b.loaded(cid); p != nil {
		return p, nil
	}
	limit := &timeLimit{limit: b.config.LoadTimeout, doing: "loading the module"}
	fetching, fetched := withLimit(ctx, limit)
	module, err := from(fetching)
	fetched()
	if err != nil {
		return nil, err
	}
	ctx, cancel := withLimit(ctx, limit)
	defer cancel()
	type loading struct {
		program *sharedProgram
		err     error
	}
	done := make(chan loading, 1)
	compiles = true
	b.compilers.Go(func() {
		compiled, err := b.engine.load(context.WithoutCancel(ctx), module.checked, module.minMemory)
		if err != nil {
			done <- loading{err: err}
		} else {
			done <- loading{program: b.keep(cid, compiled)}
		}
		<-b.compiling
	})
	select {
	case loaded := <-done:
		return loaded.program, loaded.err
	case <-ctx.Done():
		b.compilers.Go(func() {
			if loaded := <-done; loaded.err == nil {
				b.release(loaded.program)
			}
		})
		return nil, ended(ctx)
	}
}

func (b *inprocess) loaded(cid string) *sharedProgram {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.programs.get(cid)
	if !ok {
		return nil
	}
	p.users++
	return p
}

// keep returns the program for release.
func (b *inprocess) keep(cid string, compiled *program) *sharedProgram {
	kept := &sharedProgram{program: compiled, users: 1}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.programs.put(cid, kept, 1) {
		p.evicted = true
		b.closeUnused(p)
	}
	return kept
}

func (b *inprocess) release(p *sharedProgram) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.users--
	b.closeUnused(p)
}

// closeUnused is called under mu.
func (b *inprocess) closeUnused(p *sharedProgram) {
	if p.evicted && p.users == 0 {
		b.engine.drop(p.program)
	}
}

//go:build unix

package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// compiledRemembered is how many modules are remembered to have code, and
	// refusedRemembered how many have been refused, for good or for memoryRefused.
	compiledRemembered = 10_000
	refusedRemembered  = 1000
	// memoryRefused is how long a module is refused whose compiler got no more memory: the machine may have been
	// short of it.
	memoryRefused = time.Minute
	// codeBytes is how much code is kept on disk, and unkeptBytes in memory where
	// the disk takes none.
	codeBytes   = 4 << 30
	unkeptBytes = 64 * mebibyte
	// quickCompile is the time after which a compiler leaves its place to others.
	quickCompile = 5 * time.Second
	// waitFactor is how much longer than its processor time compiling may take: on
	// a machine that is busy that must not fail a module.
	waitFactor = 30
)

// flight is the compilation of a module that several callers wait for.
type flight struct {
	done chan struct{}
	code machineCode
	err  error
	// again is set if it ended because its own caller gave up.
	again bool
}

// refusal is why a module is not compiled again, and until when: the zero time is for good.
type refusal struct {
	err   *Error
	until time.Time
}

// errCompilerMemory is why a module is refused that may yet be compiled.
var errCompilerMemory = errors.New("the compiler got no more memory")

func (b *processes) check(ctx context.Context, cid string, from fetch) error {
	return b.compileFor(ctx, cid, from, b.checks)
}

func (b *processes) prepare(ctx context.Context, cid string, from fetch) error {
	return b.compileFor(ctx, cid, from, b.runs)
}

// compileFor compiles a module, unless that was done.
func (b *processes) compileFor(ctx context.Context, cid string, from fetch, places chan struct{}) error {
	if b.isCompiled(cid) {
		return nil
	}
	module, err := b.fetch(ctx, from)
	if err != nil {
		return err
	}
	if _, _, err = b.code(ctx, module, places); err != nil {
		return err
	}
	b.rememberCompiled(cid)
	return nil
}

func (b *processes) rememberCompiled(cid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.compiled.put(cid, struct{}{}, 1)
}

// code returns a module's code, which is compiled if it is not there, once for
// all who wait for it. It reports whether it was compiled now.
func (b *processes) code(ctx context.Context, module source, places chan struct{}) (
	c machineCode, fresh bool, err error,
) {
	for {
		if c, ok := b.kept(module.sum); ok {
			return c, false, nil
		}
		f, mine, err := b.board(module.sum)
		if err != nil {
			return machineCode{}, false, err
		}
		if mine {
			f.code, f.err = b.compile(ctx, module, places)
			f.again = f.err != nil && ctx.Err() != nil
			b.land(module.sum, f)
			return f.code, true, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return machineCode{}, false, ended(ctx)
		}
		if !f.again {
			return f.code, true, f.err
		}
	}
}

// kept returns code from the disk, or from memory where that took none.
func (b *processes) kept(sum [sha256.Size]byte) (machineCode, bool) {
	b.mu.Lock()
	c, ok := b.unkept.get(string(sum[:]))
	b.mu.Unlock()
	if ok {
		return c, true
	}
	return b.codes.get(sum)
}

// board returns the flight of a module, and whether it is the caller's to carry
// out.
func (b *processes) board(sum [sha256.Size]byte) (f *flight, mine bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.refused.get(string(sum[:])); ok {
		if r.until.IsZero() || b.now().Before(r.until) {
			return nil, false, r.err
		}
		b.refused.take(string(sum[:]))
	}
	if f = b.flights[sum]; f != nil {
		return f, false, nil
	}
	f = &flight{done: make(chan struct{})}
	b.flights[sum] = f
	return f, true, nil
}

func (b *processes) land(sum [sha256.Size]byte, f *flight) {
	var notKept error
	if f.err == nil {
		notKept = b.codes.put(sum, f.code)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flights, sum)
	var refused *Error
	if errors.As(f.err, &refused) && (refused.Kind == KindUnloadable || refused.Kind == KindTooLarge) {
		r := refusal{err: refused}
		if errors.Is(refused, errCompilerMemory) {
			r.until = b.now().Add(memoryRefused)
		}
		b.refused.put(string(sum[:]), r, 1)
	}
	if notKept != nil {
		b.unkept.put(string(sum[:]), f.code, int64(len(f.code.bytes)))
		b.config.Logger.Warn("compiled code is kept in memory only", "error", notKept)
	}
	close(f.done)
}

// compile compiles a module in a process that does nothing else.
func (b *processes) compile(ctx context.Context, module source, places chan struct{}) (machineCode, error) {
	leave, err := b.takePlace(ctx, places)
	if err != nil {
		return machineCode{}, err
	}
	defer leave()
	w, err := b.startCompiler(ctx)
	if err != nil {
		return machineCode{}, asError(KindError, err)
	}
	defer w.discard()
	ctx, cancel := withLimit(ctx, &timeLimit{limit: waitFactor * b.config.CompileTimeout, doing: "compiling the module",
		wayOut: "; the machine may be busy"})
	defer cancel()
	answer, body, err := w.exchange(ctx, nil, frameCompile, binary.AppendUvarint(nil, module.minMemory), module.checked)
	if err != nil {
		return machineCode{}, b.compilerFailure(w, err)
	}
	if answer != frameCode {
		failure, err := w.decodeStatus(answer, body)
		if err == nil && failure == nil {
			err = fmt.Errorf("%w: a status without a failure", errFrame)
		}
		if err != nil {
			return machineCode{}, asError(KindLost, err)
		}
		return machineCode{}, b.compilerFailure(w, failure)
	}
	frame := &content{bytes: body}
	var c machineCode
	frame.fixed(c.name[:])
	c.bytes = frame.rest()
	return c, frame.err
}

// compilerFailure says what a compiler ended of, or what it answered.
func (b *processes) compilerFailure(w *worker, err error) error {
	failure := asError(KindLost, err)
	if failure.Kind != KindLost && failure.Kind != KindMemory {
		return failure
	}
	w.discard()
	user, sys := w.unsaid()
	switch {
	case failure.Kind == KindMemory:
		refused := failf(KindUnloadable, "compiling the module takes more than %d bytes of memory, or than the machine had "+
			"free; split its largest functions, raise CompileMemory, or try again in %v", b.config.CompileMemory, memoryRefused)
		refused.Err = errCompilerMemory
		return refused
	case w.diedOf(syscall.SIGXCPU), user+sys >= b.config.CompileTimeout:
		return failf(KindUnloadable, "compiling the module takes more than %v of processor time; split its largest "+
			"functions, or raise CompileTimeout", b.config.CompileTimeout)
	}
	return failure
}

// takePlace waits for a place to compile in, until leave is called. A compiler
// that takes long moves on to a place of the slow, if there is one.
func (b *processes) takePlace(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	var mu sync.Mutex
	moving := time.AfterFunc(b.quick, func() {
		mu.Lock()
		defer mu.Unlock()
		if places == nil {
			return
		}
		select {
		case b.slow <- struct{}{}:
			<-places
			places = b.slow
		default:
		}
	})
	return func() {
		moving.Stop()
		mu.Lock()
		defer mu.Unlock()
		<-places
		places = nil
	}, nil
}

func (b *processes) startCompiler(ctx context.Context) (*worker, error) {
	w, err := startWorker(b.starter, 1, maxCode+frameSlack)
	if err != nil {
		return nil, err
	}
	return w, b.setUp(ctx, w, &settings{
		limits: b.config.limits(), compileTime: b.config.CompileTimeout, compileMemory: b.config.CompileMemory,
	})
}

// settings are what a child must know before it can do anything.
type settings struct {
	limits limits
	// compileTime and compileMemory are set for a compiler.
	compileTime   time.Duration
	compileMemory int64
}

func (s *settings) compiler() bool { return s.compileTime > 0 }

func (s *settings) encode() []byte {
	return appendNumbers(nil, s.limits.maxModuleSize, s.limits.maxInput, s.limits.maxOutput, s.limits.stderrTail,
		int64(s.compileTime), s.compileMemory)
}

func decodeSettings(from []byte) (*settings, error) {
	frame := &content{bytes: bytes.Clone(from)}
	s := &settings{}
	s.limits = limits{
		maxModuleSize: int64(frame.number()), maxInput: int64(frame.number()),
		maxOutput: int64(frame.number()), stderrTail: int64(frame.number()),
	}
	s.compileTime, s.compileMemory = time.Duration(frame.number()), int64(frame.number())
	return s, frame.err
}

// limitCompiler bounds this process as its settings say.
func limitCompiler(s *settings) error {
	seconds := uint64((s.compileTime + time.Second - 1) / time.Second)
	limit := &syscall.Rlimit{Cur: seconds, Max: seconds + 1}
	return errors.Join(syscall.Setrlimit(syscall.RLIMIT_CPU, limit), limitMemory(uint64(s.compileMemory)))
}

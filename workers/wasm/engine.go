package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// limits bound what an engine takes and gives.
type limits struct {
	maxModuleSize int64
	maxInput      int64
	maxOutput     int64
	stderrTail    int64
}

// engine compiles modules and runs calls of them, in its own process. Its
// methods may be called from many goroutines.
type engine struct {
	limits   limits
	workers  int // that compile one module
	exchange *codeExchange
	cacheDir string // or empty
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	host     map[string]api.FunctionDefinition
	instance wazero.ModuleConfig // what all instances have in common
	memories memories
	blank    wazero.CompiledModule // of blankModule

	mu      sync.Mutex
	waiting *lru[*instance] // for the next calls of their programs, by the names of these; under mu
	loaded  atomic.Uint64   // programs so far
}

// program is a compiled module.
type program struct {
	module    wazero.CompiledModule
	exports   map[string]api.FunctionDefinition
	minMemory uint64
	name      string // that no other of the engine has
	snapshot  bool   // it declares that calls may begin from one
	asks      bool   // it imports from hostModule
}

// result is how a call ended: kind and message are empty if it went well.
type result struct {
	kind, message   string
	exitCode        int
	stdout, stderr  []byte
	streamed        int64
	stderrTruncated bool
	duration        time.Duration
	peak            uint64
	cpuUser, cpuSys time.Duration // 0 where they are not known
}

// newEngine makes an engine that keeps compiled code in memory or, unless that is
// empty, in a directory. With stoppable set its code looks at the context of the
// call in every loop.
func newEngine(ctx context.Context, limits limits, cacheDir string, stoppable bool, workers int) (*engine, error) {
	e := &engine{limits: limits, cacheDir: cacheDir, workers: workers, cache: wazero.NewCompilationCache()}
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("wasm: directory for compiled code: %w", err)
		}
		e.cache = cache
	}
	return e.start(ctx, stoppable)
}

// newExchangeEngine makes an engine that takes and leaves compiled code by way of
// its exchange, and whose code can't be stopped.
func newExchangeEngine(ctx context.Context, limits limits, workers int) (*engine, error) {
	e := &engine{limits: limits, workers: workers, exchange: &codeExchange{}}
	var err error
	if e.cache, err = newExchangeCache(e.exchange); err != nil {
		return nil, err
	}
	return e.start(ctx, false)
}

func (e *engine) start(ctx context.Context, stoppable bool) (*engine, error) {
	e.waiting = newLRU[*instance](waitingMemory)
	e.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithCompilationCache(e.cache).
		WithCloseOnContextDone(stoppable).
		WithDebugInfoEnabled(false))
	if err := e.instantiateHost(ctx); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	e.instance = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithSysWalltime().WithSysNanotime()
	if err := e.compileBlank(ctx); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	return e, nil
}

// instantiateHost provides WASI. Renumbering of descriptors is left out: it
// would let a function have the host allocate a table of any size.
func (e *engine) instantiateHost(ctx context.Context) error {
	builder := e.runtime.NewHostModuleBuilder(wasiModule)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	const notSupported = 58
	i32 := api.ValueTypeI32
	builder.NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = notSupported }),
		[]api.ValueType{i32, i32}, []api.ValueType{i32}).Export("fd_renumber")
	host, err := builder.Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("wasm: WASI for the functions: %w", err)
	}
	e.host = host.ExportedFunctionDefinitions()
	return e.instantiateAsking(ctx)
}

func (e *engine) close(ctx context.Context) error {
	e.mu.Lock()
	waiting := e.waiting.clear()
	e.mu.Unlock()
	for _, i := range waiting {
		e.discard(i)
	}
	err := errors.Join(e.runtime.Close(ctx), e.cache.Close(ctx))
	e.memories.close()
	return err
}

// load compiles a module that inspect has passed, or takes its code from the
// cache. Its context bounds nothing. Errors are *Error.
func (e *engine) load(ctx context.Context, checked []byte, minMemory uint64) (*program, error) {
	module, err := e.compileAgain(ctx, checked)
	if err != nil {
		return nil, e.unloaded(err)
	}
	p := &program{module: module, exports: module.ExportedFunctions(), minMemory: minMemory}
	for _, imported := range module.ImportedFunctions() {
		from, name, _ := imported.Import()
		p.asks = p.asks || from == hostModule
		host, ok := e.host[name]
		if !ok || !slices.Equal(host.ParamTypes(), imported.ParamTypes()) ||
			!slices.Equal(host.ResultTypes(), imported.ResultTypes()) {
			_ = module.Close(ctx)
			return nil, failf(KindUnloadable, "the module imports %q from %q with parameters or results "+
				"that it does not have there", name, from)
		}
	}
	p.name, p.snapshot = strconv.FormatUint(e.loaded.Add(1), 10), p.callable(snapshotMethod) == nil
	for name := range p.exports {
		if p.callable(name) == nil {
			return p, nil
		}
	}
	_ = module.Close(ctx)
	return nil, failf(KindUnloadable, "the module exports no function that can be called, such as _start: build it as a "+
		"command, for Go with GOOS=wasip1 GOARCH=wasm go build")
}

// unloaded says why a module is not loaded.
func (e *engine) unloaded(err error) *Error {
	switch {
	case isCacheError(err) && strings.Contains(err.Error(), syscall.ENOMEM.Error()):
		return failf(KindMemory, "there is no memory for the compiled form of the module")
	case errors.Is(err, errStale), e.exchange != nil && e.exchange.given != nil && isCacheError(err):
		return fail(kindStale, err)
	}
	return failf(KindUnloadable, "the module can't be compiled: %v", err)
}

// compileAgain compiles a module, and again if its code on disk is damaged or could not be stored.
func (e *engine) compileAgain(ctx context.Context, checked []byte) (wazero.CompiledModule, error) {
	module, err := e.compile(ctx, checked)
	if err != nil && e.cacheDir != "" && isCacheError(err) {
		err = errors.Join(err, e.emptyCache())
		if again, retryErr := e.compile(ctx, checked); retryErr == nil {
			module, err = again, nil
		}
	} else if errors.As(err, new(*fs.PathError)) {
		// Its code could not be stored, on a full disk for example, and is in memory.
		module, err = e.compile(ctx, checked)
	}
	return module, err
}

// drop frees what the engine has of a program that runs no more.
func (e *engine) drop(p *program) {
	e.mu.Lock()
	i, ok := e.waiting.take(p.name)
	e.mu.Unlock()
	if ok {
		e.discard(i)
	}
	_ = p.module.Close(context.Background())
}

// errCompilerPanic is a defect of the compiler, or of cached code that it read.
var errCompilerPanic = errors.New("the compiler failed")

func (e *engine) compile(ctx context.Context, checked []byte) (module wazero.CompiledModule, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("%w: %v", errCompilerPanic, recovered)
		}
	}()
	return e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, e.workers), checked)
}

// isCacheError reports whether a module failed to load because its compiled form
// on disk is damaged.
func isCacheError(err error) bool {
	return errors.Is(err, errCompilerPanic) || strings.HasPrefix(err.Error(), "compilationcache")
}

// emptyCache removes the compiled code on disk. Code that is loaded stays.
func (e *engine) emptyCache() error {
	files, err := filepath.Glob(filepath.Join(e.cacheDir, "wazero-*", "*"))
	for _, file := range files {
		err = errors.Join(err, os.RemoveAll(file))
	}
	return err
}

// run runs the call in an instance that holds nothing of others. The streams and the memory of the
// result are those of out.
func (e *engine) run(ctx context.Context, p *program, c *call, out *streams) (ran result) {
	if p.minMemory > c.memoryLimit {
		return result{kind: KindMemory, exitCode: -1, message: fmt.Sprintf("the module declares %d bytes of memory, "+
			"the limit is %d", p.minMemory, c.memoryLimit)}
	}
	if failure := p.callable(c.method); failure != nil {
		return result{kind: failure.Kind, exitCode: -1, message: failure.Message}
	}
	if p.asks {
		ctx = context.WithValue(ctx, askedBy{}, out)
	}
	i := e.take(p, c)
	began := time.Now()
	out.use(i.memory)
	exitCode, err := e.runInstance(ctx, p, i, c, out)
	out.use(nil)
	ran = result{exitCode: exitCode, duration: time.Since(began)}
	out.fill(&ran)
	ran.classify(ctx, err, out.overflow, i.memory.refused, c, e.limits)
	e.release(p, i)
	return ran
}

// callable returns why a method can't be called, or nil.
func (p *program) callable(method string) *Error {
	function, ok := p.exports[method]
	if !ok {
		names := make([]string, 0, len(p.exports))
		for name := range p.exports {
			names = append(names, name)
		}
		slices.Sort(names)
		return failf(KindUnloadable, "the module exports no function %q; it exports %.1000q", method, names)
	}
	results := function.ResultTypes()
	if len(function.ParamTypes()) > 0 || len(results) > 1 || len(results) == 1 && results[0] != api.ValueTypeI32 {
		return failf(KindUnloadable, "the function %q can't be called: it must take no parameters and return "+
			"nothing or one i32", method)
	}
	return nil
}

// runInstance returns the exit code and a nil error if the function ended by
// itself.
func (e *engine) runInstance(ctx context.Context, p *program, i *instance, c *call, out *streams,
) (exitCode int, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			exitCode, err = -1, fmt.Errorf("the engine failed: %v", recovered)
		}
		var exit *sys.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			exitCode, err = int(exit.ExitCode()), nil
		}
	}()
	if err := e.begin(ctx, p, i, c, out); err != nil {
		return -1, err
	}
	exitCode, err = i.call(ctx, c.method)
	i.returned = err == nil && ctx.Err() == nil // code that can be stopped may yet be closed for a context that is done
	return exitCode, err
}

func (e *engine) configure(ctx context.Context, c *call, out *streams) wazero.ModuleConfig {
	input := io.Reader(bytes.NewReader(c.stdin))
	if c.input != nil {
		input = c.input(ctx)
	}
	config := e.instance.
		WithArgs(append([]string{c.program}, c.args...)...).
		WithStdin(stdinReader{out, input}).
		WithStdout(stdoutWriter{out}).
		WithStderr(stderrWriter{out}).
		WithNanosleep(func(ns int64) { sleep(ctx, ns) }).
		WithRandSource(randomness{ctx})
	for i := 0; i < len(c.env); i += 2 {
		config = config.WithEnv(c.env[i], c.env[i+1])
	}
	return config
}

// sleep returns early when ctx is done; the code of the function then stops by
// itself.
func sleep(ctx context.Context, ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// randomness is the kernel's, in portions between which ctx is looked at.
type randomness struct{ ctx context.Context }

func (r randomness) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		leave()
	}
	return rand.Read(p[:min(len(p), mebibyte)])
}

const overflowMessage = "the function wrote more than %d bytes to its standard output; " +
	"have it write less, or store the data elsewhere and write where"

// classify sets kind and message by how the function ended.
func (r *result) classify(ctx context.Context, err error, overflow, refused bool, c *call, limits limits) {
	var failure *Error
	switch {
	case overflow:
		r.exitCode = -1
		r.kind = KindTooLarge
		r.message = fmt.Sprintf(overflowMessage, limits.maxOutput)
	case err == nil && r.exitCode == 0:
	case ctx.Err() != nil:
		r.endBy(ended(ctx))
	case refused:
		r.kind = KindMemory
		r.message = fmt.Sprintf("the function asked for more memory than its limit of %d bytes and failed",
			c.memoryLimit)
	case err == nil:
		r.kind = KindExit
		r.message = fmt.Sprintf("the function ended with exit code %d", uint32(r.exitCode&math.MaxUint32))
	case errors.As(err, &failure):
		r.kind, r.message = failure.Kind, failure.Message
	default:
		r.kind = KindPanic
		r.message = failf(KindPanic, "%s", trapText(err)).Message
	}
}

// endBy says that the function did not end by itself.
func (r *result) endBy(failure *Error) {
	r.kind, r.message, r.exitCode = failure.Kind, failure.Message, -1
	if r.kind == KindTooLarge {
		r.stdout = r.stdout[:min(len(r.stdout), maxKeptOnOverflow)]
	}
}

// trapText returns what the engine says of a trap, without what it says about
// itself.
func trapText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n\nGo runtime stack trace:")
	return text
}

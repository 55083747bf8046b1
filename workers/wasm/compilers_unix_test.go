//go:build unix

package wasm

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowToCompile is a small module whose compilation takes time and memory that
// grow with the product of its loops and its locals.
func slowToCompile(loops int) []byte {
	const locals = 40_000
	var body []byte
	for i := range loops {
		set := code([]byte{0x20}, unsigned(uint64(i%locals)), constant(1), []byte{0x6a, 0x21}, unsigned(uint64(i*7%locals)))
		body = append(body, code([]byte{0x03, 0x40}, set, constant(0), []byte{0x0d, 0, 0x0b})...)
	}
	return assembler{pages: 1, functions: []function{{export: "_start", locals: locals, body: body}}}.module()
}

// endlessToCompile takes an hour or so.
func endlessToCompile() []byte { return slowToCompile(100_000) }

func TestModulesTooSlowToCompile(t *testing.T) {
	t.Parallel()
	if raceDetector && testing.Short() && !long {
		t.Skip("compiles for seconds of processor time; not with -short and -race")
	}
	for _, test := range []struct {
		config Config
		says   string
		again  bool // a minute later
	}{
		{Config{CompileTimeout: time.Second}, "more than 1s of processor time", false},
		{Config{CompileMemory: 64 * mebibyte}, "more than 67108864 bytes of memory", true},
	} {
		if raceDetector && test.config.CompileMemory > 0 {
			continue // the detector ends a process that gets no memory in a way of its own
		}
		test.config.Isolation = IsolationProcess
		e := newExecutor(t, test.config)
		now := time.Now()
		e.backend.(*processes).now = func() time.Time { return now }
		failure := requireKind(t, KindUnloadable, e.Check(context.Background(), "slow", endlessToCompile()))
		require.Contains(t, failure.Message, test.says)
		_, err := e.Run(context.Background(), of("the same by another name", endlessToCompile()))
		require.Same(t, failure, requireKind(t, KindUnloadable, err), "it is not tried again")
		stillWorks(t, e)

		now = now.Add(memoryRefused - time.Nanosecond)
		require.Same(t, failure, requireKind(t, KindUnloadable, e.Check(context.Background(), "slow", endlessToCompile())))
		now = now.Add(time.Nanosecond)
		later := requireKind(t, KindUnloadable, e.Check(context.Background(), "slow", endlessToCompile()))
		require.Equal(t, test.again, later != failure, "whether it is tried again")
	}
}

// TestSlowModulesKeepNobodyFromCompiling compiles beside modules that don't come
// to an end, in places of which there is one each.
func TestSlowModulesKeepNobodyFromCompiling(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1, Compilers: 1, CacheDir: t.TempDir()})
	pool := e.backend.(*processes)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	checking := make(chan error, 1)
	go func() { checking <- e.Check(ctx, "slow", endlessToCompile()) }()
	require.Eventually(t, func() bool { return len(pool.checks) == 1 }, time.Minute, time.Millisecond)
	stillWorks(t, e) // it compiles in the place of calls
	require.Empty(t, checking)

	// A call whose module is compiled takes no place of other calls.
	pool.quick = time.Millisecond
	running := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, of("slow to run", slowToCompile(100_001)))
		running <- err
	}()
	require.Eventually(t, func() bool { return len(pool.slow) == 1 }, time.Minute, time.Millisecond)
	stillWorks(t, e)
	_, err := e.Run(context.Background(), of("new", printing(1, 1, "new")))
	require.NoError(t, err, "the slow one has left its place")
	require.Empty(t, running)

	// Callers wait as long as they want, whatever loading may take.
	waiting, stop := context.WithTimeout(context.Background(), shortly)
	defer stop()
	requireKind(t, KindTimeout, e.Check(waiting, "waits", printing(1, 1, "waits")))
	cancel()
	requireKind(t, KindCancelled, <-checking)
	requireKind(t, KindCancelled, <-running)
	require.NoError(t, e.Check(context.Background(), "waits", printing(1, 1, "waits")))
	require.Empty(t, pool.checks)
	require.Empty(t, pool.runs)
	require.Empty(t, pool.slow)
}

// TestOneCompilationForAll has many callers ask for the same module, one of whom
// gives up.
func TestOneCompilationForAll(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 4, CacheDir: t.TempDir()})
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	module := slowToCompile(30)
	go func() { first <- e.Check(ctx, "one", module) }()
	pool := e.backend.(*processes)
	require.Eventually(t, func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return len(pool.flights) == 1
	}, time.Minute, time.Millisecond)
	others := make(chan error, 8)
	for range cap(others) {
		go func() {
			_, err := e.Run(context.Background(), of("one", module))
			others <- err
		}()
	}
	cancel()
	if err := <-first; err != nil {
		requireKind(t, KindCancelled, err)
	}
	for range cap(others) {
		require.NoError(t, <-others)
	}
}

// TestCodeThatIsTooLargeIsNotMadeAgain has a compiler say so once.
func TestCodeThatIsTooLargeIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	b := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1}).backend.(*processes)
	sum := sha256.Sum256(nil)
	f, mine, err := b.board(sum)
	require.NoError(t, err)
	require.True(t, mine)
	f.err = failf(KindTooLarge, "the module's compiled form has too many bytes")
	b.land(sum, f)
	_, _, err = b.board(sum)
	require.Same(t, f.err, requireKind(t, KindTooLarge, err))
}

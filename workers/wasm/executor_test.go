package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
	"github.com/futura-run/futura/internal/trust"
)

// echoes returns an executor, and an invocation of the example that prints what it
// is given.
func echoes(t *testing.T) (*Executor, Invocation) {
	skipSlowCompile(t)
	module := goFunction(t, examples+"echo")
	return newExecutor(t, Config{Isolation: IsolationProcess}), of("echo", module)
}

func TestFunctionGetsItsInvocation(t *testing.T) {
	t.Parallel()
	e, inv := echoes(t)
	inv.Args = []string{"first", "", "two words", "ünï"}
	inv.Env = map[string]string{"B": "2", "A": "1=1", "EMPTY": ""}
	inv.Stdin = []byte("from\x00stdin")
	out, err := e.Run(context.Background(), inv)
	require.NoError(t, err)
	require.Equal(t, `arg "first"`+"\n"+`arg ""`+"\n"+`arg "two words"`+"\n"+`arg "ünï"`+"\n"+
		`env "A=1=1"`+"\n"+`env "B=2"`+"\n"+`env "EMPTY="`+"\nfrom\x00stdin", string(out.Stdout))
	require.Empty(t, out.Stderr)
	require.Zero(t, out.ExitCode)
	require.Positive(t, out.Duration)
	require.GreaterOrEqual(t, out.PeakMemory, int64(mebibyte))

	inv.Args = []string{"exit=7", "x"}
	inv.Env, inv.Stdin = nil, nil
	out, err = e.Run(context.Background(), inv)
	requireKind(t, KindExit, err)
	require.Equal(t, 7, out.ExitCode)
	require.Equal(t, `arg "x"`+"\n", string(out.Stdout))
	require.Equal(t, "echo: asked to end with 7\n", string(out.Stderr))
}

func TestCountlinesCountsAsItsPackageDoes(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	module := goFunction(t, examples+"countlines")
	e := newExecutor(t, Config{Isolation: IsolationProcess})
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range sources {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		inv := of("countlines", module)
		inv.Stdin = text
		out, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		require.Equal(t, string(summary.Of(text).JSON())+"\n", string(out.Stdout), path)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	// "_initialize" stores what the others return as their exit code.
	a := assembler{pages: 1, functions: []function{
		{export: "_initialize", body: code(constant(0), constant(5), store32)},
		{export: "stored", results: 1, body: code(constant(0), load32)},
		{export: "nothing"},
		{export: "two", results: 2, body: code(constant(0), constant(0))},
		{export: "zero", results: 1, body: constant(0)},
	}}
	module := a.module()
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		for method, want := range map[string]string{
			"stored": KindExit, "nothing": "", "zero": "", "_initialize": "",
			"two": KindUnloadable, "": KindUnloadable, "memory": KindUnloadable, "missing": KindUnloadable,
		} {
			inv := of("methods", module)
			inv.Method = method
			out, err := e.Run(context.Background(), inv)
			if want == "" {
				require.NoError(t, err, method)
				require.Zero(t, out.ExitCode)
				continue
			}
			failure := requireKind(t, want, err)
			if method == "stored" {
				require.Equal(t, 5, out.ExitCode)
			}
			if method == "missing" {
				require.Contains(t, failure.Message, `"nothing"`, "the exports are named")
			}
		}
	})
}

func TestCallsShareNothing(t *testing.T) {
	t.Parallel()
	// Ends with the number that the memory holds, and changes all of it before.
	for _, pages := range []int{1, 40} {
		dirty := assembler{pages: pages, functions: []function{{export: "_start", results: 1, locals: 1, body: code(
			constant(0), load32, constant(int32(pages*65536-4)), load32, []byte{0x6a},
			constant(0), constant(1), store32, constant(int32(pages*65536-4)), constant(1), store32,
		)}}}
		inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
			for range 5 {
				_, err := e.Run(context.Background(), of("dirty", dirty.module()))
				require.NoError(t, err)
			}
		})
	}
}

// TestCallsThatFailLeaveNothing has a module write all over a memory that it grew, and fail, before another one reads.
func TestCallsThatFailLeaveNothing(t *testing.T) {
	t.Parallel()
	const pages = 300 // more than is cleared by hand on Linux
	grow := code(constant(pages-1), growMemory, drop)
	places := []int32{8, 65536, 70_000, 5 * mebibyte, 16*mebibyte - 4, 16 * mebibyte, pages*65536 - 4}
	var write, read []byte
	for _, at := range places {
		write = append(write, code(constant(at), constant(1), store32)...)
		read = append(read, code(constant(at), load32, []byte{0x6a})...)
	}
	body := func(results int, body ...[]byte) []byte {
		return assembler{pages: 1, functions: []function{{export: "_start", results: results, body: code(body...)}}}.module()
	}
	writer, reader := body(0, grow, write, unreachable), body(1, grow, constant(0), read)
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		for range 20 {
			_, err := e.Run(context.Background(), of("writer", writer))
			requireKind(t, KindPanic, err)
			_, err = e.Run(context.Background(), of("reader", reader))
			require.NoError(t, err)
		}
	})
}

func TestManyCallsAtATime(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 3, LoadedModules: 2}, func(t *testing.T, e *Executor) {
		var group sync.WaitGroup
		var loads atomic.Int64
		for i := range 8 {
			group.Go(func() {
				for range 20 {
					n := (i + rand.IntN(3)) % 5
					want := fmt.Sprintf("module %d", n)
					inv := Invocation{CID: want, Module: func(context.Context) ([]byte, error) {
						loads.Add(1)
						return printing(1, 1, want), nil
					}}
					out, err := e.Run(context.Background(), inv)
					if err != nil || string(out.Stdout) != want {
						t.Errorf("%q: %v", out.Stdout, err)
					}
				}
			})
		}
		group.Wait()
		require.Less(t, loads.Load(), int64(160), "modules are kept")
	})
}

func TestLargeInputAndOutput(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	module := goFunction(t, "./testdata/guest")
	input := make([]byte, 5*mebibyte+3)
	for i := range input {
		input[i] = byte(i * i >> 8)
	}
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		inv := of("guest", module)
		inv.Args = []string{"copy"}
		for _, size := range []int{0, 1, 65530, 70000, len(input)} {
			inv.Stdin = input[:size]
			out, err := e.Run(context.Background(), inv)
			require.NoError(t, err)
			require.True(t, bytes.Equal(inv.Stdin, out.Stdout), size)
		}
	})
}

func TestInvocationsThatCannotBe(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{MaxInput: 1000}, func(t *testing.T, e *Executor) {
		good := of("good", smallLoop(1))
		for name, bad := range map[string]struct {
			change func(*Invocation)
			kind   string
		}{
			"no module named": {func(i *Invocation) { i.CID = "" }, KindError},
			"no way to load":  {func(i *Invocation) { i.Module = nil }, KindError},
			"zero in argument": {
				func(i *Invocation) { i.Args = []string{"a\x00b"} }, KindError},
			"name with sign": {
				func(i *Invocation) { i.Env = map[string]string{"a=b": ""} }, KindError},
			"huge input": {func(i *Invocation) { i.Stdin = make([]byte, 1001) }, KindTooLarge},
			"many arguments": {
				func(i *Invocation) { i.Args = make([]string, 1000) }, KindTooLarge},
			"huge environment": {
				func(i *Invocation) { i.Env = map[string]string{"A": strings.Repeat("a", 1000)} }, KindTooLarge},
		} {
			inv := good
			bad.change(&inv)
			_, err := e.Run(context.Background(), inv)
			requireKind(t, bad.kind, err)
			require.NotEmpty(t, name)
		}
		lost := errors.New("the store is away")
		_, err := e.Run(context.Background(), Invocation{
			CID: "x", Module: func(context.Context) ([]byte, error) { return nil, lost }})
		requireKind(t, KindError, err)
		require.ErrorIs(t, err, lost)
		stillWorks(t, e)
	})
}

func TestHugeArgumentsArrive(t *testing.T) {
	t.Parallel()
	e, inv := echoes(t)
	for i := range 20_000 {
		inv.Args = append(inv.Args, fmt.Sprint("argument ", i))
	}
	out, err := e.Run(context.Background(), inv)
	require.NoError(t, err)
	require.Equal(t, 20_000, bytes.Count(out.Stdout, []byte("\n")))
	require.True(t, bytes.HasSuffix(out.Stdout, []byte("arg \"argument 19999\"\n")))
}

func TestCompiledCodeOutlivesTheExecutor(t *testing.T) {
	t.Parallel()
	for _, isolation := range []Isolation{IsolationProcess, IsolationInProcess} {
		dir := t.TempDir()
		run := func() {
			e := newExecutor(t, Config{Isolation: isolation, CacheDir: dir})
			require.NoError(t, e.Check(context.Background(), "good", printing(1, 1, "good")))
			stillWorks(t, e)
		}
		files := func() (found []string) {
			found, err := filepath.Glob(filepath.Join(dir, "*-*", "*"))
			require.NoError(t, err)
			return found
		}
		newExecutor(t, Config{Isolation: isolation, CacheDir: dir})
		own := len(files())
		run()
		first := files()
		require.Len(t, first, own+1)
		for _, path := range first {
			before, err := os.Stat(path)
			require.NoError(t, err)
			run()
			after, err := os.Stat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after), "nothing was compiled anew")

			compiled, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, damaged := range [][]byte{nil, compiled[:len(compiled)/2], bytes.Repeat([]byte{0xff}, 4000)} {
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
				run()
			}
		}
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{
		{Isolation: "jail"}, {MemoryLimit: -1}, {MemoryLimit: maxLinearMemory + 1}, {MaxOutput: -1},
	} {
		_, err := New(context.Background(), config)
		require.Error(t, err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		began := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			inv := Invocation{CID: "endless", Module: func(context.Context) ([]byte, error) {
				close(began)
				return starting(1, endless()).module(), nil
			}}
			_, err := e.Run(context.Background(), inv)
			ended <- err
		}()
		<-began
		over, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, e.Close(over))
		err := <-ended
		requireKind(t, KindCancelled, err)
		require.ErrorContains(t, err, ErrClosed.Error())
		_, err = e.Run(context.Background(), of("good", smallLoop(1)))
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, e.Check(context.Background(), "good", smallLoop(1)), ErrClosed)
	})
}

// TestCallsThatCloseEndsSayWhy closes an executor whose function runs.
func TestCallsThatCloseEndsSayWhy(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		over, cancel := context.WithCancel(t.Context())
		closed := make(chan error, 1)
		inv := of("asking", asks(1, "name", get("name"), drop, endless()))
		inv.Host = func(context.Context, string, string, []byte) ([]byte, bool, error) {
			cancel()
			go func() { closed <- e.Close(over) }()
			return nil, false, nil
		}
		_, err := e.Run(context.Background(), inv)
		requireKind(t, KindCancelled, err)
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, <-closed)
	})
}

func TestCachesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	for _, isolation := range []Isolation{IsolationProcess, IsolationInProcess} {
		e, err := New(context.Background(), Config{Isolation: isolation, CacheDir: dir})
		require.NoError(t, err)
		require.NoError(t, e.Close(context.Background()))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, info.Mode())
		require.NoError(t, os.Chmod(dir, 0o777))
		_, err = New(context.Background(), Config{Isolation: isolation, CacheDir: dir})
		require.ErrorIs(t, err, trust.ErrExposed)
		require.ErrorContains(t, err, "chmod go-w "+dir)
		require.NoError(t, os.Chmod(dir, 0o700))
	}
}

// TestAModuleWhoseFetchPanicsKeepsNoneOut has the caller recover, as a worker does.
func TestAModuleWhoseFetchPanicsKeepsNoneOut(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		require.PanicsWithValue(t, "no such module", func() {
			_, _ = e.Run(t.Context(), Invocation{CID: "panics",
				Module: func(context.Context) ([]byte, error) { panic("no such module") }})
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := e.Run(ctx, of("good", printing(1, 1, "good")))
		require.NoError(t, err)
	})
}

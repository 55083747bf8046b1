package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// bareRuntime runs a module with wazero alone, each call in a fresh
// instance. Only a stoppable one can end a function that loops.
func bareRuntime(b *testing.B, module, stdin []byte, stoppable bool) func() {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(testDir, "cache-bare"))
	require.NoError(b, err)
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCompilationCache(cache).WithCloseOnContextDone(stoppable).WithDebugInfoEnabled(false).
		WithMemoryLimitPages(256*mebibyte/65536))
	b.Cleanup(func() { require.NoError(b, runtime.Close(ctx)) })
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	compiled, err := runtime.CompileModule(ctx, module)
	require.NoError(b, err)
	return func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		var stdout, stderr bytes.Buffer
		instance, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").
			WithArgs("function").WithStdin(bytes.NewReader(stdin)).WithStdout(&stdout).WithStderr(&stderr).
			WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader))
		if instance != nil {
			_ = instance.Close(ctx)
		}
		if err != nil {
			b.Error(err)
		}
	}
}

func benchmarked(b *testing.B, isolation Isolation, name string, module, stdin []byte) func() {
	e := newExecutor(b, Config{Isolation: isolation})
	inv := of(name, module)
	inv.Stdin = stdin
	return func() {
		if _, err := e.Run(context.Background(), inv); err != nil {
			b.Error(err)
		}
	}
}

// ownEngine runs a module as a child does, without a child.
func ownEngine(b *testing.B, name string, module, stdin []byte) func() {
	ctx := context.Background()
	config, err := Config{}.withDefaults()
	require.NoError(b, err)
	e, err := newEngine(ctx, config.limits(), filepath.Join(testDir, "cache-bare"), false, 1)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.close(ctx)) })
	checked, minMemory, err := inspect(module, config.MaxModuleSize)
	require.NoError(b, err)
	p, err := e.load(ctx, checked, minMemory)
	require.NoError(b, err)
	c, err := config.newCall(&Invocation{CID: name, Stdin: stdin})
	require.NoError(b, err)
	return func() {
		if ran := e.run(ctx, p, c, newStreams(ctx, config.limits(), nil, nil)); ran.kind != "" {
			b.Error(ran.message)
		}
	}
}

// BenchmarkBegin is one call after the other in a process: of a function from its start, of a method that begins
// anew, since it has an environment, and of one that begins from a snapshot. The processor time is that of the process.
func BenchmarkBegin(b *testing.B) {
	source, err := os.ReadFile("module.go")
	require.NoError(b, err)
	command := of("command", goFunction(b, examples+"countlines"))
	methods := of("methods", goMethods(b, examples+"countlines"))
	methods.Method = "summarize"
	anew := methods
	anew.Env = map[string]string{"A": "1"}
	for _, mode := range []struct {
		name string
		inv  Invocation
	}{{"start", command}, {"method", anew}, {"snapshot", methods}} {
		for _, input := range [][]byte{nil, source} {
			b.Run(fmt.Sprintf("%s/%d-bytes", mode.name, len(input)), func(b *testing.B) {
				e := newExecutor(b, Config{Isolation: IsolationProcess, PoolSize: 1})
				mode.inv.Stdin = input
				var spent time.Duration
				for b.Loop() {
					out, err := e.Run(context.Background(), mode.inv)
					require.NoError(b, err)
					spent += out.CPUUser + out.CPUSys
				}
				b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-us/op")
			})
		}
	}
}

type contender struct {
	name string
	make func(b *testing.B, name string, module, stdin []byte) func()
}

var contenders = []contender{
	{"bare", func(b *testing.B, _ string, module, stdin []byte) func() { return bareRuntime(b, module, stdin, false) }},
	{"bare-stoppable", func(b *testing.B, _ string, module, stdin []byte) func() {
		return bareRuntime(b, module, stdin, true)
	}},
	{"engine", ownEngine},
	{"process", func(b *testing.B, name string, module, stdin []byte) func() {
		return benchmarked(b, IsolationProcess, name, module, stdin)
	}},
	{"inprocess", func(b *testing.B, name string, module, stdin []byte) func() {
		return benchmarked(b, IsolationInProcess, name, module, stdin)
	}},
}

type subject struct {
	name          string
	module, stdin []byte
}

func subjects(b *testing.B) []subject {
	source, err := os.ReadFile("module.go")
	require.NoError(b, err)
	list := []subject{{name: "countlines", module: goFunction(b, examples+"countlines"), stdin: source}}
	for _, turns := range []int32{1, 300_000, 1_000_000} {
		list = append(list, subject{name: "loop-" + strconv.Itoa(int(turns)), module: smallLoop(turns)})
	}
	return list
}

// BenchmarkRun is one call after the other, each in a fresh instance: by wazero
// alone, which cannot or can end a function, by the engine of this package in
// the form that cannot, and by an executor.
func BenchmarkRun(b *testing.B) {
	eachContender(b, func(b *testing.B, run func()) {
		for b.Loop() {
			run()
		}
	})
}

// BenchmarkRunParallel is as many calls at a time as there are processors.
func BenchmarkRunParallel(b *testing.B) {
	eachContender(b, func(b *testing.B, run func()) {
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				run()
			}
		})
	})
}

// eachContender measures each contender on each subject, after a first call.
func eachContender(b *testing.B, measure func(b *testing.B, run func())) {
	for _, s := range subjects(b) {
		for _, c := range contenders {
			b.Run(s.name+"/"+c.name, func(b *testing.B) {
				run := c.make(b, s.name, s.module, s.stdin)
				run()
				measure(b, run)
			})
		}
	}
}

// BenchmarkRatio takes turns between the contenders in short rounds, so that
// all see the same machine, and reports the median of the ratio of each to
// wazero alone that cannot end a function.
func BenchmarkRatio(b *testing.B) {
	const rounds, roundTime = 61, 20 * time.Millisecond
	for _, s := range subjects(b) {
		b.Run(s.name, func(b *testing.B) {
			runs := make([]func(), len(contenders))
			for i, c := range contenders {
				runs[i] = c.make(b, s.name, s.module, s.stdin)
				perCall(runs[i], roundTime)
			}
			ratios := make([][]float64, len(contenders))
			var bare []float64
			for range rounds {
				times := make([]float64, len(contenders))
				for i, run := range runs {
					times[i] = perCall(run, roundTime)
				}
				bare = append(bare, times[0])
				for i := range times {
					ratios[i] = append(ratios[i], times[i]/times[0])
				}
			}
			for i, c := range contenders[1:] {
				b.ReportMetric(median(ratios[i+1]), c.name+"/bare")
			}
			b.ReportMetric(median(bare)*1e6, "bare-us/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// perCall returns the seconds that a call takes.
func perCall(run func(), spend time.Duration) float64 {
	began, calls := time.Now(), 0
	for time.Since(began) < spend || calls < 3 {
		run()
		calls++
	}
	return time.Since(began).Seconds() / float64(calls)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

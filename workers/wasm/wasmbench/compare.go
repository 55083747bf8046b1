package wasmbench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/futura-run/futura/workers/wasm"
)

// Options of Compare. The zero value works.
type Options struct {
	// Turns is how often each contender gets its turn. Defaults to 101.
	Turns int
	// Turn is how long a turn takes. Defaults to 20 ms.
	Turn time.Duration
	// CallTime is about how long the function runs where nothing can stop it.
	// Defaults to 300 µs.
	CallTime time.Duration
	// Plain is called before anything runs without the executor, and end after
	// it, so that a caller can leave it out of what it measures. Defaults to none.
	Plain func() (end func())
}

// Comparison is the outcome of Compare. Ratios are medians over the turns, each
// of the mean times within one turn.
type Comparison struct {
	// Calls is how many calls the executor ran, and Isolation where.
	Calls     int
	Isolation wasm.Isolation
	// Executor are the times of the executor's calls, sorted.
	Executor []time.Duration
	// Stoppable and Unstoppable are the median times of a call by wazero alone.
	Stoppable, Unstoppable time.Duration
	// ToStoppable is the executor's time over that of wazero alone with a check
	// in every loop, ToUnstoppable the same over wazero alone without checks.
	ToStoppable, ToUnstoppable float64
}

const (
	memoryLimit = 64 << 20
	timeout     = 5 * time.Minute
)

// contender runs the function once and returns its output.
type contender func(ctx context.Context) ([]byte, error)

// Compare takes turns between the contenders in short rounds, so that all see
// the same machine. All have the same limits of memory and time and the same
// input, and every output is compared with what it must be. It fails when ctx
// ends, when an executor can't be started, and when an output is wrong.
func Compare(ctx context.Context, o Options) (c Comparison, err error) {
	if o.Turns <= 0 {
		o.Turns = 101
	}
	if o.Turn <= 0 {
		o.Turn = 20 * time.Millisecond
	}
	if o.CallTime <= 0 {
		o.CallTime = 300 * time.Microsecond
	}
	if o.Plain == nil {
		o.Plain = func() func() { return func() {} }
	}
	input := make([]byte, inputSize)
	if _, err := rand.Read(input); err != nil {
		return c, err
	}
	end := o.Plain()
	rounds, err := calibrate(ctx, input, o.CallTime)
	end()
	if err != nil {
		return c, err
	}
	executor, err := wasm.New(ctx, wasm.Config{PoolSize: 1, MemoryLimit: memoryLimit, DefaultTimeout: timeout})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, executor.Close(context.WithoutCancel(ctx))) }()
	contenders := []contender{byExecutor(executor, module(rounds), input)}
	for _, stoppable := range []bool{true, false} {
		bare, end, err := byWazero(ctx, module(rounds), input, stoppable)
		if err != nil {
			return c, err
		}
		defer end()
		contenders = append(contenders, bare)
	}
	c.Isolation = executor.Isolation()
	return c, c.take(ctx, o, contenders, expected(input, rounds))
}

// take runs the turns; the executor is the first contender, then wazero that can
// be stopped, then wazero that can't.
func (c *Comparison) take(ctx context.Context, o Options, contenders []contender, want []byte) error {
	for _, run := range contenders {
		if _, err := turn(ctx, run, want, 0); err != nil {
			return err
		}
	}
	times := make([][]time.Duration, len(contenders))
	var toStoppable, toUnstoppable []float64
	for range o.Turns {
		means := make([]float64, len(contenders))
		for i, run := range contenders {
			end := func() {}
			if i > 0 {
				end = o.Plain()
			}
			calls, err := turn(ctx, run, want, o.Turn)
			end()
			if err != nil {
				return err
			}
			for _, t := range calls {
				means[i] += t.Seconds() / float64(len(calls))
			}
			times[i] = append(times[i], calls...)
		}
		toStoppable = append(toStoppable, means[0]/means[1])
		toUnstoppable = append(toUnstoppable, means[0]/means[2])
	}
	for i := range times {
		slices.Sort(times[i])
	}
	c.Executor, c.Calls = times[0], len(times[0])
	c.Stoppable, c.Unstoppable = median(times[1]), median(times[2])
	slices.Sort(toStoppable)
	slices.Sort(toUnstoppable)
	c.ToStoppable, c.ToUnstoppable = median(toStoppable), median(toUnstoppable)
	return nil
}

func median[T any](sorted []T) T { return sorted[len(sorted)/2] }

// turn calls run as long as the turn lasts, at least once.
func turn(ctx context.Context, run contender, want []byte, spend time.Duration) (calls []time.Duration, err error) {
	for began := time.Now(); len(calls) == 0 || time.Since(began) < spend; {
		start := time.Now()
		got, err := run(ctx)
		calls = append(calls, time.Since(start))
		switch {
		case err != nil:
			return nil, err
		case !bytes.Equal(got, want):
			return nil, fmt.Errorf("wasmbench: the function returned %x instead of %x", got, want)
		}
	}
	return calls, ctx.Err()
}

// calibrate finds how many rounds take about the time.
func calibrate(ctx context.Context, input []byte, aim time.Duration) (rounds int, err error) {
	const probe = 16
	run, end, err := byWazero(ctx, module(probe), input, false)
	if err != nil {
		return 0, err
	}
	defer end()
	best := time.Hour
	for range 50 {
		calls, err := turn(ctx, run, expected(input, probe), 0)
		if err != nil {
			return 0, err
		}
		best = min(best, calls[0])
	}
	return max(1, int(probe*aim/best)), nil
}

func byExecutor(e *wasm.Executor, module, input []byte) contender {
	call := wasm.Invocation{
		CID: "bench", Module: func(context.Context) ([]byte, error) { return module, nil }, Stdin: input,
	}
	return func(ctx context.Context) ([]byte, error) {
		out, err := e.Run(ctx, call)
		return out.Stdout, err
	}
}

// byWazero runs the module in this process, each call in a fresh instance.
func byWazero(ctx context.Context, module, input []byte, stoppable bool) (run contender, end func(), err error) {
	const page = 64 << 10
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithDebugInfoEnabled(false).
		WithCloseOnContextDone(stoppable).WithMemoryLimitPages(memoryLimit/page))
	end = func() { _ = runtime.Close(context.WithoutCancel(ctx)) }
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, runtime); err != nil {
		end()
		return nil, nil, err
	}
	compiled, err := runtime.CompileModule(ctx, module)
	if err != nil {
		end()
		return nil, nil, err
	}
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var stdout, stderr bytes.Buffer
		instance, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").
			WithArgs("function").WithStdin(bytes.NewReader(input)).WithStdout(&stdout).WithStderr(&stderr).
			WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader))
		if instance != nil {
			err = errors.Join(err, instance.Close(ctx))
		}
		return stdout.Bytes(), err
	}, end, nil
}

package wasm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// opened opens a store until the test ends.
func opened(t *testing.T, name string) kv.Database {
	t.Helper()
	db, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// durably runs modules on a worker with access to a store, until the test ends.
func durably(t *testing.T, db kv.Database, runner workers.ModuleRunner) *futures.Client {
	t.Helper()
	c, err := futures.New(t.Context(), db, futures.Options{Cluster: "steps"})
	require.NoError(t, err)
	w, err := workers.New(c, workers.Options{Slots: 1, Modules: runner})
	require.NoError(t, err)
	stop := storetest.Background(t, w.Run)
	t.Cleanup(func() {
		stop()
		require.NoError(t, c.Close(context.Background()))
	})
	<-w.Ready()
	return c
}

// stored stores a module and returns its function.
func stored(t testing.TB, c *futures.Client, module []byte) string {
	t.Helper()
	m, err := modules.Of(c.Cluster()).Put(context.Background(), module, "")
	require.NoError(t, err)
	return "wasm:" + m.CID
}

// blocks is a module with a step for each name. It fails once it has recorded one, so that each attempt records one
// more, and prints what they are.
func blocks(names ...string) []byte {
	a := starting(1, nil, asking()...)
	a.data = map[uint32]string{}
	var body []byte
	for i, name := range names {
		at, value := int32(2048+64*i), int32(4096+64*i)
		a.data[uint32(at)], a.data[uint32(value)] = name, fmt.Sprint("value ", i)
		named := code(constant(at), constant(int32(len(name))))
		body = code(body, named, callTo(stepGet), narrow, constant(0), []byte{0x48, 0x04, 0x40}, // less than 0: if
			named, constant(value), constant(7), callTo(stepPut), unreachable, []byte{0x0b},
			readTo(askedAnswer, 100), drop, passing(askingWrite, 1, askedAnswer, 7))
	}
	a.functions[0].body = body
	return a.module()
}

func stepsOf(t *testing.T, f *futures.Future, c *futures.Client) (names []string) {
	t.Helper()
	all, err := c.Steps(t.Context(), f.ID())
	require.NoError(t, err)
	for i := range all {
		require.Equal(t, i+1, all[i].Number)
		names = append(names, fmt.Sprint(all[i].Name, " ", all[i].Attempt, all[i].Origin))
	}
	return names
}

// TestAModuleGoesOnWhereAnAttemptWasCutOff has each attempt get what those before it have recorded, and forks begin
// with what was recorded before a step.
func TestAModuleGoesOnWhereAnAttemptWasCutOff(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		c := durably(t, opened(t, "memory:"), e)
		retries := 3
		task := futures.Task{Function: stored(t, c, blocks("block", "block", "end")), MaxRetries: &retries}
		task.Backoff.Base = time.Millisecond
		f, err := c.Submit(t.Context(), task)
		require.NoError(t, err)
		r, err := f.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, "value 0value 1value 2", string(r.Value))
		require.Equal(t, []string{"block 1", "block#2 2", "end 3"}, stepsOf(t, f, c))

		fork, err := c.Fork(t.Context(), f.ID(), futures.ForkOptions{From: futures.ForkFromStep("end"),
			Set: map[string]any{"block#2": "other"}})
		require.NoError(t, err)
		r, err = c.Future(fork.ID).Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, `value 0"other"value 2`, string(r.Value))
	})
}

// TestAStepOfAModuleWithAnUnknownResult is recorded once.
func TestAStepOfAModuleWithAnUnknownResult(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		faults := faultkv.Wrap(opened(t, "memory:"), faultkv.Options{})
		c := durably(t, faults, e)
		faults.FailNext(fault, func(tag string) bool { return tag == "futura-step" })
		retries := 1
		f, err := c.Submit(t.Context(), futures.Task{Function: stored(t, c, blocks("block")), MaxRetries: &retries,
			Backoff: layout.Backoff{Base: time.Millisecond}})
		require.NoError(t, err)
		r, err := f.Await(t.Context())
		require.NoError(t, err)
		faults.Flush()
		require.Equal(t, "value 0", string(r.Value))
		require.Equal(t, 1, faults.Counts().Injected[fault])
		require.Equal(t, []string{"block 1"}, stepsOf(t, f, c))
	}
}

// TestAModuleIsAMethodOfActors has the example counter called by its alias, with ends whose results are unknown.
func TestAModuleIsAMethodOfActors(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	faults := faultkv.Wrap(opened(t, "memory:"), faultkv.Options{})
	c := durably(t, faults, newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1}))
	_, err := modules.Of(c.Cluster()).Put(t.Context(), goFunction(t, examples+"counter"), "counter")
	require.NoError(t, err)
	sum := 0
	for n, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		for _, key := range []string{"visits", "visits", "other"} {
			if key == "visits" {
				sum += n + 1
				faults.FailNext(fault, func(tag string) bool { return tag == "futura-finish" })
			}
			f, err := c.CallActor(t.Context(), "counter", key, "wasm:counter", futures.Task{Args: fmt.Append(nil, n+1)})
			require.NoError(t, err)
			r, err := f.Await(t.Context())
			require.NoError(t, err)
			if key == "visits" {
				require.Equal(t, fmt.Sprintln(sum), string(r.Value))
			}
		}
		require.Equal(t, 2, faults.Counts().Injected[fault])
	}
	faults.Flush()
	for key, want := range map[string]string{"visits": "12", "other": "6"} {
		v, err := c.ActorState(t.Context(), "counter", key)
		require.NoError(t, err)
		text, isJSON := v.JSON()
		require.Equal(t, want+" true", fmt.Sprint(string(text), " ", isJSON))
	}
}

// noting is a runner that says which steps were recorded.
type noting struct {
	*Executor
	recorded func(name string)
}

// RunModule implements workers.ModuleRunner.
func (n noting) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	host := call.Host
	call.Host = func(ctx context.Context, function, name string, value []byte) ([]byte, bool, error) {
		answer, found, err := host(ctx, function, name, value)
		if function == "step_put" && err == nil {
			n.recorded(name)
		}
		return answer, found, err
	}
	return n.Executor.RunModule(ctx, call)
}

const (
	stepsDirVariable = "FUTURA_WASM_STEPS_DIR"
	primesBelow      = "4000000"
)

// stepsMain is a process whose worker runs modules, and prints which steps are recorded, until it is killed.
func stepsMain(dir string) int {
	err := func() error {
		ctx := context.Background()
		db, err := kvopen.Open(ctx, "embedded:"+dir, kvopen.Options{})
		if err != nil {
			return err
		}
		c, err := futures.New(ctx, db, futures.Options{Cluster: "steps"})
		if err != nil {
			return err
		}
		e, err := New(ctx, Config{PoolSize: 1, CacheDir: filepath.Join(dir, "code")})
		if err != nil {
			return err
		}
		w, err := workers.New(c, workers.Options{Slots: 1, Modules: noting{e, func(name string) { fmt.Println(name) }}})
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestAModuleOfAKilledProcessGoesOn kills the process of the worker between two steps. The function is that of the
// example primes.
func TestAModuleOfAKilledProcessGoesOn(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	dir := t.TempDir()
	module := goFunction(t, examples+"primes")
	db, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{})
	require.NoError(t, err)
	c, err := futures.New(t.Context(), db, futures.Options{Cluster: "steps"})
	require.NoError(t, err)
	f, err := c.Submit(t.Context(), futures.Task{Function: stored(t, c, module), Argv: []string{primesBelow}})
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, db.Close())

	child := exec.Command(os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), stepsDirVariable+"="+dir), os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	before := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if before[strings.TrimSpace(lines.Text())] = true; len(before) == 2 {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())

	after := map[string]bool{}
	c = durably(t, opened(t, "embedded:"+dir), noting{newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1}),
		func(name string) { after[name] = true }})
	r, err := c.Future(f.ID()).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "283146\n", string(r.Value))
	for name := range before {
		require.NotContains(t, after, name)
	}
	require.Len(t, stepsOf(t, f, c), 4)
}

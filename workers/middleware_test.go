package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// passages notes what passes through middleware.
type passages struct {
	mu  sync.Mutex
	all []string
}

func (p *passages) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, fmt.Sprintf(format, args...))
}

// by returns middleware that notes what goes in and comes out.
func (p *passages) by(name string) Middleware {
	return func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			info, _ := InfoFrom(ctx)
			p.note("%s before %s %d/%d %s", name, info.Function, info.Attempt, info.Attempts, args)
			value, err := next(ctx, args)
			p.note("%s after %s %s %v", name, info.Function, value, err)
			return value, err
		}
	}
}

// moduleFunc is a runner made of a function.
type moduleFunc func(ctx context.Context, call ModuleCall) (ModuleOutcome, error)

// RunModule implements ModuleRunner.
func (f moduleFunc) RunModule(ctx context.Context, call ModuleCall) (ModuleOutcome, error) {
	return f(ctx, call)
}

// TestMiddlewareIsAroundEveryCall, in its order, for Go functions and modules.
func TestMiddlewareIsAroundEveryCall(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	module := "wasm:" + code.CID
	seen := &passages{}
	modules := moduleFunc(func(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
		return ModuleOutcome{Stdout: bytes.ToUpper(call.Stdin)}, nil
	})
	b.start(Options{
		Slots: 1, Modules: modules, Middleware: []Middleware{seen.by("outer"), seen.by("inner")},
		FunctionMiddleware: map[string][]Middleware{"go:echo": {seen.by("own")}},
	}, map[string]Function{"echo": echo})
	with := func(s *fdbmodel.Submission) { s.Args = []byte("hello") }
	for _, function := range []string{"go:echo", module} {
		seen.all = nil
		id := b.one(function, with)
		b.awaitOver(id)
		require.Equal(t, layout.Realized, stateOf(b, id))
		result, names := "hello", []string{"outer", "inner", "own"}
		if function == module {
			result, names = "HELLO", names[:2]
		}
		var want []string
		for _, name := range names {
			want = append(want, fmt.Sprintf("%s before %s 1/1 hello", name, function))
		}
		for _, name := range slices.Backward(names) {
			want = append(want, fmt.Sprintf("%s after %s %s <nil>", name, function, result))
		}
		require.Equal(t, want, seen.all)
		require.Equal(t, result, string(b.row(id).Result.Value))
	}
}

// TestWhatMiddlewareChanges: arguments, results and errors, how often the
// function is called, and whether.
func TestWhatMiddlewareChanges(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	module := "wasm:" + code.CID
	flaky := errors.New("flaky")
	wrap := func(f func(next Call, ctx context.Context, args []byte) ([]byte, error)) []Middleware {
		return []Middleware{func(next Call) Call {
			return func(ctx context.Context, args []byte) ([]byte, error) { return f(next, ctx, args) }
		}}
	}
	twice := wrap(func(next Call, ctx context.Context, args []byte) ([]byte, error) {
		if _, err := next(ctx, []byte("first")); err == nil {
			return nil, errors.New("the first call should fail")
		}
		return next(ctx, args)
	})
	fails := func(_ context.Context, args []byte) ([]byte, error) { return args, flaky }
	onceFails := func(ctx context.Context, args []byte) ([]byte, error) {
		w, err := ResultWriter(ctx)
		if err == nil {
			_, err = w.Write(append([]byte("written "), args...))
		}
		if string(args) == "first" {
			err = flaky
		}
		return nil, err
	}
	halfway := func(ctx context.Context, _ []byte) ([]byte, error) { return onceFails(ctx, []byte("first")) }
	modules := moduleFunc(func(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
		if string(call.Stdin) == "first" || call.Method == "fails" {
			return ModuleOutcome{Kind: layout.KindExit, ExitCode: 3, Message: "exit 3", Stderr: []byte("why")}, nil
		}
		if call.Method == "absent" {
			return ModuleOutcome{}, flaky
		}
		return ModuleOutcome{Stdout: call.Stdin}, nil
	})
	permanent := wrap(func(next Call, ctx context.Context, args []byte) ([]byte, error) {
		_, err := next(ctx, args)
		return nil, Permanent(fmt.Errorf("given up: %w", err))
	})
	rescue := wrap(func(next Call, ctx context.Context, args []byte) ([]byte, error) {
		_, err := next(ctx, args)
		return []byte("rescued: " + err.Error()), nil
	})
	panics := wrap(func(Call, context.Context, []byte) ([]byte, error) { panic("middleware") })
	leavesOut := wrap(func(Call, context.Context, []byte) ([]byte, error) { return []byte("cached"), nil })
	w := b.start(Options{
		Slots: 1, Modules: modules, FunctionMiddleware: map[string][]Middleware{
			"go:permanent": permanent, "go:rescued": rescue, "go:halfway": rescue, "go:panics": panics,
			"go:cached": leavesOut, "go:twice": twice,
			module + "/permanent": permanent, module + "/fails": rescue, module + "/panics": panics,
			module + "/cached": leavesOut, module: twice, "go:made": {func(Call) Call { panic("made") }},
		},
	}, map[string]Function{
		"permanent": fails, "rescued": fails, "panics": echo, "cached": fails, "twice": onceFails, "made": echo,
		"halfway": halfway,
	})
	results := map[string]string{
		"go:rescued": "rescued: flaky", "go:halfway": "rescued: flaky",
		"go:cached": "cached", "go:twice": "written hello",
		module + "/fails": "rescued: exit: exit 3", module + "/cached": "cached", module: "hello",
	}
	failures := map[string]layout.FailureKind{
		"go:permanent": layout.KindError, "go:panics": layout.KindPanic, module + "/panics": layout.KindPanic,
		"go:made": layout.KindPanic,
	}
	with := func(s *fdbmodel.Submission) { s.Args = []byte("hello") }
	for function, value := range results {
		id := b.one(function, with)
		b.awaitOver(id)
		require.Equal(t, layout.Realized, stateOf(b, id), "%s: %+v", function, b.row(id).Exception)
		require.Equal(t, value, string(b.row(id).Result.Value), function)
		require.Zero(t, b.row(id).Result.ExitCode, function)
	}
	for function, kind := range failures {
		id := b.one(function, with, func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 })
		b.awaitOver(id)
		require.Equal(t, kind, b.row(id).Exception.Kind, function)
		require.Contains(t, b.row(id).Exception.Message, map[layout.FailureKind]string{
			layout.KindError: "given up: flaky", layout.KindPanic: "panic: m"}[kind])
	}
	id := b.one("go:permanent", with, func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
	b.awaitOver(id)
	require.Equal(t, 1, b.row(id).Attempts.Failed)
	absent := b.one(module+"/absent", with)
	b.await("a rejection", func() bool { return w.Stats().Rejected > 0 })
	require.Nil(t, b.row(absent).Exception, "the runner failed, not the module")
}

// TestAModuleKeepsItsFailure through middleware that wraps it.
func TestAModuleKeepsItsFailure(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	modules := moduleFunc(func(context.Context, ModuleCall) (ModuleOutcome, error) {
		return ModuleOutcome{Kind: layout.KindExit, ExitCode: 3, Message: "exit 3", Stderr: []byte("why")}, nil
	})
	b.start(Options{Slots: 1, Modules: modules, Middleware: []Middleware{func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			_, err := next(ctx, args)
			var failed *ModuleError
			if errors.As(err, &failed) && failed.ExitCode == 3 {
				return nil, Permanent(err)
			}
			return nil, err
		}
	}}}, nil)
	id := b.one("wasm:"+code.CID, func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
	b.awaitOver(id)
	e := b.row(id).Exception
	require.Equal(t, layout.KindExit, e.Kind)
	require.Equal(t, 3, e.ExitCode)
	require.Equal(t, "why", string(e.Stderr))
	require.Equal(t, 1, e.Attempt, "it is permanent")
}

// uncomparable is an error of a type that can't be compared.
type uncomparable []string

func (e uncomparable) Error() string { return fmt.Sprint([]string(e)) }

// TestARunnerFailsInAnyWay: with an error that can't be compared, which passes through middleware.
func TestARunnerFailsInAnyWay(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	seen := &passages{}
	w := b.start(Options{Slots: 1, Middleware: []Middleware{seen.by("all")}, Modules: moduleFunc(
		func(context.Context, ModuleCall) (ModuleOutcome, error) {
			return ModuleOutcome{}, Permanent(uncomparable{"no luck"})
		})}, nil)
	b.one("wasm:" + code.CID)
	b.await("a rejection", func() bool { return w.Stats().Rejected > 0 })
	require.Len(t, seen.all, 2)
	require.Contains(t, seen.all[1], "[no luck]")
}

// TestATimeoutPassesThroughMiddleware: it gets the end of its context, and what
// it makes of that does not count.
func TestATimeoutPassesThroughMiddleware(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	ends := make(chan error, 1)
	b.start(Options{Slots: 1, Middleware: []Middleware{func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			_, err := next(ctx, args)
			ends <- err
			return []byte("nothing happened"), nil
		}
	}}}, map[string]Function{"stuck": newBlocker(true).run})
	id := b.one("go:stuck", func(s *fdbmodel.Submission) { s.Spec.Timeout = time.Second })
	b.awaitOver(id)
	require.Equal(t, layout.KindTimeout, b.row(id).Exception.Kind)
	require.ErrorIs(t, <-ends, ErrTimeout)
}

// TestAStreamOfAModuleIsMadeAnew for each call of its middleware.
func TestAStreamOfAModuleIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	calls := 0
	modules := moduleFunc(func(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
		calls++
		_, err := io.WriteString(call.Output, fmt.Sprintf("call %d", calls))
		return ModuleOutcome{}, err
	})
	b.start(Options{
		Slots: 1, Modules: modules, Objects: ObjectOptions{Memory: 1 << 30, Above: -1},
		Middleware: []Middleware{func(next Call) Call {
			return func(ctx context.Context, args []byte) ([]byte, error) {
				_, err := next(ctx, args)
				return nil, errors.Join(err, func() error { _, err := next(ctx, args); return err }())
			}
		}},
	}, nil)
	id := b.one("wasm:"+code.CID, func(s *fdbmodel.Submission) { s.Spec.AsObject = true })
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Realized, row.State(), "%+v", row.Exception)
	require.EqualValues(t, len("call 2"), row.Result.Size)
}

func TestMiddlewareThatCanNotBeCalled(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	for _, o := range []Options{
		{Middleware: []Middleware{nil}}, {FunctionMiddleware: map[string][]Middleware{"go:f": {nil}}},
		{FunctionMiddleware: map[string][]Middleware{"f": {func(next Call) Call { return next }}}},
	} {
		_, err := FromCluster(b.cluster, o)
		require.Error(t, err)
	}
}

// TestOneFailureIsOneLine, also of arguments that are gone.
func TestOneFailureIsOneLine(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	log := &lines{}
	id := b.one("go:echo", func(s *fdbmodel.Submission) { s.Args = make([]byte, layout.MaxArgsInKey+1) })
	keys := b.cluster.Keys()
	_, err := kv.Transact(b.ctx, b.db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Clear(keys.Chunk(id, *b.row(id).Spec.ArgsRef, 0))
		return nil
	})
	require.NoError(t, err)
	b.start(Options{Slots: 1, Logger: log.logger(slog.LevelWarn)}, map[string]Function{"echo": echo})
	b.awaitOver(id)
	var found []map[string]any
	b.await("a line, which follows the commit", func() bool {
		found = slices.DeleteFunc(log.about(t, ""), func(line map[string]any) bool { return line["future"] != id.String() })
		return len(found) > 0
	})
	require.Len(t, found, 1, "%v", found)
	require.Equal(t, "a future failed for good", found[0]["msg"])
	require.Equal(t, id.String(), found[0]["future"])
	require.NotEmpty(t, found[0]["worker"])
}

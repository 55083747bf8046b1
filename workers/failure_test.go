package workers

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
)

func explode() { panic("boom") }

func failing() map[string]Function {
	broken := errors.New("broken")
	return map[string]Function{
		"echo":      echo,
		"error":     func(context.Context, []byte) ([]byte, error) { return nil, broken },
		"permanent": func(context.Context, []byte) ([]byte, error) { return nil, Permanent(broken) },
		"later":     func(context.Context, []byte) ([]byte, error) { return nil, RetryAfter(2*time.Minute, broken) },
		"panic":     func(context.Context, []byte) ([]byte, error) { explode(); return nil, nil },
		"goexit":    func(context.Context, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil },
		"second": func(ctx context.Context, _ []byte) ([]byte, error) {
			if info, _ := InfoFrom(ctx); info.Attempt < 2 {
				return nil, RetryAfter(0, nil)
			}
			return []byte("second"), nil
		},
	}
}

func TestFailuresOfFunctions(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	functions := failing()
	w := b.start(Options{Slots: 2}, functions)
	for _, c := range []struct {
		function string
		retries  int
		kind     layout.FailureKind
		attempts int
		message  string
	}{
		{"error", 0, layout.KindError, 1, "broken"},
		{"error", 2, layout.KindError, 3, "broken"},
		{"permanent", 5, layout.KindError, 1, "broken"},
		{"panic", 1, layout.KindPanic, 2, "panic: boom"},
		{"goexit", 1, layout.KindPanic, 2, "Goexit"},
	} {
		id := b.one("go:"+c.function, func(s *fdbmodel.Submission) { s.Spec.MaxRetries = c.retries })
		b.awaitOver(id)
		row := b.row(id)
		require.Equal(t, layout.Failed, row.State(), c.function)
		require.Equal(t, c.kind, row.Exception.Kind, c.function)
		require.Equal(t, c.attempts, row.Attempts.Failed, c.function)
		require.Contains(t, row.Exception.Message, c.message)
		if c.function == "panic" {
			require.Contains(t, row.Exception.Message, "workers.explode")
			require.NotContains(t, row.Exception.Message, "workers.(*Worker)")
		}
	}
	id := b.one("go:second", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 })
	b.awaitOver(id)
	require.Equal(t, "second", string(b.row(id).Result.Value))
	require.Equal(t, 2, b.row(id).Result.Attempt)
	require.Equal(t, layout.KindError, b.row(id).Exception.Kind, "the last failure is kept")
	require.False(t, b.row(id).Exception.Final)
	ids := b.many(20, "go:echo")
	b.awaitOver(ids...)
	require.Nil(t, b.row(ids[0]).Exception)
	b.await("free slots", func() bool { return w.Stats().Free.Slots == 2 })
}

func TestRetryAfterReplacesTheBackoff(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	b.start(Options{Slots: 1}, map[string]Function{"later": failing()["later"]})
	before := b.clock.Now()
	id := b.one("go:later", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 })
	b.await("the wait", func() bool { row := b.row(id); return row.State() == layout.Delayed })
	due := time.UnixMilli(b.row(id).Attempts.Due)
	require.GreaterOrEqual(t, due.Sub(before), 2*time.Minute)
	require.LessOrEqual(t, due.Sub(b.clock.Now()), 2*time.Minute)
	b.awaitOver(id)
	require.GreaterOrEqual(t, b.clock.Now().Sub(before), 2*time.Minute)
	require.Equal(t, 2, b.row(id).Attempts.Failed)
}

func stateOf(b *bed, id layout.ID) layout.State {
	row := b.row(id)
	return row.State()
}

func TestCancelOfARunningFuture(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	heeds, ignores := newBlocker(true), newBlocker(false)
	w := b.start(Options{Slots: 2}, map[string]Function{"heeds": heeds.run, "ignores": ignores.run})
	first := b.one("go:heeds", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
	second := b.one("go:ignores")
	b.begins(heeds)
	b.begins(ignores)
	for _, id := range []layout.ID{first, second} {
		outcome, _, err := b.cluster.Cancel(b.ctx, id, "no longer wanted")
		require.NoError(t, err)
		require.Equal(t, fdbmodel.Requested, outcome)
	}
	b.awaitOver(first)
	row := b.row(first)
	require.Equal(t, layout.KindCancelled, row.Exception.Kind)
	require.Equal(t, "no longer wanted", row.Exception.Message)
	// A result that still comes counts.
	close(ignores.end)
	b.awaitOver(second)
	require.Equal(t, layout.Realized, stateOf(b, second))
	// It is not counted as failed.
	b.await("the counts", func() bool { return w.Stats().Cancelled == 1 && w.Stats().Ran == 1 })
	require.Zero(t, w.Stats().Failed)
}

func TestCancelFromAnotherProcessComesWithTheHeartbeat(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	heeds := newBlocker(true)
	b.start(Options{Slots: 1}, map[string]Function{"heeds": heeds.run})
	id := b.one("go:heeds")
	b.begins(heeds)
	other, err := fdbmodel.Open(b.ctx, b.db, "test", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	_, _, err = other.Cancel(b.ctx, id, "")
	require.NoError(t, err)
	b.awaitOver(id)
	require.Equal(t, layout.KindCancelled, b.row(id).Exception.Kind)
}

func TestFunctionThatIsNotKnownAfterAllIsRejected(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	w := b.start(Options{Slots: 1}, map[string]Function{"gone": echo})
	w.mu.Lock()
	delete(w.functions, "go:gone")
	w.mu.Unlock()
	id := b.one("go:gone")
	b.await("a rejection", func() bool { return b.row(id).Attempts.Rejected > 0 })
	require.Zero(t, b.row(id).Attempts.Failed)
	w.mu.Lock()
	w.functions["go:gone"] = echo
	w.mu.Unlock()
	b.awaitOver(id)
	require.Equal(t, layout.Realized, stateOf(b, id))
}

// askedModules is a ModuleRunner that does what the call's first argument says.
type askedModules struct{ b *bed }

func (m askedModules) RunModule(ctx context.Context, call ModuleCall) (ModuleOutcome, error) {
	code, err := call.Load(ctx)
	if err != nil {
		return ModuleOutcome{}, err
	}
	stderr := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	switch call.Argv[0] {
	case "ok":
		out := strings.Join([]string{string(code), call.CID, call.Method, call.Env["A"], string(call.Stdin)}, " ")
		return ModuleOutcome{Stdout: []byte(out), Stderr: stderr, ExitCode: 0, Usage: layout.Usage{CPUUser: 1}}, nil
	case "exit":
		return ModuleOutcome{
			Stdout: stderr, Stderr: stderr, ExitCode: 3, Kind: layout.KindExit, Message: "exit code 3",
			Usage: layout.Usage{Memory: 2},
		}, nil
	case "memory":
		return ModuleOutcome{Kind: layout.KindMemory, Message: "too much"}, nil
	case "panic":
		panic("the runner's fault")
	default:
		return ModuleOutcome{}, errors.New("the runner is out of order")
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	module, err := modules.Of(b.cluster).Put(b.ctx, []byte("code"), "alias")
	require.NoError(t, err)
	b.start(Options{Slots: 1, Modules: askedModules{b}}, nil)
	call := func(verb string) layout.ID {
		return b.one("wasm:alias/method", func(s *fdbmodel.Submission) {
			s.Args, s.Spec.Argv, s.Spec.Env = []byte("stdin"), []string{verb}, map[string]string{"A": "a"}
		})
	}
	id := call("ok")
	b.awaitOver(id)
	result := b.row(id).Result
	require.Equal(t, "code "+module.CID+" method a stdin", string(result.Value))
	require.Equal(t, layout.CodecRaw, result.Codec)
	require.True(t, result.Truncated)
	require.Equal(t, &layout.Usage{CPUUser: 1}, result.Usage)
	stderr, err := results.Of(b.cluster).Stderr(b.ctx, id, result.Stderr, result.StderrRef)
	require.NoError(t, err)
	require.Len(t, stderr, fdbmodel.MaxStderr)

	id = call("exit")
	b.awaitOver(id)
	exception := b.row(id).Exception
	require.Equal(t, layout.KindExit, exception.Kind)
	require.Equal(t, 3, exception.ExitCode)
	require.Equal(t, &layout.Usage{Memory: 2}, exception.Usage)
	require.Len(t, exception.Stdout, fdbmodel.MaxResultInline)
	stderr, err = results.Of(b.cluster).Stderr(b.ctx, id, exception.Stderr, exception.StderrRef)
	require.NoError(t, err)
	require.Len(t, stderr, fdbmodel.MaxStderr)

	id = call("memory")
	b.awaitOver(id)
	require.Contains(t, b.row(id).Exception.Message, "too much; raise the memory that its future requires")
	require.Nil(t, b.row(id).Exception.Usage, "nothing of it is known")

	id = call("panic")
	b.awaitOver(id)
	require.Contains(t, b.row(id).Exception.Message, "the runner's fault")

	id = call("out of order")
	b.await("a rejection", func() bool { return b.row(id).Attempts.Rejected > 0 })

	id = b.one("wasm:alias", func(s *fdbmodel.Submission) { s.NotBefore = b.cluster.Now().Add(time.Second) })
	b.removeModule(module.CID)
	b.awaitOver(id)
	require.Equal(t, layout.KindUnloadable, b.row(id).Exception.Kind)
}

// removeModule makes a module's bytes go missing.
func (b *bed) removeModule(cid string) {
	_, err := kv.Transact(b.ctx, b.db, kv.Retry{}, func(tx kv.Attempt) error {
		page, err := tx.GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(b.ctx)
		for _, item := range page.Items {
			if bytes.Contains(item.Key, []byte(cid)) {
				tx.Clear(item.Key)
			}
		}
		return err
	})
	require.NoError(b.t, err)
}

func TestArgumentsThatAreGone(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	id := b.one("go:echo", func(s *fdbmodel.Submission) { s.Args = make([]byte, 100_000); s.Spec.MaxRetries = 5 })
	_, err := kv.Transact(b.ctx, b.db, kv.Retry{}, func(tx kv.Attempt) error {
		page, err := tx.GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(b.ctx)
		for _, item := range page.Items {
			if bytes.Contains(item.Key, []byte("chunks")) {
				tx.Clear(item.Key)
			}
		}
		return err
	})
	require.NoError(t, err)
	b.start(Options{Slots: 1}, map[string]Function{"echo": echo})
	b.awaitOver(id)
	require.Equal(t, layout.KindError, b.row(id).Exception.Kind)
	require.Contains(t, b.row(id).Exception.Message, "not found")
}

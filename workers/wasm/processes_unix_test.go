//go:build unix

package wasm

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFallsBackWithoutChildMain(t *testing.T) {
	childMainCalled.Store(false)
	defer childMainCalled.Store(true)
	var text bytes.Buffer
	config := Config{Logger: slog.New(slog.NewTextHandler(&text, nil))}
	e, err := New(context.Background(), config)
	require.NoError(t, err)
	require.Equal(t, IsolationInProcess, e.Isolation())
	require.Contains(t, text.String(), "wasm.ChildMain")
	stillWorks(t, e)
	require.NoError(t, e.Close(context.Background()))

	_, err = New(context.Background(), Config{Isolation: IsolationProcess})
	require.ErrorIs(t, err, errNoChildMain)
}

// TestFallsBackWithoutATemporaryDirectory: in a container there may be none.
func TestFallsBackWithoutATemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var text bytes.Buffer
	e, err := New(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	require.NoError(t, err)
	require.Equal(t, IsolationInProcess, e.Isolation())
	require.Contains(t, text.String(), "set TMPDIR")
	require.NotContains(t, text.String(), "ChildMain")
	stillWorks(t, e)
	require.NoError(t, e.Close(t.Context()))
}

func TestChildrenThatDie(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	pool := e.backend.(*processes)
	idle := pool.idle[0]
	require.NoError(t, idle.command.Process.Kill())
	<-idle.exited
	stillWorks(t, e)
	require.NotSame(t, idle, pool.idle[0], "another child took the call")

	running := pool.idle[0]
	inv := of("endless", printingThen("here", endless()).module())
	require.NoError(t, e.Check(context.Background(), inv.CID, starting(1, endless()).module()))
	timer := time.AfterFunc(shortly, func() { _ = running.command.Process.Kill() })
	defer timer.Stop()
	out, err := e.Run(context.Background(), inv)
	require.Contains(t, requireKind(t, KindLost, err).Message, "killed")
	require.Positive(t, out.CPUUser+out.CPUSys)
	stillWorks(t, e)
}

// TestChildHaltedBeforeTheCall ends a call between the load of its module and its
// start: it is cancelled, and not lost with the child that it made end.
func TestChildHaltedBeforeTheCall(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	w := e.backend.(*processes).idle[0]
	w.halt()
	<-w.exited
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 1000 {
		_, _, err := w.exchange(ctx, nil, frameDrop, nil, nil)
		requireKind(t, KindCancelled, err)
	}
}

func TestChildOutOfMemoryIsTold(t *testing.T) {
	t.Parallel()
	w := &worker{crash: &crashText{}}
	_, _ = w.crash.Write(bytes.Repeat([]byte("fatal error: out of memory\n"), 10_000))
	require.LessOrEqual(t, len(w.crash.text()), keptCrash)
	require.Contains(t, w.crash.text(), "out of memory")
}

func TestIdleChildrenAreRetired(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 3, IdleTimeout: time.Hour})
	pool := e.backend.(*processes)
	for range 2 {
		w, err := pool.start(context.Background())
		require.NoError(t, err)
		pool.release(w)
	}
	all := slices.Clone(pool.idle)
	require.Len(t, all, 3)
	pool.retire(time.Now().Add(30 * time.Minute))
	require.Equal(t, all, pool.idle)
	stillWorks(t, e)
	used := pool.idle[2]
	pool.retire(used.idleSince.Add(time.Hour - 1))
	require.Equal(t, []*worker{used}, pool.idle, "the one that was used is kept")
	for _, w := range all {
		if w != used {
			<-w.exited
		}
	}
	pool.retire(time.Now().Add(2 * time.Hour))
	<-used.exited
	require.Empty(t, pool.idle)
	stillWorks(t, e)
	require.Len(t, pool.idle, 1)
}

func TestIdleChildrenAreRetiredByThemselves(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1, IdleTimeout: time.Millisecond})
	pool := e.backend.(*processes)
	for range 3 {
		stillWorks(t, e)
		pool.mu.Lock()
		idle := slices.Clone(pool.idle)
		pool.mu.Unlock()
		for _, w := range idle {
			<-w.exited
		}
	}
	kept := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1, IdleTimeout: -1})
	stillWorks(t, kept)
	require.Nil(t, kept.backend.(*processes).retiring)
}

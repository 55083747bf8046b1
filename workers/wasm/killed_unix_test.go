//go:build unix

package wasm

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAChildThatDoesNotAnswerHasUsedSomething stops a child amid a call, so that it has to be
// killed and says nothing of the call.
func TestAChildThatDoesNotAnswerHasUsedSomething(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	child := e.backend.(*processes).idle[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inv := of("writing", printing(1, 1<<30, "something"))
	require.NoError(t, e.Check(ctx, inv.CID, printing(1, 1<<30, "something")))
	inv.Timeout = -1
	var stopping sync.Once
	inv.Output = writerFunc(func(p []byte) (int, error) {
		stopping.Do(func() { stop(t, child) })
		cancel()
		return len(p), nil
	})
	out, err := e.Run(ctx, inv)
	requireKind(t, KindCancelled, err)
	require.Positive(t, out.CPUUser+out.CPUSys)
	require.Positive(t, out.Duration)
	require.True(t, child.diedOf(syscall.SIGKILL))
}

// stop returns when none of the child's threads runs: a signal that was sent may still be on its way.
func stop(t *testing.T, child *worker) {
	assert.NoError(t, child.command.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(child.command.Process.Pid, &status, syscall.WUNTRACED, nil)
	assert.NoError(t, err)
	assert.True(t, status.Stopped())
}

// TestACancelledCallThatFindsItsChildDead is cancelled while it sends its request to a child that is gone.
func TestACancelledCallThatFindsItsChildDead(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := e.backend.(*processes).with(ctx, "", func(*worker) (result, error) {
		cancel()
		return result{}, errNotSent
	})
	requireKind(t, KindCancelled, err)
}

// TestAChildIsBilledOnce compares what a child says of its calls with what is kept for a call of
// which it says nothing.
func TestAChildIsBilledOnce(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	child := e.backend.(*processes).idle[0]
	require.Positive(t, child.user+child.sys, "its start and the load of the module count for no call")
	for range 3 {
		before := child.user + child.sys
		out, err := e.Run(context.Background(), of("good", printing(1, 1, "good")))
		require.NoError(t, err)
		require.Same(t, child, e.backend.(*processes).idle[0])
		require.Equal(t, before+out.CPUUser+out.CPUSys, child.user+child.sys)
	}
	w, _, err := e.backend.(*processes).acquire(context.Background(), "")
	require.NoError(t, err)
	w.user, w.sys = time.Hour, time.Hour
	user, sys := w.unsaid()
	require.Zero(t, user+sys, "an answer that claims too much")
	w.broken = true
	e.backend.(*processes).release(w)
}

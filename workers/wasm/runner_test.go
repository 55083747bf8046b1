package wasm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// counting is a module that counts to five million:
//
//	(module (func (export "_start") (local i32) (loop
//	  (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (br_if 0 (i32.ne (i32.const 5000000))))))
const counting = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00" +
	"\x07\x0a\x01\x06_start\x00\x00\x0a\x18\x01\x16\x01\x01\x7f\x03\x40\x20\x00\x41\x01\x6a\x22\x00" +
	"\x41\xc0\x96\xb1\x02\x47\x0d\x00\x0b\x0b"

// TestACallWithoutTimeoutHasNone gives the executor a limit of its own that no
// call keeps.
func TestACallWithoutTimeoutHasNone(t *testing.T) {
	t.Parallel()
	executor, err := wasm.New(t.Context(), wasm.Config{
		Isolation: wasm.IsolationInProcess, DefaultTimeout: time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, executor.Close(context.Background())) })
	call := workers.ModuleCall{
		CID: "c", Load: func(context.Context) ([]byte, error) { return []byte(counting), nil },
	}
	out, err := executor.RunModule(t.Context(), call)
	require.NoError(t, err)
	require.Empty(t, out.Kind, out.Message)
	call.Timeout = time.Millisecond
	out, err = executor.RunModule(t.Context(), call)
	require.NoError(t, err)
	require.EqualValues(t, wasm.KindTimeout, out.Kind)
}

// TestACallTellsItsUsage runs a module that counts, in a process of its own where
// there are such.
func TestACallTellsItsUsage(t *testing.T) {
	t.Parallel()
	executor, err := wasm.New(t.Context(), wasm.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, executor.Close(context.Background())) })
	out, err := executor.RunModule(t.Context(), workers.ModuleCall{
		CID: "c", Load: func(context.Context) ([]byte, error) { return []byte(counting), nil },
	})
	require.NoError(t, err)
	require.Empty(t, out.Kind, out.Message)
	if executor.Isolation() == wasm.IsolationProcess {
		require.Positive(t, out.Usage.CPUUser+out.Usage.CPUSys, "five million rounds")
	} else {
		require.Zero(t, out.Usage.CPUUser+out.Usage.CPUSys)
	}
}

// TestAModuleThatDoesNotLoadInTime has not run: what its future says of its time has nothing to do with it.
func TestAModuleThatDoesNotLoadInTime(t *testing.T) {
	t.Parallel()
	executor, err := wasm.New(t.Context(), wasm.Config{
		Isolation: wasm.IsolationInProcess, LoadTimeout: time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, executor.Close(context.Background())) })
	out, err := executor.RunModule(t.Context(), workers.ModuleCall{
		CID: "c", Timeout: time.Hour, Load: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	require.NoError(t, err)
	require.EqualValues(t, wasm.KindError, out.Kind)
	require.Contains(t, out.Message, "loading the module took longer than its limit of 1ms")
}

// TestAModuleThatIsFetchedLate has as long as any to load.
func TestAModuleThatIsFetchedLate(t *testing.T) {
	t.Parallel()
	executor, err := wasm.New(t.Context(), wasm.Config{Isolation: wasm.IsolationInProcess, LoadTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, executor.Close(context.Background())) })
	out, err := executor.RunModule(t.Context(), workers.ModuleCall{
		CID: "c", Load: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return []byte(counting), nil
		},
	})
	require.NoError(t, err)
	require.Empty(t, out.Kind, out.Message)
}

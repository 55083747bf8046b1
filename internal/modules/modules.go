// Package modules lets workers run WASM modules: it joins the worker's interface
// to the executor that runs them.
package modules

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// Runner runs modules by an executor.
type Runner struct{ Executor *wasm.Executor }

// Run implements workers.ModuleRunner. It returns an error where the executor
// is closed or a call was lost with its process: another run may do better.
func (r Runner) Run(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	timeout := call.Timeout
	if timeout == 0 {
		timeout = -1 // none, rather than the executor's own
	}
	out, err := r.Executor.Run(ctx, wasm.Invocation{
		CID: call.CID, Method: call.Method, Module: call.Load, Args: call.Argv, Env: call.Env, Stdin: call.Stdin,
		MemoryLimit: call.MemoryLimit, Timeout: timeout,
	})
	outcome := workers.ModuleOutcome{
		Stdout: out.Stdout, Stderr: out.Stderr, ExitCode: out.ExitCode, Truncated: out.StderrTruncated,
	}
	var failure *wasm.Error
	switch {
	case err == nil:
		return outcome, nil
	case !errors.As(err, &failure):
		return outcome, err
	case failure.Kind == wasm.KindLost || failure.Kind == wasm.KindCancelled:
		return outcome, err
	}
	outcome.Kind, outcome.Message = layout.FailureKind(failure.Kind), failure.Message
	return outcome, nil
}

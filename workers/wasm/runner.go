package wasm

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// RunModule implements workers.ModuleRunner. It returns an error where the
// executor is closed, a stream of the call failed, or the call was lost with its
// process: another run may do better. A module that did not load in time fails as
// "error": "timeout" is for one that ran for too long.
func (e *Executor) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	timeout := call.Timeout
	if timeout == 0 {
		timeout = -1 // none, rather than the executor's own
	}
	out, err := e.Run(ctx, Invocation{
		CID: call.CID, Method: call.Method, Module: call.Load, Args: call.Argv, Env: call.Env, Stdin: call.Stdin,
		Input: call.Input, Output: call.Output, OutputBound: call.OutputBound, Host: call.Host,
		MemoryLimit: call.MemoryLimit, MaxMemory: call.MaxMemory, Timeout: timeout,
	})
	outcome := workers.ModuleOutcome{
		Stdout: out.Stdout, Stderr: out.Stderr, ExitCode: out.ExitCode, Truncated: out.StderrTruncated,
		Usage: layout.Usage{CPUUser: out.CPUUser, CPUSys: out.CPUSys, Memory: out.PeakMemory},
	}
	var failure *Error
	switch {
	case err == nil:
		return outcome, nil
	case !errors.As(err, &failure):
		return outcome, err
	case failure.Kind == KindLost || failure.Kind == KindCancelled:
		return outcome, err
	}
	if outcome.Kind, outcome.Message = layout.FailureKind(failure.Kind), failure.Message; errors.As(err, new(*timeLimit)) {
		outcome.Kind = layout.KindError
	}
	return outcome, nil
}

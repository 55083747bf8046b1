package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
)

const modulePrefix = "wasm:"

func isModule(function string) bool { return strings.HasPrefix(function, modulePrefix) }

// executeModule runs a WASM module.
func (w *Worker) executeModule(j *job, args []byte) fdbmodel.Completion {
	f := &j.future
	cid, method, _ := strings.Cut(strings.TrimPrefix(f.Spec.Function, modulePrefix), "/")
	var missing atomic.Pointer[error]
	streams := moduleStreams{worker: w, job: j}
	defer streams.close()
	call := ModuleCall{
		CID: cid, Method: method, Argv: f.Spec.Argv, Env: f.Spec.Env, Timeout: j.timeAllowed(w.cluster.Now()),
		MemoryLimit: w.policy.Memory(f.Requirements().RAM), MaxMemory: w.policy.MaxMemory,
		Load: func(ctx context.Context) ([]byte, error) {
			module, err := modules.Of(w.cluster).Get(ctx, cid)
			if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrBadRecord) {
				missing.Store(&err)
			}
			return module, err
		},
	}
	streams.stream(&call)
	host := moduleHost{job: j}
	call.Host = host.answer
	run := moduleRun{worker: w, job: j, call: call, streams: &streams, host: &host}
	if c := run.run(args); c != nil {
		return *c
	}
	out, err := run.out, run.failed
	failed := err != nil || out.Kind != ""
	switch cause := context.Cause(j.ctx); {
	case failed && cause != nil:
		return fdbmodel.Completion{Future: f, Relinquish: true}
	case failed && missing.Load() != nil:
		out.Kind, out.Message = layout.KindUnloadable, (*missing.Load()).Error()
	case err != nil:
		if host.failed != nil {
			return j.failure(host.failed)
		}
		if c := streams.failure(); c != nil {
			return *c
		}
		w.rare.Warn("a module could not be run here", "future", f.ID, "error", err)
		return fdbmodel.Completion{Future: f, Reject: true}
	}
	if out.Kind != "" {
		c := w.moduleFailure(j, &out)
		heed(&c, run.ended)
		return c
	}
	result := layout.Result{
		Codec: layout.CodecRaw, Stderr: out.Stderr, ExitCode: out.ExitCode, Truncated: out.Truncated,
		Usage: out.usage(),
	}
	if written := streams.take(); written != nil {
		return w.ended(j, written, nil, result)
	}
	result.Value = out.Stdout
	return w.success(j, result)
}

// runModule confines a runner's panic to the call.
func runModule(ctx context.Context, r ModuleRunner, call ModuleCall) (out ModuleOutcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			out = ModuleOutcome{Kind: layout.KindPanic, Message: fmt.Sprintf("the module's runner panicked: %v", p)}
		}
	}()
	return r.RunModule(ctx, call)
}

// usage is what the call took, nil if nothing of it is known.
func (o *ModuleOutcome) usage() *layout.Usage { return usageOf(o.Usage) }

func usageOf(used layout.Usage) *layout.Usage {
	if used == (layout.Usage{}) {
		return nil
	}
	return &used
}

// moduleFailure keeps the streams of a failed attempt: the beginning of the
// output, the end of the errors.
func (w *Worker) moduleFailure(j *job, out *ModuleOutcome) fdbmodel.Completion {
	e := &layout.Exception{
		Kind: out.Kind, Message: out.Message, ExitCode: out.ExitCode, Truncated: out.Truncated, Stdout: out.Stdout,
		Usage: out.usage(),
	}
	if e.Kind == layout.KindTimeout && j.boundByFuture() {
		past := j.pastDeadline(j.deadline).Exception
		e.Kind, e.Message = past.Kind, past.Message
	}
	if e.Kind == layout.KindTimeout && j.hasModuleTimeout() {
		e.Message += "; " + lacksTimeout
	}
	if e.Kind == layout.KindMemory {
		e.Message += "; raise the memory that its future requires, or the limit of its worker"
	}
	if len(e.Stdout) > fdbmodel.MaxResultInline {
		e.Stdout, e.Truncated = e.Stdout[:fdbmodel.MaxResultInline], true
	}
	var err error
	if e.Stderr, e.StderrRef, err = w.placeStderr(j, out.Stderr, &e.Truncated); err != nil {
		return w.unwritten(j, err)
	}
	return fdbmodel.Completion{Future: &j.future, Exception: e}
}

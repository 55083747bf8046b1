package wasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

const (
	initializeMethod = "_initialize"
	// snapshotMethod is exported by a module that declares that its calls may begin from a snapshot. It is
	// called after initializeMethod.
	snapshotMethod = "futura_snapshot"
	// waitingMemory is how much instances take that wait for their next call, with their snapshots, in bytes.
	waitingMemory = 64 * mebibyte
)

// instance is a module with its memory.
type instance struct {
	module   api.Module // nil until it began
	memory   *linearMemory
	snapshot *snapshot // nil if it is for one call
	returned bool      // its function returned, and did not end in any other way
}

// take returns the instance of a program that waits for its next call, or else one that is to begin.
func (e *engine) take(p *program, c *call) *instance {
	if p.restorable(c) {
		e.mu.Lock()
		i, ok := e.waiting.take(p.name)
		e.mu.Unlock()
		if ok && i.memory.limit == c.memoryLimit {
			i.returned = false
			return i
		}
		if ok {
			e.discard(i)
		}
	}
	return &instance{memory: e.memories.get(c.memoryLimit)}
}

// restorable reports whether a call may begin from a snapshot. A start may keep the arguments and the environment,
// so that calls with such begin anew.
func (p *program) restorable(c *call) bool {
	return p.snapshot && !isStart(c.method) && len(c.args) == 0 && len(c.env) == 0
}

func isStart(method string) bool {
	return method == defaultMethod || method == initializeMethod || method == snapshotMethod
}

// begin makes an instance ready for its call.
func (e *engine) begin(ctx context.Context, p *program, i *instance, c *call, out *streams) (err error) {
	config := e.configure(ctx, c, out)
	if i.module != nil {
		return e.connect(ctx, i, config)
	}
	i.module, err = e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, i.memory), p.module, config)
	if err != nil || isStart(c.method) {
		return err
	}
	for _, start := range []string{initializeMethod, snapshotMethod} {
		if _, ok := p.exports[start]; !ok || start == snapshotMethod && !p.snapshot {
			continue
		}
		code, err := i.call(ctx, start)
		if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 0 {
			return failf(KindExit, "the module ended in its function %q, before %q was called: let it return",
				start, c.method)
		}
		if err != nil {
			return err
		}
		if code != 0 {
			return sys.NewExitError(uint32(code))
		}
	}
	// A start that has read or written belongs to this call. A memory that is too large to wait needs no copy.
	if p.restorable(c) && !out.used() && i.memory.held() <= waitingMemory {
		i.takeSnapshot()
	}
	return nil
}

// call calls an exported function and returns its exit code.
func (i *instance) call(ctx context.Context, method string) (exitCode int, err error) {
	results, err := i.module.ExportedFunction(method).Call(ctx)
	switch {
	case err != nil:
		return -1, err
	case len(results) == 1:
		return int(uint32(results[0])), nil
	}
	return 0, nil
}

// release has an instance wait for the next call if it can be as it was before this one, and else discards it.
func (e *engine) release(p *program, i *instance) {
	if i.snapshot == nil || !i.returned || i.module.IsClosed() || !i.restore() || i.held() > waitingMemory {
		e.discard(i)
		return
	}
	e.mu.Lock()
	evicted := e.waiting.put(p.name, i, i.held())
	e.mu.Unlock()
	for _, old := range evicted {
		e.discard(old)
	}
}

// held is how many bytes an instance takes while it waits.
func (i *instance) held() int64 { return i.memory.held() + i.snapshot.size() }

func (e *engine) discard(i *instance) {
	if i.module != nil {
		_ = i.module.Close(context.Background())
	}
	e.memories.put(i.memory)
}

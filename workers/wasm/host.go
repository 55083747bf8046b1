package wasm

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/tetratelabs/wazero/api"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// hostModule is the module by which a function asks the program around it.
const hostModule = "futura"

const (
	// maxAsked is how much of a value a question has: one byte more than the host may take, which refuses that.
	maxAsked = layout.MaxPut + 1
	// maxName is how much of a name a question has, which is more than any name may.
	maxName = kibibyte
)

// readFunction reads the next part of what was asked for last.
const readFunction = "read"

// hostFunctions are the functions of hostModule: what they take, each by a pointer and a length, and whether they
// answer with the size of what was found, -1 for nothing.
var hostFunctions = map[string]struct{ name, value, answers bool }{
	"step_get":   {name: true, answers: true},
	"step_put":   {name: true, value: true},
	readFunction: {value: true, answers: true},

	"state_get":    {answers: true},
	"state_put":    {value: true},
	"state_delete": {},
}

// asker answers what a function asks.
type asker interface {
	// ask returns the size of what was found, -1 for nothing. That is what read reads from then on.
	// The value is valid until it returns.
	ask(ctx context.Context, function, name string, value []byte) (size int64, err error)
	// read reads the next part, as much as there is room or left.
	read(p []byte) (n int, err error)
}

// answers are those of a host in this process.
type answers struct {
	host workers.ModuleHost // or nil
	left bytes.Reader       // of the last one
}

// ask implements asker.
func (a *answers) ask(ctx context.Context, function, name string, value []byte) (size int64, err error) {
	if a.host == nil {
		return 0, failf(KindError, "the function called %q of %q, and nothing answers here: run it as a future on a worker "+
			"with access to the store", function, hostModule)
	}
	answer, found, err := a.host(ctx, function, name, value)
	if a.left.Reset(answer); err != nil || !found {
		return -1, err
	}
	return int64(len(answer)), nil
}

// read implements asker.
func (a *answers) read(p []byte) (n int, err error) {
	n, _ = a.left.Read(p) // which fails at the end only
	return n, nil
}

// askedBy is the context key of the streams of the call that asks.
type askedBy struct{}

// instantiateAsking provides hostModule.
func (e *engine) instantiateAsking(ctx context.Context) error {
	builder := e.runtime.NewHostModuleBuilder(hostModule)
	for function, has := range hostFunctions {
		var takes, gives []api.ValueType
		for _, part := range []bool{has.name, has.value} {
			if part {
				takes = append(takes, api.ValueTypeI32, api.ValueTypeI32)
			}
		}
		if has.answers {
			gives = []api.ValueType{api.ValueTypeI64}
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(
			func(ctx context.Context, module api.Module, stack []uint64) {
				var name, value []byte
				from := stack
				if has.name {
					name, from = memoryOf(module, function, from), from[2:]
				}
				if has.value {
					value = memoryOf(module, function, from)
				}
				if size := ctx.Value(askedBy{}).(*streams).ask(ctx, function, name, value); has.answers {
					stack[0] = uint64(size)
				}
			}), takes, gives).Export(function)
	}
	host, err := builder.Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("wasm: what functions import from %q: %w", hostModule, err)
	}
	maps.Copy(e.host, host.ExportedFunctionDefinitions())
	return nil
}

// memoryOf returns the memory that a function points to by the first two of its arguments. It ends one that points
// elsewhere.
func memoryOf(module api.Module, function string, arguments []uint64) []byte {
	at, size := uint32(arguments[0]), uint32(arguments[1])
	if pointed, within := module.Memory().Read(at, size); within {
		return pointed
	}
	panic(failf(KindPanic, "the function gave %q of %q %d bytes at %d, which are not in its memory", function, hostModule,
		size, at))
}

// ask asks the host, or reads its answer. It ends the function if that fails.
func (s *streams) ask(ctx context.Context, function string, name, value []byte) (size int64) {
	if s.ctx.Err() != nil {
		leave()
	}
	s.hasAsked = true
	var err error
	if function == readFunction {
		var n int
		n, err = s.host.read(value)
		size = int64(n)
	} else {
		size, err = s.host.ask(ctx, function, string(name[:min(len(name), maxName)]), value[:min(len(value), maxAsked)])
	}
	if err != nil {
		s.fail(err)
	}
	return size
}

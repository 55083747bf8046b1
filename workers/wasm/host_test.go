package wasm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Imported functions of modules that ask, behind each other.
const (
	stepGet = iota
	stepPut
	readNext
	askingWrite // fd_write
	askingRead  // fd_read
)

func asking() []importedFunction {
	return []importedFunction{
		{module: hostModule, name: "step_get", parameters: 2, results: 1, wide: true},
		{module: hostModule, name: "step_put", parameters: 4},
		{module: hostModule, name: "read", parameters: 2, results: 1, wide: true},
		wasiImport("fd_write", 4), wasiImport("fd_read", 4),
	}
}

// narrow makes i32 of i64.
var narrow = []byte{0xa7}

// Places in the memory of modules that ask.
const (
	askedVector = 16
	askedInput  = 64
	askedName   = 256
	askedAnswer = 1024
)

// asks is a module whose name of a step is name.
func asks(pages int, name string, body ...[]byte) []byte {
	a := starting(pages, code(body...), asking()...)
	a.data = map[uint32]string{askedName: name}
	return a.module()
}

// get asks for the step, and leaves the size of its value.
func get(name string) []byte {
	return code(constant(askedName), constant(int32(len(name))), callTo(stepGet), narrow)
}

// put records the step with a part of the memory.
func put(name string, at, size int32) []byte {
	return code(constant(askedName), constant(int32(len(name))), constant(at), constant(size), callTo(stepPut))
}

// readTo reads the answer, and leaves how much it read.
func readTo(at, size int32) []byte {
	return code(constant(at), constant(size), callTo(readNext), narrow)
}

// passing calls fd_read or fd_write for a part of the memory.
func passing(function int, descriptor, at, size int32) []byte {
	return code(storeAt(askedVector, at), storeAt(askedVector+4, size), constant(descriptor), constant(askedVector),
		constant(1), constant(askedVector+8), callTo(function), drop)
}

// notebook is a host with what was recorded by name.
type notebook struct {
	values map[string]string
	asked  []string
	failed error
}

func (n *notebook) answer(_ context.Context, function, name string, value []byte) ([]byte, bool, error) {
	n.asked = append(n.asked, function+" "+name)
	if function == "step_put" {
		n.values[name] = string(value)
	}
	known, found := n.values[name]
	return []byte(known), found, n.failed
}

// TestAFunctionAsks records a step, and another call reads it, in parts and whole, whatever its size.
func TestAFunctionAsks(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		const name = "charge"
		for _, size := range []int32{0, 1, 4096, framePart, framePart + 1, 1 << 20} {
			book := notebook{values: map[string]string{}}
			inv := of("put", asks(40, name, get(name), drop,
				constant(askedAnswer), constant('v'), constant(1<<20), []byte{0xfc, 11, 0}, put(name, askedAnswer, size)))
			inv.CID, inv.Host = "put"+string(rune('a'+size%26)), book.answer
			_, err := e.Run(t.Context(), inv)
			require.NoError(t, err)
			require.Equal(t, []string{"step_get charge", "step_put charge"}, book.asked)
			require.Equal(t, strings.Repeat("v", int(size)), book.values[name])
			const first = 3
			inv = of("get", asks(40, name, storeAt(0, 0), constant(0), get(name), store32, passing(askingWrite, 1, 0, 4),
				constant(4), readTo(askedAnswer, first), store32,
				constant(8), readTo(askedAnswer+first, 2<<20), store32, passing(askingWrite, 1, 4, 8),
				passing(askingWrite, 1, askedAnswer, size), readTo(0, 9), []byte{0x04, 0x40}, unreachable, []byte{0x0b}))
			inv.CID, inv.Host = "get"+string(rune('a'+size%26)), book.answer
			out, err := e.Run(t.Context(), inv)
			require.NoError(t, err)
			little := func(n int32) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
			begin := min(size, first)
			require.Equal(t, little(size)+little(begin)+little(size-begin)+strings.Repeat("v", int(size)), string(out.Stdout))
		}
		_, err := e.Run(t.Context(), of("nobody", asks(1, name, get(name), drop)))
		failure := requireKind(t, KindError, err)
		require.Contains(t, failure.Message, `called "step_get" of "futura", and nothing answers here`)
		stillWorks(t, e)
	})
}

// TestAskedBeyondItsMemory gives pointers and lengths that are not in the memory of the function: nothing reaches the
// host.
func TestAskedBeyondItsMemory(t *testing.T) {
	t.Parallel()
	const page = 65536
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		for name, body := range map[string][]byte{
			"name behind":       code(constant(page), constant(1), callTo(stepGet), drop),
			"name across":       code(constant(page-1), constant(2), callTo(stepGet), drop),
			"name of all":       code(constant(-1), constant(-1), callTo(stepGet), drop),
			"name that wraps":   code(constant(8), constant(-4), callTo(stepGet), drop),
			"name of put":       code(constant(page), constant(1), constant(0), constant(1), callTo(stepPut)),
			"value behind":      code(constant(0), constant(1), constant(page+1), constant(0), callTo(stepPut)),
			"value across":      code(constant(0), constant(1), constant(1), constant(page), callTo(stepPut)),
			"value that wraps":  code(constant(0), constant(1), constant(-1), constant(2), callTo(stepPut)),
			"read across":       code(readTo(page-3, 4), drop),
			"read below itself": code(readTo(-1, 1), drop),
		} {
			book := notebook{}
			inv := of(name, asks(1, "", body))
			inv.Host = book.answer
			_, err := e.Run(t.Context(), inv)
			failure := requireKind(t, KindPanic, err)
			require.Contains(t, failure.Message, "not in its memory", name)
			require.Empty(t, book.asked, name)
		}
		for name, module := range map[string][]byte{
			"no memory": starting(-1, code(constant(0), constant(0), callTo(stepGet), drop), asking()...).module(),
		} {
			inv := of(name, module)
			inv.Host = (&notebook{}).answer
			_, err := e.Run(t.Context(), inv)
			requireKind(t, KindPanic, err)
		}
		stillWorks(t, e)
	})
}

// TestImportsOfTheHost are those that it has.
func TestImportsOfTheHost(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationInProcess})
	for name, of := range map[string]importedFunction{
		"which does not have it":       {module: hostModule, name: "fd_write", parameters: 4, results: 1},
		"may import only from":         {module: "env", name: "step_get", parameters: 2, results: 1, wide: true},
		"WASI preview 1 does not have": {module: wasiModule, name: "step_get", parameters: 2, results: 1, wide: true},
		`"step_get" from "futura" with parameters or results that it does not have`: {module: hostModule, name: "step_get",
			parameters: 2, results: 1},
	} {
		err := e.Check(t.Context(), name, starting(1, nil, of).module())
		require.Contains(t, requireKind(t, KindUnloadable, err).Message, name)
	}
}

// TestAskingIsBounded passes no more of a name and a value than it takes to refuse them.
func TestAskingIsBounded(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{MemoryLimit: 256 * mebibyte}, func(t *testing.T, e *Executor) {
		var name, value int
		inv := of("much", asks(2000, "", constant(0), constant(100_000), constant(0), constant(layout.MaxPut+100),
			callTo(stepPut)))
		inv.Host = func(_ context.Context, _, n string, v []byte) ([]byte, bool, error) {
			name, value = len(n), len(v)
			return nil, false, nil
		}
		_, err := e.Run(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, []int{maxName, layout.MaxPut + 1}, []int{name, value})
	})
}

// TestInputStaysWhileAFunctionAsks asks amid its input, which comes by the same pipe.
func TestInputStaysWhileAFunctionAsks(t *testing.T) {
	t.Parallel()
	const name = "asked"
	module := asks(1, name,
		passing(askingRead, 0, askedInput, 4), get(name), drop, readTo(askedAnswer, 1000), drop,
		passing(askingRead, 0, askedInput+4, 8), get(name), drop, readTo(askedAnswer, 1000), drop,
		passing(askingWrite, 1, askedInput, 12), passing(askingWrite, 1, askedAnswer, 10))
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		book := notebook{values: map[string]string{name: strings.Repeat("x", 1000)}}
		inv := of("amid", module)
		inv.Host, inv.Stdin = book.answer, []byte("0123456789ab")
		out, err := e.Run(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, "0123456789abxxxxxxxxxx", string(out.Stdout))
		inv.Input = func(context.Context) io.Reader { return bytes.NewReader(inv.Stdin) }
		out, err = e.Run(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, "0123456789abxxxxxxxxxx", string(out.Stdout))
		inv.Input = func(context.Context) io.Reader { return iotest.ErrReader(errLimited) }
		_, err = e.Run(t.Context(), inv)
		require.ErrorIs(t, err, errLimited)
	})
}

// TestAHostThatFailsEndsItsCall whatever the function is about to do, and one that does not answer ends with its call.
func TestAHostThatFailsEndsItsCall(t *testing.T) {
	t.Parallel()
	const name = "lost"
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		lost := errors.New("the claim is lost")
		inv := of("lost", asks(1, name, get(name), drop, endless()))
		require.NoError(t, e.Check(t.Context(), inv.CID, asks(1, name, get(name), drop, endless())))
		inv.Host = (&notebook{failed: lost}).answer
		_, err := e.Run(t.Context(), inv)
		require.ErrorIs(t, err, lost)
		stillWorks(t, e)

		inv.Timeout = shortly
		inv.Host = func(ctx context.Context, _, _ string, _ []byte) ([]byte, bool, error) {
			<-ctx.Done()
			return nil, false, context.Cause(ctx)
		}
		_, err = e.Run(t.Context(), inv)
		requireKind(t, KindTimeout, err)
		stillWorks(t, e)
	})
}

// TestAFunctionPastItsTimeAsksNoMore gets its answer late, and would go on to ask.
func TestAFunctionPastItsTimeAsksNoMore(t *testing.T) {
	t.Parallel()
	const name = "again"
	module := asks(1, name, get(name), drop, get(name), drop)
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		inv := of("again", module)
		require.NoError(t, e.Check(t.Context(), inv.CID, module))
		asked := 0
		inv.Timeout, inv.Host = shortly, func(ctx context.Context, _, _ string, _ []byte) ([]byte, bool, error) {
			asked++
			<-ctx.Done()
			return nil, false, nil
		}
		_, err := e.Run(t.Context(), inv)
		requireKind(t, KindTimeout, err)
		require.Equal(t, 1, asked)
		stillWorks(t, e)
	})
}

// TestAnAnswerIsForItsCallAlone has calls of one instance ask, and read what the one before was told.
func TestAnAnswerIsForItsCallAlone(t *testing.T) {
	t.Parallel()
	const name = "secret"
	a := assembler{imports: asking(), pages: 1, data: map[uint32]string{askedName: name}, functions: []function{
		{export: snapshotMethod},
		{export: "ask", results: 1, body: get(name)},
		{export: "read", results: 1, body: readTo(askedAnswer, 100)},
	}}
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		inv := of("alone", a.module())
		inv.Host, inv.Method = (&notebook{values: map[string]string{name: "abc"}}).answer, "ask"
		out, err := e.Run(t.Context(), inv)
		requireKind(t, KindExit, err)
		require.Equal(t, 3, out.ExitCode)
		inv.Method = "read"
		_, err = e.Run(t.Context(), inv)
		require.NoError(t, err)
	})
}

// TestAFunctionAsksForItsState passes on what it asks without a name, and without a value.
func TestAFunctionAsksForItsState(t *testing.T) {
	t.Parallel()
	imports := []importedFunction{{module: hostModule, name: "state_get", results: 1, wide: true},
		{module: hostModule, name: "state_put", parameters: 2}, {module: hostModule, name: "state_delete"}}
	a := starting(1, code(callTo(0), drop, constant(askedName), constant(3), callTo(1), callTo(2)), imports...)
	a.data = map[uint32]string{askedName: "new"}
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		var asked []string
		inv := of("state", a.module())
		inv.Host = func(_ context.Context, function, name string, value []byte) ([]byte, bool, error) {
			asked = append(asked, function+name+string(value))
			return nil, false, nil
		}
		_, err := e.Run(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, []string{"state_get", "state_putnew", "state_delete"}, asked)
	})
}

// TestAStartThatAsksBelongsToItsCall asks in its start what no other call may have.
func TestAStartThatAsksBelongsToItsCall(t *testing.T) {
	t.Parallel()
	const name = "start"
	a := assembler{imports: asking(), pages: 1, data: map[uint32]string{askedName: name}, functions: []function{
		{export: snapshotMethod, body: code(get(name), drop, readTo(askedAnswer, 1), drop)},
		{export: "show", body: passing(askingWrite, 1, askedAnswer, 1)},
	}}
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		for _, value := range []string{"a", "b"} {
			inv := of("start", a.module())
			inv.Host, inv.Method = (&notebook{values: map[string]string{name: value}}).answer, "show"
			out, err := e.Run(t.Context(), inv)
			require.NoError(t, err)
			require.Equal(t, value, string(out.Stdout))
		}
	})
}

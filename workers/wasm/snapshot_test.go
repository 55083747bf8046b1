package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Places in the memory of modules that look for what a call before has left.
const (
	tokenAt  = 64  // 8 random bytes, drawn at the start
	markAt   = 128 // set by futura_snapshot
	markedBy = 7
	vectorAt = 256
	inputAt  = 512
	farAt    = 18 * mebibyte // beyond what is cleared by hand
	farPages = 300
)

// Imported functions of these modules.
const (
	randomGet = iota
	fdWrite
	fdRead
	fdClose
	procExit
)

func spyImports() []importedFunction {
	return []importedFunction{wasiImport("random_get", 2), wasiImport("fd_write", 4), wasiImport("fd_read", 4),
		wasiImport("fd_close", 1), {module: wasiModule, name: "proc_exit", parameters: 1}}
}

var (
	differs     = []byte{0x47}
	equalsZero  = []byte{0x45}
	either      = []byte{0x72}
	sizeMemory  = []byte{0x3f, 0}
	returns     = []byte{0x0f}
	setGlobal   = func(number byte) []byte { return []byte{0x24, number} }
	getGlobal   = func(number byte) []byte { return []byte{0x23, number} }
	isNull      = []byte{0xd1}
	tableGet    = []byte{0x25, 0}
	tableSet    = []byte{0x26, 0}
	tableSize   = []byte{0xfc, 16, 0}
	tableInit   = []byte{0xfc, 12, 1, 0}
	elementDrop = []byte{0xfc, 13, 1}
	dataInit    = []byte{0xfc, 8, 0, 0}
	dataDrop    = []byte{0xfc, 9, 0}
	// fillMemory fills 40 MiB behind the first page with ones.
	fillMemory = code(constant(65536), constant(1), constant(40*mebibyte), []byte{0xfc, 11, 0})
	vector7    = append([]byte{0xfd, 12, 0, 0, 0, 0, 0, 0, 0, 0, 7}, make([]byte, 7)...)
)

func storeAt(at, value int32) []byte { return code(constant(at), constant(value), store32) }

func loadAt(at int32) []byte { return code(constant(at), load32) }

// stream calls fd_read or fd_write with 4 bytes, and leaves its error number.
func stream(function int, descriptor, at, size int32) []byte {
	return code(storeAt(vectorAt, at), storeAt(vectorAt+4, size), constant(descriptor), constant(vectorAt), constant(1),
		constant(vectorAt+8), callTo(function))
}

// hiding is a way in which a call may leave a secret for the next.
type hiding struct {
	name  string
	leave []byte
	// trace leaves a number other than 0, or traps, if it finds what leave has left.
	trace []byte
	// kind is how the call that leaves it fails.
	kind string
	// restored says that the next call has the same instance.
	restored bool
}

func hidings() []hiding {
	restored := true
	plant := storeAt(4096, 1)
	return []hiding{
		{"nothing", nil, constant(0), "", restored},
		{"content of memory", plant, loadAt(4096), "", restored},
		{"memory of the start", storeAt(markAt, 1), code(loadAt(markAt), constant(markedBy), differs), "", restored},
		{"the size of memory", code(constant(3), growMemory, drop), code(sizeMemory, constant(2), differs), "", restored},
		{"memory that grew", code(constant(farPages), growMemory, drop, storeAt(2*65536, 1), storeAt(farAt, 1)),
			code(constant(farPages), growMemory, drop, loadAt(2*65536), loadAt(farAt), either), "", restored},
		{"i32", code(constant(7), setGlobal(0)), getGlobal(0), "", restored},
		{"i64", code([]byte{0x42, 7}, setGlobal(1)), code(getGlobal(1), []byte{0x50}, equalsZero), "", restored},
		{"f64", code([]byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, setGlobal(2)), code(getGlobal(2), []byte{0xaa}), "",
			restored},
		{"upper half of v128", code(vector7, setGlobal(3)), code(getGlobal(3), []byte{0xfd, 27, 2}), "", restored},
		{"funcref", code([]byte{0xd2, fdRead}, setGlobal(4)), code(getGlobal(4), isNull, equalsZero), "", restored},
		{"stdin", code(stream(fdRead, 0, inputAt, 1), drop),
			code(stream(fdRead, 0, inputAt, 4), loadAt(inputAt), constant(int32('m')|'i'<<8|'n'<<16|'e'<<24), differs, either),
			"", restored},
		{"closed descriptors", code(constant(0), callTo(fdClose), drop, constant(1), callTo(fdClose), drop),
			stream(fdWrite, 1, inputAt, 0), "", restored},
		{"entry of a table", code(constant(0), nullFunc, tableSet), code(constant(0), tableGet, isNull), "", false},
		{"size of a table", code(nullFunc, constant(1), growTable, drop), code(tableSize, constant(2), differs), "", false},
		{"another table", code(constant(0), nullFunc, []byte{0x26, 1}), code(constant(0), []byte{0x25, 1}, isNull), "",
			false},
		{"references to functions", code([]byte{0xd2, procExit + 1}, drop), constant(0), "", false},
		{"element segment", elementDrop, code(constant(1), constant(0), constant(1), tableInit, constant(0)), "", false},
		{"data segment", dataDrop, code(constant(5000), constant(0), constant(1), dataInit, constant(0)), "", false},
		{"a trap", code(plant, code(constant(7), setGlobal(0)), unreachable), constant(0), KindPanic, false},
		{"an exit", code(plant, constant(3), callTo(procExit)), constant(0), KindExit, false},
		{"an exit with 0", code(plant, constant(0), callTo(procExit)), constant(0), "", false},
		{"a flood", code(plant, endless(stream(fdWrite, 1, 0, 65536), drop)), constant(0), KindTooLarge, false},
		{"a timeout", code(plant, endless()), constant(0), KindTimeout, false},
		{"no memory", code(constant(30_000), growMemory, drop, plant, unreachable), constant(0), KindMemory, false},
	}
}

// spy is a module with a method for each hiding, "trace" that returns the number of the first that has
// left something, and "token" that prints what the start drew.
func spy(declared bool) []byte {
	draw := code(constant(tokenAt), constant(8), callTo(randomGet), drop)
	trace, methods := []byte(nil), []function{
		{export: initializeMethod, body: code(draw, storeAt(markAt, markedBy))},
		{export: "token", body: code(stream(fdWrite, 1, tokenAt, 8), drop)},
	}
	if declared {
		methods[0].body = draw
		methods = append(methods, function{export: snapshotMethod, body: storeAt(markAt, markedBy)})
	}
	for number, h := range hidings() {
		methods = append(methods, function{export: h.name, body: h.leave})
		trace = code(trace, h.trace, []byte{0x04, 0x40}, constant(int32(number)), returns, []byte{0x0b})
	}
	methods = append(methods, function{export: "trace", results: 1, body: code(trace, constant(0))})
	a := assembler{
		imports: spyImports(), functions: methods, pages: 2, tables: [][2]uint32{{2, 10}, {1, 1}}, counted: true,
		segments: [][]byte{append([]byte{1}, named("data")...)},
		elements: [][]byte{{0, 0x41, 0, 0x0b, 1, fdRead}, {1, 0, 1, fdRead},
			{2, 1, 0x41, 0, 0x0b, 0, 1, fdRead}},
		globals: [][]byte{{0x7f, 1, 0x41, 0, 0x0b}, {0x7e, 1, 0x42, 0, 0x0b},
			append(append([]byte{0x7c, 1, 0x44}, make([]byte, 8)...), 0x0b),
			append(append([]byte{0x7b, 1, 0xfd, 12}, make([]byte, 16)...), 0x0b), {0x70, 1, 0xd0, 0x70, 0x0b}},
	}
	return a.module()
}

// TestCallsFindNothingOfOthers has a call leave a secret in every place that a module has, and the next look for it.
func TestCallsFindNothingOfOthers(t *testing.T) {
	t.Parallel()
	for _, declared := range []bool{false, true} {
		inBoth(t, Config{PoolSize: 1, MaxOutput: 200_000}, func(t *testing.T, e *Executor) {
			inv := of("spy", spy(declared))
			call := func(method, input string) (Outcome, error) {
				inv.Method, inv.Stdin = method, []byte(input)
				if inv.Timeout = -1; method == "a timeout" {
					inv.Timeout = shortly
				}
				return e.Run(context.Background(), inv)
			}
			token := func() string {
				out, err := call("token", "")
				require.NoError(t, err)
				require.Len(t, out.Stdout, 8)
				return string(out.Stdout)
			}
			for _, h := range hidings() {
				before := token()
				_, err := call(h.name, "a secret")
				if h.kind != "" {
					requireKind(t, h.kind, err)
				} else {
					require.NoError(t, err, h.name)
				}
				require.Equal(t, declared && h.restored, before == token(), "%s: whether the instance is the same", h.name)
				_, err = call(h.name, "a secret")
				require.Equal(t, h.kind == "", err == nil, h.name)
				out, err := call("trace", "mine")
				require.NoError(t, err, h.name)
				require.Zero(t, out.ExitCode, h.name)
				require.Equal(t, int64(2+farPages)*65536, out.PeakMemory)
			}
		})
	}
}

// TestLimitsHoldForCallsFromSnapshots changes limits between calls of one module.
func TestLimitsHoldForCallsFromSnapshots(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		inv := of("spy", spy(true))
		inv.Method = "memory that grew"
		for _, limit := range []int64{64 * mebibyte, 3 * 65536, 64 * mebibyte} {
			inv.MemoryLimit = limit
			out, err := e.Run(context.Background(), inv)
			if limit < farAt {
				requireKind(t, KindMemory, err)
				require.Equal(t, int64(2*65536), out.PeakMemory)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, int64(2+farPages)*65536, out.PeakMemory)
		}
		inv.Method, inv.MemoryLimit = "token", 65536
		_, err := e.Run(context.Background(), inv)
		requireKind(t, KindMemory, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		inv.MemoryLimit = 0
		_, err = e.Run(ctx, inv)
		requireKind(t, KindCancelled, err)
	})
}

// TestStartThatWasRefusedMemory fails each call alike, the first and those from the snapshot.
func TestStartThatWasRefusedMemory(t *testing.T) {
	t.Parallel()
	a := assembler{imports: spyImports(), pages: 1, functions: []function{
		{export: snapshotMethod, body: code(constant(30_000), growMemory, drop)},
		{export: "call", results: 1, body: constant(3)},
	}}
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		inv := of("refused", a.module())
		inv.Method = "call"
		for range 3 {
			_, err := e.Run(context.Background(), inv)
			requireKind(t, KindMemory, err)
		}
	})
}

// starts is a module that declares snapshots, with a start of its own and a method that prints the token of the
// instance, and then its input.
func starts(start []byte) []byte {
	a := assembler{imports: spyImports(), pages: 2, functions: []function{
		{export: initializeMethod, body: code(constant(tokenAt), constant(8), callTo(randomGet), drop)},
		{export: snapshotMethod, results: 1, body: code(start, constant(0))},
		{export: "call", body: code(stream(fdWrite, 1, tokenAt, 8), drop, stream(fdRead, 0, inputAt, 4), drop,
			stream(fdWrite, 1, inputAt, 4), drop)},
	}}
	return a.module()
}

// TestStartsOfSnapshots has starts fail, and use what belongs to one call.
func TestStartsOfSnapshots(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		for name, test := range map[string]struct {
			start []byte
			kind  string
			out   string // of each call, beside its token
			args  []string
			same  bool // instance for all calls
		}{
			"good":               {out: "@mine", same: true},
			"with arguments":     {out: "@mine", args: []string{"one"}},
			"writes":             {start: code(stream(fdWrite, 1, inputAt, 4), drop), out: "\x00\x00\x00\x00@mine"},
			"writes an error":    {start: code(stream(fdWrite, 2, inputAt, 4), drop), out: "@mine"},
			"reads":              {start: code(stream(fdRead, 0, inputAt, 2), drop), out: "@ne\x00\x00"},
			"traps":              {start: unreachable, kind: KindPanic},
			"exits":              {start: code(constant(3), callTo(procExit)), kind: KindExit},
			"exits with 0":       {start: code(constant(0), callTo(procExit)), kind: KindExit},
			"returns a code":     {start: code(constant(3), returns), kind: KindExit},
			"loops":              {start: endless(), kind: KindTimeout},
			"eats":               {start: code(constant(30_000), growMemory, drop, unreachable), kind: KindMemory},
			"copied, too much":   {start: code(constant(800), growMemory, drop, fillMemory), out: "@mine"},
			"has too much":       {start: code(constant(1100), growMemory, drop), out: "@mine"},
			"has much, but fits": {start: code(constant(900), growMemory, drop), out: "@mine", same: true},
		} {
			tokens := map[string]bool{}
			for range 3 {
				inv := of(name, starts(test.start))
				inv.Method, inv.Stdin, inv.Args = "call", []byte("mine"), test.args
				if inv.Timeout = -1; test.kind == KindTimeout {
					inv.Timeout = shortly
				}
				out, err := e.Run(context.Background(), inv)
				if test.kind != "" {
					requireKind(t, test.kind, err)
					continue
				}
				require.NoError(t, err, name)
				at := strings.IndexByte(test.out, '@')
				require.Len(t, out.Stdout, len(test.out)+7, name)
				tokens[string(out.Stdout[at:at+8])] = true
				require.Equal(t, test.out, string(out.Stdout[:at])+"@"+string(out.Stdout[at+8:]), name)
			}
			if test.kind == "" {
				require.Equal(t, test.same, len(tokens) == 1, name)
			}
		}
		inv := of("environment", starts(nil))
		inv.Method, inv.Env = "call", map[string]string{"A": "1"}
		first, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		second, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		require.NotEqual(t, first.Stdout, second.Stdout)
	})
}

// TestWaitingInstancesAreBounded has many modules wait, and drops them.
func TestWaitingInstancesAreBounded(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationInProcess, LoadedModules: 5})
	own := e.backend.(*inprocess).engine
	for i := range 12 {
		inv := of(fmt.Sprint("module ", i), starts(code(constant(int32(200+i)), growMemory, drop)))
		inv.Method = "call"
		_, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		require.LessOrEqual(t, own.waiting.used, int64(waitingMemory))
		require.Len(t, own.waiting.entries, min(i+1, 4), "of 13 MiB each")
	}
	for _, p := range e.backend.(*inprocess).programs.clear() {
		own.drop(p.program)
	}
	require.Empty(t, own.waiting.entries)
	require.Zero(t, own.waiting.used)
}

// TestWaitingInstancesAreBoundedByAllTheyHave has much of what is no memory.
func TestWaitingInstancesAreBoundedByAllTheyHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		module  func(*assembler)
		waiting int
	}{
		"tables":  {func(a *assembler) { a.tables = [][2]uint32{{maxTableEntries, maxTableEntries}} }, 4},
		"globals": {func(a *assembler) { a.globals = slices.Repeat([][]byte{{0x7f, 1, 0x41, 0, 0x0b}}, 150_000) }, 3},
		"null elements": {func(a *assembler) {
			a.elements = [][]byte{append(append([]byte{5, 0x70}, unsigned(maxElements)...),
				bytes.Repeat([]byte{0xd0, 0x70, 0x0b}, maxElements)...)}
		}, 4},
		"functions": {func(a *assembler) {
			a.elements = [][]byte{append(append([]byte{1, 0}, unsigned(250_000)...),
				bytes.Repeat([]byte{procExit + 1}, 250_000)...)}
		}, 3},
		"empty segments": {func(a *assembler) {
			a.segments, a.counted = slices.Repeat([][]byte{{1, 0}}, maxData), true
			a.elements = slices.Repeat([][]byte{{1, 0, 0}}, 200_000)
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := newExecutor(t, Config{Isolation: IsolationInProcess}).backend.(*inprocess).engine
			a := assembler{pages: 2, functions: []function{{export: snapshotMethod}, {export: "call"}}}
			a.imports = spyImports()
			test.module(&a)
			checked, least, err := inspect(a.module(), 64*mebibyte)
			require.NoError(t, err)
			for range test.waiting + 2 {
				p, err := own.load(t.Context(), checked, least)
				require.NoError(t, err)
				defer own.drop(p)
				c := &call{method: "call", memoryLimit: mebibyte}
				ran := own.run(t.Context(), p, c, newStreams(t.Context(), own.limits, nil, nil))
				require.Empty(t, ran.kind, ran.message)
			}
			require.Len(t, own.waiting.entries, test.waiting)
			require.LessOrEqual(t, own.waiting.used, int64(waitingMemory))
		})
	}
}

// TestMemoryTooLargeToWaitIsNotCopied has a start that fills its memory.
func TestMemoryTooLargeToWaitIsNotCopied(t *testing.T) {
	t.Parallel()
	own := newExecutor(t, Config{Isolation: IsolationInProcess}).backend.(*inprocess).engine
	for pages, copied := range map[int32]bool{700: true, 1100: false} {
		module := starts(code(constant(pages), growMemory, drop, fillMemory))
		p, err := own.load(t.Context(), module, 0)
		require.NoError(t, err)
		c := &call{method: "call", memoryLimit: 256 * mebibyte}
		i := own.take(p, c)
		require.NoError(t, own.begin(t.Context(), p, i, c, newStreams(t.Context(), own.limits, nil, nil)))
		require.Equal(t, copied, i.snapshot != nil)
		own.discard(i)
		own.drop(p)
	}
}

// TestStreamThatFailsEndsItsInstance fails the output of a call from a snapshot.
func TestStreamThatFailsEndsItsInstance(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		inv := of("spy", spy(true))
		inv.Method = "token"
		before, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		lost := errors.New("the disk is full")
		inv.Method, inv.Output = "a flood", writerFunc(func([]byte) (int, error) { return 0, lost })
		_, err = e.Run(context.Background(), inv)
		require.ErrorIs(t, err, ErrStream)
		inv.Method, inv.Output = "token", nil
		after, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		require.NotEqual(t, before.Stdout, after.Stdout)
	})
}

// TestGoCallsFindNothingOfOthers has methods of Go begin from a snapshot. What their start drew is common to them, and
// shows that the instance is the same.
func TestGoCallsFindNothingOfOthers(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	module := goMethods(t, "./testdata/guest")
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	common, own := map[string]bool{}, map[string]bool{}
	for i := range 20 {
		inv := of("guest", module)
		inv.Method, inv.Stdin = "keep", bytes.Repeat([]byte("secret"), i*i*1000)
		out, err := e.Run(context.Background(), inv)
		require.NoError(t, err)
		found, drawn, ok := strings.Cut(string(out.Stdout), fmt.Sprint("  ", len(inv.Stdin), " "))
		require.True(t, ok)
		require.Equal(t, "1 of the start", found, "what the call finds")
		drew, drawn, ok := strings.Cut(drawn, " ")
		require.True(t, ok)
		common[drew], own[drawn] = true, true
	}
	require.Len(t, common, 1)
	require.Len(t, own, 20)
}

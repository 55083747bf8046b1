package wasm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFunctionsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	poll := wasiImport("poll_oneoff", 4)
	modules := map[string][]byte{
		"tight loop":     printingThen("here", endless()).module(),
		"loop of sleeps": printingThen("here", endless(sleeping(1)), poll).module(),
		"one sleep":      printingThen("here", code(sleeping(1), endless()), poll).module(),
		"loop of calls": printingThen("here",
			endless(constant(0), constant(0), callTo(1), drop), wasiImport("args_get", 2)).module(),
		"loop of random": printingThen("here",
			endless(constant(0), constant(65536), callTo(1), drop), wasiImport("random_get", 2)).module(),
		"loop at start":   starting(1, endless()).module(),
		"flood of stderr": printing(2, 1<<30, strings.Repeat("e", 1000)),
	}
	inBoth(t, Config{PoolSize: 2}, func(t *testing.T, e *Executor) {
		for name, module := range modules {
			inv := of(name, module)
			require.NoError(t, e.Check(context.Background(), name, module))
			inv.Timeout = shortly
			stdout, stderr := "here", "here"
			switch name {
			case "flood of stderr":
				stdout, stderr = "", strings.Repeat("e", 64*kibibyte)
			case "loop at start":
				stdout, stderr = "", ""
			}
			requireTold(t, e, inv, func(out *Outcome) bool {
				return string(out.Stdout) == stdout && string(out.Stderr) == stderr && out.PeakMemory == 65536 &&
					out.StderrTruncated == (name == "flood of stderr")
			})

			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(shortly, cancel)
			inv.Timeout = -1
			_, err := e.Run(ctx, inv)
			timer.Stop()
			cancel()
			requireKind(t, KindCancelled, err)
			require.ErrorContains(t, err, "context canceled")

			ctx, cancel = context.WithTimeout(context.Background(), shortly)
			_, err = e.Run(ctx, inv)
			cancel()
			requireKind(t, KindTimeout, err)
			stillWorks(t, e)
		}
	})
}

// requireTold runs what does not end by itself until its outcome has what it wrote and used. On a
// machine that is busy it may not get that far, or not say so in time.
func requireTold(t *testing.T, e *Executor, inv Invocation, told func(*Outcome) bool) {
	t.Helper()
	var out Outcome
	for began := time.Now(); !told(&out) && time.Since(began) < time.Minute; {
		var err error
		out, err = e.Run(context.Background(), inv)
		requireKind(t, KindTimeout, err)
		require.Equal(t, -1, out.ExitCode, inv.CID)
		require.Positive(t, out.Duration, inv.CID)
		require.Equal(t, e.Isolation() == IsolationProcess, out.CPUUser+out.CPUSys > 0, inv.CID)
	}
	require.True(t, told(&out), "%s: %+v", inv.CID, out)
}

func TestFunctionsThatEatMemory(t *testing.T) {
	t.Parallel()
	grow := code(constant(1), growMemory, drop)
	inBoth(t, Config{MemoryLimit: 8 * mebibyte}, func(t *testing.T, e *Executor) {
		for name, test := range map[string]struct {
			module []byte
			kind   string
			peak   int64
		}{
			"grows and traps":    {starting(1, code(countTo(1000, 0, grow), unreachable)).module(), KindMemory, 8 * mebibyte},
			"grows and copes":    {starting(1, countTo(1000, 0, grow)).module(), "", 8 * mebibyte},
			"within the limit":   {starting(1, countTo(127, 0, grow)).module(), "", 8 * mebibyte},
			"declares too much":  {starting(129, nil).module(), KindMemory, 0},
			"declares all":       {starting(65536, nil).module(), KindMemory, 0},
			"declares the limit": {starting(128, nil).module(), "", 8 * mebibyte},
			"own maximum": {assembler{pages: 1, maxPages: 2, functions: []function{{export: "_start", locals: 1,
				body: code(countTo(10, 0, grow), unreachable)}}}.module(), KindPanic, 2 * 65536},
		} {
			out, err := e.Run(context.Background(), of(name, test.module))
			if test.kind == "" {
				require.NoError(t, err, name)
			} else {
				requireKind(t, test.kind, err)
			}
			require.Equal(t, test.peak, out.PeakMemory, name)
		}
		inv := of("declares too much", nil)
		inv.MemoryLimit = 129 * 65536
		_, err := e.Run(context.Background(), inv)
		require.NoError(t, err, "a call may have more")
		stillWorks(t, e)
	})
}

func TestFunctionsThatFail(t *testing.T) {
	t.Parallel()
	recursion := assembler{pages: 1, functions: []function{{export: "_start", body: callTo(0)}}}
	exit := importedFunction{module: wasiModule, name: "proc_exit", parameters: 1}
	exits := starting(1, code(constant(300), callTo(0)), exit)
	exitsWell := starting(1, code(constant(0), callTo(0), unreachable), exit)
	trapsAtStart := assembler{pages: 1, functions: []function{{export: "_start", body: unreachable}}, start: []byte{0}}
	exitsAtStart := exits
	exitsAtStart.start = []byte{1}
	trapUnless := func(value int32) []byte {
		return code(constant(value), []byte{0x47, 0x04, 0x40}, unreachable, []byte{0x0b})
	}
	renumbers := starting(1, code(constant(1), constant(1<<31-1), callTo(0), trapUnless(58)), wasiImport("fd_renumber", 2))
	polls := starting(1, code(constant(0), constant(0), constant(1<<28), constant(0), callTo(0), drop),
		wasiImport("poll_oneoff", 4))
	tables := starting(1, code(nullFunc, constant(1<<30), growTable, trapUnless(-1)))
	tables.tables = [][2]uint32{{10, 1<<32 - 1}}
	inBoth(t, Config{MaxOutput: 100_000}, func(t *testing.T, e *Executor) {
		for name, test := range map[string]struct {
			module []byte
			kind   string
			text   string
		}{
			"trap":               {starting(1, unreachable).module(), KindPanic, "unreachable"},
			"out of bounds":      {starting(1, code(constant(-8), load32, drop)).module(), KindPanic, "out of bounds"},
			"recursion":          {recursion.module(), KindPanic, "stack overflow"},
			"exit code":          {exits.module(), KindExit, "300"},
			"trap at start":      {trapsAtStart.module(), KindPanic, "unreachable"},
			"exit at start":      {exitsAtStart.module(), KindExit, "300"},
			"exit code 0":        {exitsWell.module(), "", ""},
			"flood of output":    {printing(1, 1<<30, strings.Repeat("o", 1000)), KindTooLarge, "100000"},
			"all that is lawful": {printing(1, 100, strings.Repeat("o", 1000)), "", ""},
			"renumber far":       {renumbers.module(), "", ""},
			"poll of too many":   {polls.module(), KindPanic, "out of range"},
			"tables":             {tables.module(), "", ""},
		} {
			out, err := e.Run(context.Background(), of(name, test.module))
			if test.kind == "" {
				require.NoError(t, err, name)
			} else {
				require.Error(t, err, name)
				require.Contains(t, requireKind(t, test.kind, err).Message, test.text, name)
			}
			if test.kind == KindTooLarge {
				require.Len(t, out.Stdout, maxKeptOnOverflow)
			}
			stillWorks(t, e)
		}
	})
}

func TestStandardErrorKeepsItsEnd(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{StderrTail: 1000}, func(t *testing.T, e *Executor) {
		for length, turns := range map[int]int{1: 999, 7: 142, 10: 100, 9: 1000, 333: 10, 1500: 3} {
			text := strings.Repeat("x", length-1) + "\n"
			out, err := e.Run(context.Background(), of(fmt.Sprint("stderr", length), printing(2, int32(turns), text)))
			require.NoError(t, err)
			all := strings.Repeat(text, turns)
			require.Equal(t, len(all) > 1000, out.StderrTruncated)
			require.Equal(t, all[max(0, len(all)-1000):], string(out.Stderr))
		}
	})
}

func TestModulesThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	typeMismatch := starting(1, nil, wasiImport("random_get", 3))
	invalid := starting(1, []byte{0x6a})
	dataOutside := starting(1, nil)
	dataOutside.data = map[uint32]string{65536: "x"}
	bigTable := starting(1, nil)
	bigTable.tables = [][2]uint32{{100_000_000, 100_000_000}}
	twoMemories := starting(-1, nil)
	twoMemories.sections = [][]byte{section(sectionMemory, []byte{0, 1}, []byte{0, 1})}
	locals := starting(1, nil)
	locals.functions[0].locals = 1 << 30
	importedMemory := append(append(named("env"), named("memory")...), 2, 0, 1)
	magic := "\x00asm\x01\x00\x00\x00"
	inBoth(t, Config{MaxModuleSize: 2 * mebibyte}, func(t *testing.T, e *Executor) {
		for text, module := range map[string][]byte{
			"is not a WebAssembly":  []byte("#!/bin/sh\n"),
			"begins with \"\"":      nil,
			"component":             []byte("\x00asm\x0d\x00\x01\x00"),
			"version 02000000":      []byte("\x00asm\x02\x00\x00\x00"),
			"middle of an item":     smallLoop(1)[:30],
			`"env"`:                 starting(1, nil, importedFunction{module: "env", name: "abort", parameters: 4}).module(),
			`"fd_open"`:             starting(1, nil, wasiImport("fd_open", 4)).module(),
			`"memory"`:              []byte(magic + string(section(sectionImport, importedMemory))),
			`"random_get"`:          typeMismatch.module(),
			"can't be compiled":     invalid.module(),
			"1000000 entries":       bigTable.module(),
			"2 memories":            twoMemories.module(),
			"1073741824 locals":     locals.module(),
			"unknown kind 77":       append(smallLoop(1), 77, 0),
			"invalid section order": append(smallLoop(1), rawSection(sectionType, []byte{0})...),
		} {
			failure := requireKind(t, KindUnloadable, e.Check(context.Background(), text, module))
			require.Contains(t, failure.Message, text)
			_, err := e.Run(context.Background(), of(text, module))
			requireKind(t, KindUnloadable, err)
		}
		_, err := e.Run(context.Background(), of("data", dataOutside.module()))
		requireKind(t, KindPanic, err)
		failure := requireKind(t, KindTooLarge, e.Check(context.Background(), "big", make([]byte, 2*mebibyte+1)))
		require.Contains(t, failure.Message, "2097152")
		stillWorks(t, e)
	})
}

func TestGoFunctionsAreHeldToo(t *testing.T) {
	t.Parallel()
	skipSlowCompile(t)
	module := goFunction(t, "./testdata/guest")
	inBoth(t, Config{MemoryLimit: 64 * mebibyte}, func(t *testing.T, e *Executor) {
		require.NoError(t, e.Check(context.Background(), "guest", module))
		for _, test := range []struct{ does, kind, stderr string }{
			{"spin", KindTimeout, "spinning"},
			{"sleep", KindTimeout, "sleeping"},
			{"eat", KindMemory, "out of memory"},
			{"panic", KindExit, "panic: on purpose"},
			{"recurse", KindMemory, "stack"},
			{"reach", KindExit, ""},
			{"clock", "", ""},
		} {
			if e.Isolation() == IsolationInProcess && test.kind == KindMemory && !long {
				continue // takes many seconds with checks in every loop
			}
			inv := Invocation{CID: "guest", Args: []string{test.does}}
			if test.kind == KindTimeout {
				inv.Timeout = time.Second
			}
			out, err := e.Run(context.Background(), inv)
			if test.kind == "" {
				require.NoError(t, err)
			} else {
				requireKind(t, test.kind, err)
			}
			require.Contains(t, string(out.Stderr), test.stderr, test.does)
			if test.does == "reach" {
				require.Equal(t, 3, out.ExitCode)
				require.Empty(t, out.Stderr, "nothing was in reach")
			}
		}
	})
}

func TestWaitingCallsCanBeCancelled(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{PoolSize: 1}, func(t *testing.T, e *Executor) {
		ctx, cancel := context.WithCancel(context.Background())
		began := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			_, err := e.Run(ctx, Invocation{CID: "endless", Module: func(context.Context) ([]byte, error) {
				close(began)
				return starting(1, endless()).module(), nil
			}})
			ended <- err
		}()
		<-began
		waiting, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		_, err := e.Run(waiting, of("another", smallLoop(1)))
		requireKind(t, KindTimeout, err)
		cancel()
		requireKind(t, KindCancelled, <-ended)
		stillWorks(t, e)
	})
}

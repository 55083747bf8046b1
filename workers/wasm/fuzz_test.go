package wasm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// seeds are modules of many shapes.
func seeds() [][]byte {
	asks := starting(1, code(constant(0), constant(4), callTo(stepGet), drop,
		constant(0), constant(4), constant(0), constant(9), callTo(stepPut)), asking()...)
	tables := starting(1, code(nullFunc, constant(1), growTable, drop))
	tables.tables = [][2]uint32{{1, 5}, {0, 1<<32 - 1}}
	tables.sections = [][]byte{
		rawSection(sectionCustom, append(named("name"), 1, 9, 1, 0, 6, '_', 's', 't', 'a', 'r', 't')),
		rawSection(sectionCustom, append(named("name"), 1, 9, 0xff, 0xff, 0xff, 0xff, 0xf, 't', 'a', 'r', 't')),
		rawSection(sectionCustom, append(named(".debug_info"), 1, 2, 3)),
	}
	return [][]byte{
		nil, []byte("\x00asm"), []byte("\x00asm\x01\x00\x00\x00"), smallLoop(1), printing(1, 1, "text"), tables.module(),
		asks.module(),
		assembler{pages: 1, functions: []function{{export: "f", results: 1, body: constant(0)}}}.module(),
		append(starting(-1, nil).module(), section(sectionElement, []byte{1, 0, 1, 0}, []byte{5, 0x70, 1, 0xd2, 0, 0x0b})...),
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		checked, minMemory, err := inspect(module, 1<<20)
		if err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.NotEmpty(t, failure.Message)
			return
		}
		require.LessOrEqual(t, len(checked), 2*len(module)+64)
		require.LessOrEqual(t, minMemory, uint64(maxLinearMemory))
		again, sameMemory, err := inspect(checked, int64(len(checked)))
		require.NoError(t, err)
		require.Equal(t, minMemory, sameMemory)
		require.Equal(t, checked, again, "what is checked stays as it is")
	})
}

// FuzzLoad lets through to the engine what inspect accepts, and runs it if it
// can be run.
func FuzzLoad(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	limits := limits{maxModuleSize: 64 * kibibyte, maxInput: 1000, maxOutput: 1000, stderrTail: 1000}
	e, err := newEngine(context.Background(), limits, "", true, 1)
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.close(context.Background()) })
	f.Fuzz(func(t *testing.T, module []byte) {
		checked, minMemory, err := inspect(module, limits.maxModuleSize)
		if err != nil {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := e.load(context.Background(), checked, minMemory)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(512*mebibyte))
		if err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, KindUnloadable, failure.Kind)
			return
		}
		defer func() { _ = p.module.Close(context.Background()) }()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		out := newStreams(ctx, limits, nil, &answers{})
		ran := e.run(ctx, p, &call{program: "x", method: "_start", memoryLimit: 4 * mebibyte}, out)
		require.LessOrEqual(t, ran.peak, uint64(4*mebibyte))
		require.LessOrEqual(t, len(ran.stdout), 1000)
	})
}

func FuzzFrames(f *testing.F) {
	var frames bytes.Buffer
	_ = writeFrame(&frames, frameRun, encodeRun(7, &call{program: "p", method: "m", args: []string{"a"}}), []byte("in"))
	ran := &result{kind: KindExit, exitCode: -1, stderr: []byte("e")}
	_ = writeFrame(&frames, frameResult, encodeResult(ran), ran.stderr)
	_ = writeFrame(&frames, frameStatus, make([]byte, 100))
	_ = writeFrame(&frames, frameAsk, appendAsk(nil, &askPart{function: "f", name: "n", left: 1}), []byte("v"))
	f.Add(frames.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'r'})
	f.Add([]byte{3, 0, 0, 0, 'r', 1, 2})
	f.Fuzz(func(t *testing.T, stream []byte) {
		reader := newFrameReader(iotest.HalfReader(bytes.NewReader(stream)), 100_000)
		reader.buffer = make([]byte, 64)
		taken := 0
		for {
			_, body, err := reader.next()
			if err != nil {
				require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errFrame))
				if errors.Is(err, io.EOF) {
					require.Equal(t, len(stream), taken)
				}
				return
			}
			require.Equal(t, stream[taken+frameHeader:taken+frameHeader+len(body)], body)
			taken += frameHeader + len(body)
			if _, made, _, err := decodeRun(body); err == nil {
				require.LessOrEqual(t, len(made.stdin), len(body))
			}
			if part, err := decodeAsk(body); err == nil {
				require.LessOrEqual(t, len(part.function)+len(part.name)+len(part.value), len(body))
			}
			if ran, err := decodeResult(body); err == nil {
				require.LessOrEqual(t, len(ran.stdout)+len(ran.stderr), len(body))
			}
		}
	})
}

func TestFramesArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 100, 32 * kibibyte, 65530, 65536, 200_000})
		want := &call{
			program: rapid.String().Draw(t, "program"), method: rapid.String().Draw(t, "method"),
			args:        rapid.SliceOf(rapid.String()).Draw(t, "args"),
			env:         sortedPairs(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "env")),
			memoryLimit: rapid.Uint64().Draw(t, "memory"),
			stdin:       bytes.Repeat([]byte{1}, size.Draw(t, "stdin")),
		}
		ran := result{
			kind: rapid.String().Draw(t, "kind"), message: rapid.String().Draw(t, "message"),
			exitCode: rapid.Int().Draw(t, "exit code"), stderrTruncated: rapid.Bool().Draw(t, "truncated"),
			stdout:   bytes.Repeat([]byte{2}, size.Draw(t, "stdout")),
			stderr:   bytes.Repeat([]byte{3}, size.Draw(t, "stderr")),
			duration: time.Duration(rapid.Int64Min(0).Draw(t, "duration")), peak: rapid.Uint64().Draw(t, "peak"),
		}
		var stream bytes.Buffer
		require.NoError(t, writeFrame(&stream, frameRun, encodeRun(9, want), want.stdin))
		require.NoError(t, writeFrame(&stream, frameResult, encodeResult(&ran), ran.stderr, ran.stdout))
		require.NoError(t, writeFrame(&stream, frameDrop, nil))

		reader := newFrameReader(&stream, 1<<20)
		kind, body, err := reader.next()
		require.NoError(t, err)
		require.Equal(t, byte(frameRun), kind)
		number, got, streaming, err := decodeRun(body)
		require.NoError(t, err)
		require.Equal(t, uint64(9), number)
		require.Equal(t, want.streaming(), streaming)
		require.Equal(t, want.program, got.program)
		require.Equal(t, want.method, got.method)
		require.ElementsMatch(t, want.args, got.args)
		require.ElementsMatch(t, want.env, got.env)
		require.Equal(t, want.memoryLimit, got.memoryLimit)
		require.True(t, bytes.Equal(want.stdin, got.stdin))

		kind, body, err = reader.next()
		require.NoError(t, err)
		require.Equal(t, byte(frameResult), kind)
		back, err := decodeResult(body)
		require.NoError(t, err)
		require.True(t, bytes.Equal(ran.stdout, back.stdout) && bytes.Equal(ran.stderr, back.stderr))
		back.stdout, back.stderr = ran.stdout, ran.stderr
		require.Equal(t, ran, back)

		kind, body, err = reader.next()
		require.NoError(t, err)
		require.Equal(t, byte(frameDrop), kind)
		require.Empty(t, body)
		_, _, err = reader.next()
		require.Equal(t, io.EOF, err)
	})
}

func TestLRUKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1, 20).Draw(t, "budget")
		l := newLRU[string](budget)
		costs := map[string]int64{}
		var order []string // the one used last at the end
		touch := func(key string) {
			order = append(deleteFrom(order, key), key)
		}
		for range 60 {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "put") {
				cost := rapid.Int64Range(0, 12).Draw(t, "cost")
				l.put(key, key, cost)
				costs[key] = cost
				touch(key)
				for used := sum(order, costs); used > budget && len(order) > 1; used = sum(order, costs) {
					order = order[1:]
				}
			} else if value, ok := l.get(key); ok {
				require.Equal(t, key, value)
				touch(key)
			}
			for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
				require.Equal(t, len(deleteFrom(order, key)) < len(order), l.has(key))
			}
		}
		require.ElementsMatch(t, order, l.clear())
		require.Zero(t, l.used)
	})
}

func deleteFrom(keys []string, key string) (left []string) {
	for _, k := range keys {
		if k != key {
			left = append(left, k)
		}
	}
	return left
}

func sum(keys []string, costs map[string]int64) (total int64) {
	for _, key := range keys {
		total += costs[key]
	}
	return total
}

package wasm

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// segmentAt is the bytes of a data segment.
func segmentAt(at int32, text string) []byte {
	return bytes.Join([][]byte{{0, 0x41}, signed(int64(at)), {0x0b}, named(text)}, nil)
}

// image is what a data section makes of a memory that begins at from.
func image(t require.TestingT, content []byte, from int64, size int) []byte {
	memory := make([]byte, size)
	r := &reader{bytes: content}
	for n := r.count("data segments", maxData); n > 0; n-- {
		s, fixed := r.fixedSegment()
		require.True(t, fixed)
		copy(memory[int64(s.at)-from:], s.bytes)
	}
	require.NoError(t, r.err)
	require.Zero(t, r.left())
	return memory
}

func TestJoinedDataIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom([]uint32{0, 1<<31 - 4000, 1<<32 - 20_000}).Draw(t, "base")
		least := rapid.SampledFrom([]int{0, 0, -30}).Draw(t, "least gap")
		at, content := int64(base), [][]byte(nil)
		for range rapid.IntRange(0, 20).Draw(t, "segments") {
			at = max(at+int64(rapid.IntRange(least, 2*maxDataGap).Draw(t, "gap")), int64(base))
			text := rapid.StringN(0, -1, 60).Draw(t, "bytes")
			content = append(content, segmentAt(int32(uint32(at)), text))
			at += int64(len(text))
		}
		whole := bytes.Join(shuffled(t, content), nil)
		whole = append(unsigned(uint64(len(content))), whole...)
		joined := joinData(whole)
		want, got := image(t, whole, int64(base), 20_000), image(t, joined, int64(base), 20_000)
		require.True(t, bytes.Equal(want, got), "%x became %x", whole, joined)
		require.LessOrEqual(t, len(joined), 2*len(whole))
		require.Equal(t, joined, joinData(joined), "what is joined stays as it is")
	})
}

func shuffled(t *rapid.T, segments [][]byte) [][]byte {
	if len(segments) > 0 && rapid.Bool().Draw(t, "shuffled") {
		return rapid.Permutation(segments).Draw(t, "order")
	}
	return segments
}

// TestDataOfGoIsJoined holds what makes calls of Go functions cheap: else each has tens of thousands of segments.
func TestDataOfGoIsJoined(t *testing.T) {
	t.Parallel()
	checked, _, err := inspect(goFunction(t, examples+"countlines"), 64*mebibyte)
	require.NoError(t, err)
	input := &reader{bytes: checked, at: 8}
	for input.more() {
		id, size := input.u8(), input.u32()
		if content := input.take(uint64(size)); id == sectionData {
			require.Less(t, (&reader{bytes: content}).count("data segments", maxData), 100)
			return
		}
	}
	t.Fatal("no data section")
}

func TestDataThatIsJoined(t *testing.T) {
	t.Parallel()
	text := string(bytes.Repeat([]byte("x"), maxDataGap))
	parts := func(gap int32) []byte {
		return append([]byte{2}, append(segmentAt(8, text), segmentAt(8+int32(len(text))+gap, text)...)...)
	}
	apart := append([]byte{2}, append(segmentAt(0, ""), segmentAt(200, "")...)...)
	for name, c := range map[string]struct {
		content []byte
		want    byte
	}{
		"near":                    {parts(maxDataGap), 1},
		"too far":                 {parts(maxDataGap + 1), 2},
		"overlapping":             {parts(-1), 2},
		"almost nothing but gaps": {apart, 2},
	} {
		require.Equal(t, c.want, joinData(c.content)[0], name)
	}
	for name, content := range map[string][]byte{
		"passive":           append([]byte{2}, append(segmentAt(0, "a"), 1, 1, 'b')...),
		"at a global":       append([]byte{2}, append(segmentAt(0, "a"), 0, 0x23, 0, 0x0b, 1, 'b')...),
		"beyond 32 bits":    append([]byte{1}, append([]byte{0, 0x41}, append(signed(1<<33), 0x0b, 1, 'b')...)...),
		"by a computation":  append([]byte{1}, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b, 1, 'b'),
		"in a named memory": append([]byte{1}, 2, 0, 0x41, 1, 0x0b, 1, 'b'),
	} {
		require.Equal(t, content, joinData(content), name)
	}
}

// readsData returns the bytes from 100 to 104 that segments have left there.
func readsData(t *testing.T, e *Executor, name string, counted bool, segments ...[]byte) string {
	const vector, written = 0, 16
	var use []byte
	if counted { // of the last one, which memory.init copies nothing of
		use = code(constant(0), constant(0), constant(0), []byte{0xfc, 8, byte(len(segments) - 1), 0})
	}
	a := starting(1, code(use,
		constant(vector), constant(100), store32, constant(vector+4), constant(4), store32,
		constant(1), constant(vector), constant(1), constant(written), callTo(0), drop,
	), wasiImport("fd_write", 4))
	a.segments, a.counted = segments, counted
	out, err := e.Run(context.Background(), of(name, a.module()))
	require.NoError(t, err)
	return string(out.Stdout)
}

func TestDataArrive(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		near := [][]byte{segmentAt(100, "a"), segmentAt(102, "c"), segmentAt(102, "C"), segmentAt(103, "d")}
		require.Equal(t, "a\x00Cd", readsData(t, e, "overlapping", false, near...))
		require.Equal(t, "a\x00cd", readsData(t, e, "joined", false, near[0], near[1], near[3]))
		require.Equal(t, "a\x00cd", readsData(t, e, "counted", true, near[0], near[1], near[3]))
		beyond := starting(1, nil)
		beyond.segments = [][]byte{segmentAt(65534, "z"), segmentAt(65535, "ab")}
		_, err := e.Run(context.Background(), of("beyond", beyond.module()))
		requireKind(t, KindPanic, err)
	})
}

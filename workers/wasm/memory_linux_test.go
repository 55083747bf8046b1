package wasm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestMemoryIsZeroForTheNextCall(t *testing.T) {
	t.Parallel()
	const limit = clearedByHand + 4*mebibyte
	var all memories
	defer all.close()
	zeros := make([]byte, limit)
	rapid.Check(t, func(t *rapid.T) {
		memory := all.get(limit)
		memory.Allocate(0, limit)
		pages := uint64(rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, limit/clearedBlock)).Draw(t, "pages"))
		content := memory.Reallocate(pages * clearedBlock)
		require.True(t, bytes.Equal(zeros[:len(content)], content), "what a call before it has left")
		places := rapid.SliceOfN(rapid.IntRange(0, len(content)-1), 0, 30).Draw(t, "places")
		for _, at := range append(places, len(content)-1) {
			content[at] = 1
		}
		if grown := memory.Reallocate(min(pages+3, limit/clearedBlock) * clearedBlock); rapid.Bool().Draw(t, "grows") {
			grown[len(grown)-1] = 1
		}
		all.put(memory)
		require.True(t, bytes.Equal(zeros[:len(memory.reserved)], memory.all()))
	})
}

func TestMemoryIsAsKeptForTheNextCall(t *testing.T) {
	t.Parallel()
	const limit = clearedByHand + 4*mebibyte
	var all memories
	defer all.close()
	zeros, want := make([]byte, limit), make([]byte, limit)
	rapid.Check(t, func(t *rapid.T) {
		memory := all.get(limit)
		memory.Allocate(0, limit)
		scribble := func(content []byte) {
			for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(content)-1), 0, 10).Draw(t, "places") {
				content[at]++
			}
		}
		pages := uint64(rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, limit/clearedBlock)).Draw(t, "pages"))
		content := memory.Reallocate(pages * clearedBlock)
		scribble(content)
		clear(want[copy(want, content):])
		memory.keep()
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			more := uint64(rapid.IntRange(0, 400).Draw(t, "more"))
			scribble(memory.Reallocate(min(pages+more, limit/clearedBlock) * clearedBlock))
			content, restored := memory.restore()
			require.True(t, restored)
			require.Len(t, content, int(pages*clearedBlock))
			require.True(t, bytes.Equal(want[:memory.committed], memory.reserved[:memory.committed]), "what a call has left")
			require.LessOrEqual(t, memory.committed, max(memory.size, clearedByHand))
		}
		all.put(memory)
		require.True(t, bytes.Equal(zeros[:memory.committed], memory.reserved[:memory.committed]), "what the start has left")
	})
}

// all is the memory as far as it can be accessed.
func (m *linearMemory) all() []byte {
	return slices.Concat(m.reserved[:m.committed], make([]byte, uint64(len(m.reserved))-m.committed))
}

func TestMemoryBeyondTheBoundGoesBack(t *testing.T) {
	t.Parallel()
	const limit = clearedByHand + 4*mebibyte
	var all memories
	defer all.close()
	memory := all.get(limit)
	memory.Allocate(0, limit)
	content := memory.Reallocate(limit)
	for at := range content {
		content[at] = 1
	}
	all.put(memory)
	pages := make([]byte, limit/smallestPage)
	require.True(t, findResident(memory.reserved, pages))
	kept := len(pages) - bytes.Count(pages, untouched)
	require.Equal(t, clearedByHand/unix.Getpagesize(), kept)
}

func TestSpareRangesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 4 * clearedByHand
	var all memories
	defer all.close()
	used := make([]*linearMemory, 2*maxSpare)
	for i := range used {
		used[i] = all.get(limit)
		used[i].Allocate(0, limit)
		require.NotNil(t, used[i].Reallocate(limit))
	}
	for _, memory := range used {
		all.put(memory)
	}
	require.Len(t, all.free, maxSpare)
	for _, memory := range all.free {
		require.EqualValues(t, clearedByHand, memory.committed)
	}
	again := all.get(limit)
	again.Allocate(0, limit)
	require.Len(t, again.Reallocate(limit), limit)
	all.put(again)
}

// TestMemoryThatCannotGoBack has the kernel hold a part of a memory.
func TestMemoryThatCannotGoBack(t *testing.T) {
	t.Parallel()
	const limit = clearedByHand + mebibyte
	var all memories
	defer all.close()
	memory := all.get(limit)
	memory.Allocate(0, limit)
	memory.Reallocate(clearedBlock)[0] = 1
	memory.keep()
	content := memory.Reallocate(limit)
	end := content[limit-clearedBlock:]
	end[0] = 2
	if err := unix.Mlock(end); err != nil {
		t.Skip("no memory can be locked: ", err)
	}
	_, restored := memory.restore()
	require.False(t, restored)
	require.NoError(t, unix.Munlock(end))
	all.put(memory)
	again := all.get(limit)
	again.Allocate(0, limit)
	require.True(t, bytes.Equal(make([]byte, limit), again.Reallocate(limit)), "what a call before it has left")
	all.put(again)
}

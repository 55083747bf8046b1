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

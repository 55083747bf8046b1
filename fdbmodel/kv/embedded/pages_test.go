package embedded

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPagesGoBackToTheSystem gives back more pages than are kept.
func TestPagesGoBackToTheSystem(t *testing.T) {
	t.Parallel()
	if mapSlab(slabSize) == nil {
		t.Skip("all pages are of the heap here")
	}
	p := newPages(0)
	all := make([][]byte, 3*idlePages)
	for i := range all {
		page, ofHeap := p.take()
		require.False(t, ofHeap)
		require.Len(t, page, chunkMax)
		require.Equal(t, chunkMax, cap(page), "what is appended to a page is not of the next one")
		for j := range page {
			page[j] = byte(i)
		}
		all[i] = page
	}
	require.Len(t, p.slabs.all, 3)
	for _, page := range all[1:] {
		p.give(page, false)
	}
	require.Len(t, p.idle, idlePages)
	require.Len(t, p.empty, 2*idlePages-1)
	require.Equal(t, bytes.Repeat([]byte{0}, chunkMax), all[0], "the page in use keeps its content")
	for _, page := range p.empty {
		require.Equal(t, make([]byte, chunkMax), page, "the memory was given back")
	}
	for range all[1:] {
		_, ofHeap := p.take()
		require.False(t, ofHeap)
	}
	require.Len(t, p.slabs.all, 3, "pages are used again")
}

// TestPagesOfTheHeap are the first ones, and again after they were given back.
func TestPagesOfTheHeap(t *testing.T) {
	t.Parallel()
	p := newPages(2)
	first, ofHeap := p.take()
	require.True(t, ofHeap)
	_, ofHeap = p.take()
	require.True(t, ofHeap)
	_, ofHeap = p.take()
	require.Equal(t, runtime.GOOS != "linux", ofHeap)
	p.give(first, true)
	require.Empty(t, p.idle)
	_, ofHeap = p.take()
	require.True(t, ofHeap)
}

// TestPagesEndWithTheirStore drops pages, and finds their memory unmapped.
func TestPagesEndWithTheirStore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the mappings of a process are read on Linux")
	}
	at := func() uintptr {
		page, _ := newPages(0).take()
		return uintptr(unsafe.Pointer(unsafe.SliceData(page)))
	}()
	for range 100 {
		runtime.GC()
		if !isMapped(t, at) {
			return
		}
	}
	require.Fail(t, "the memory is still mapped")
}

// isMapped reports whether the process has memory at an address.
func isMapped(t *testing.T, at uintptr) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
		require.NoError(t, err)
		if from <= at && at < to {
			return true
		}
	}
	return false
}

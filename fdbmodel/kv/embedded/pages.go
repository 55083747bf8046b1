package embedded

import "runtime"

const (
	// slabSize is how much memory the system is asked for at a time.
	slabSize = 4 << 20
	// idlePages is how many pages without blocks keep their memory.
	idlePages = slabSize / chunkMax
	// heapPages is how many pages are the collector's at most. It runs when its heap has doubled,
	// so that one with some pages is collected rarely.
	heapPages = 128 << 20 / chunkMax
)

// pages is memory for chunks of chunkMax bytes. The first ones are of the collector's heap. The
// others are not, so that it doesn't leave as much again as garbage; they go back to the system
// page by page, and all of them when the pages themselves are garbage. Where the system has no
// such memory, all are of the heap.
type pages struct {
	// heap is how many more are taken from the heap.
	heap  int
	slabs *slabs
	// idle are pages with their memory, and empty those that gave it back.
	idle, empty [][]byte
}

// slabs are what the system gave. Nothing leads from them to their pages, which would keep them.
type slabs struct{ all [][]byte }

func newPages(heap int) *pages {
	p := &pages{heap: heap, slabs: new(slabs)}
	runtime.AddCleanup(p, (*slabs).free, p.slabs)
	return p
}

// take returns a page, whose content is arbitrary, and whether it is of the heap.
func (p *pages) take() (page []byte, ofHeap bool) {
	if p.heap > 0 || !p.mapped() {
		p.heap--
		return make([]byte, chunkMax), true
	}
	from := &p.idle
	if len(p.idle) == 0 {
		from = &p.empty
	}
	last := len(*from) - 1
	page, *from = (*from)[last], (*from)[:last]
	return page, false
}

// mapped reports whether there is a page that is not of the heap.
func (p *pages) mapped() bool {
	if len(p.idle)+len(p.empty) > 0 {
		return true
	}
	slab := mapSlab(slabSize)
	if slab == nil {
		return false
	}
	p.slabs.all = append(p.slabs.all, slab)
	for ; len(slab) > 0; slab = slab[chunkMax:] {
		p.empty = append(p.empty, slab[:chunkMax:chunkMax])
	}
	return true
}

// give takes a page back.
func (p *pages) give(page []byte, ofHeap bool) {
	switch {
	case ofHeap:
		p.heap++
	case len(p.idle) >= idlePages && forget(page):
		p.empty = append(p.empty, page)
	default:
		p.idle = append(p.idle, page)
	}
}

func (s *slabs) free() {
	for _, slab := range s.all {
		unmapSlab(slab)
	}
}

package peerworker

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxCached is how many bytes of outcomes wait in memory; beyond it they are read
// again when they are sent.
const maxCached = 32 << 20

// noRoom is why an order is not taken that another worker may take.
const noRoom = "the worker has as much as it takes, of this head or of all"

// isCrowded reports whether the worker has as much as it takes.
func (w *Worker) isCrowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chunks) >= w.options.MaxChunks || w.items > w.options.MaxItems || w.bytes > w.options.MaxBytes
}

// admit adds a chunk unless there is one of its name. Items that other chunks have
// go to the new one.
func (w *Worker) admit(c *chunk, size int64) bool {
	w.mu.Lock()
	if w.chunks[c.name] != nil {
		w.mu.Unlock()
		return false
	}
	w.chunks[c.name] = c
	if c.record.Number == 0 {
		c.record.Number = w.numbered + 1
	}
	w.numbered = max(w.numbered, c.record.Number)
	w.items += len(c.ids)
	w.bytes += size
	w.useOf(c.name.head).add(use{chunks: 1, items: len(c.ids), bytes: size})
	c.bytes = size
	var moved []place
	for i, id := range c.ids {
		if at, found := w.places[id]; found {
			moved = append(moved, at)
		}
		w.places[id] = place{c, i}
	}
	w.mu.Unlock()
	for _, at := range moved {
		at.chunk.moveAway(at.index)
	}
	return true
}

// remove takes a chunk away.
func (w *Worker) remove(c *chunk) {
	c.mu.Lock()
	size := c.bytes
	c.bytes = 0
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	c.forgetCached(queue)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks[c.name] != c {
		return
	}
	delete(w.chunks, c.name)
	w.items -= len(c.ids)
	w.bytes -= size
	w.useOf(c.name.head).add(use{chunks: -1, items: -len(c.ids), bytes: -size})
	w.forgetUse(c.name.head, w.options.clock.Now())
	for _, id := range c.ids {
		if w.places[id].chunk == c {
			delete(w.places, id)
		}
	}
	close(c.gone)
	if l := w.links[c.name.head]; l != nil && !l.isConnected() {
		w.spawn(func() { w.forgetLink(c.name.head) })
	}
}

// own returns those futures that no other chunk has taken over.
func (w *Worker) own(c *chunk, ids []layout.ID) []layout.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(ids, func(id layout.ID) bool {
		at, found := w.places[id]
		return found && at.chunk != c
	})
}

// charge adds to what the worker holds.
func (c *chunk) charge(size int64) {
	w := c.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks[c.name] == c { // else remove has given back what was charged
		w.bytes += size
		w.useOf(c.name.head).bytes += size
	}
}

// restrain has no function begin while heads have not acknowledged as much as the worker
// keeps, or maxOvercommit times that while one of them is within its share. It is told what is
// kept for each head.
func (w *Worker) restrain(by map[string]int64) {
	kept, within := int64(0), false
	for head, n := range by {
		kept += n
		within = within || n <= w.bytesShare(head, w.options.MaxBytes)
	}
	full := kept > w.options.MaxBytes && (!within || kept > maxOvercommit*w.options.MaxBytes)
	if w.full.Swap(full) == full {
		return
	}
	if !full {
		w.node.worker.Resume()
		return
	}
	w.node.worker.Pause()
	w.log.Warn("results wait for their heads, and are as much as this worker keeps; it begins nothing until they are "+
		"acknowledged", "bytes", kept, "most", w.options.MaxBytes)
}

// mayCache reports whether the outcome of a result of so many bytes may wait in
// memory, and counts it if so.
func (w *Worker) mayCache(size int64) bool {
	if size > maxInline {
		size = 0 // a blob
	}
	if w.cached.Add(size) > maxCached {
		w.cached.Add(-size)
		return false
	}
	return true
}

func (w *Worker) uncache(size int64) {
	if size <= maxInline {
		w.cached.Add(-size)
	}
}

// forgetCached ends the waiting of outcomes.
func (c *chunk) forgetCached(all []ended) {
	w := c.worker
	for _, e := range all {
		if e.outcome == nil || e.kept {
			continue
		}
		w.uncache(e.size)
		if e.outcome.Blob != nil {
			w.blobs.drop(blobName{c.name.head, e.outcome.Blob.ID}, c.ids[e.index])
		}
	}
}

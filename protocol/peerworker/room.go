package peerworker

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxCached is how many bytes of outcomes wait in memory; beyond it they are read
// again when they are sent.
const maxCached = 32 << 20

// hasRoom reports whether an order of so many items and bytes of arguments fits.
func (w *Worker) hasRoom(items int, size int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chunks) < w.options.MaxChunks && w.items+items <= w.options.MaxItems &&
		w.bytes+size <= w.options.MaxBytes
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
func (w *Worker) charge(size int64) {
	w.mu.Lock()
	w.bytes += size
	w.mu.Unlock()
}

// restrain has no function begin while heads have not acknowledged as much as the worker
// keeps.
func (w *Worker) restrain(kept int64) {
	full := kept > w.options.MaxBytes
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

package peerworker

// noRoom is why an order is not taken that another worker may take.
const noRoom = "the worker has as much as it takes, of this head or of all"

// isCrowded reports whether the worker has as much as it takes.
func (w *Worker) isCrowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := w.most()
	return w.has.chunks >= most.chunks || w.has.items > most.items || w.has.bytes > most.bytes
}

// admit adds a chunk unless there is one of its name, or other orders that came at once have taken the room for it,
// which a chunk that was here before has anyway. Items that other chunks have go to the new one.
func (w *Worker) admit(c *chunk, size int64) bool {
	takes := use{chunks: 1, items: len(c.ids), bytes: size}
	w.mu.Lock()
	if w.chunks[c.name] != nil || !c.kept && !w.takes(c.name.head, takes) {
		w.mu.Unlock()
		return false
	}
	w.chunks[c.name] = c
	if c.number == 0 {
		c.number = w.numbered + 1
	}
	w.numbered = max(w.numbered, c.number)
	w.account(c, takes)
	c.bytes, c.ordered = size, size
	for i, id := range c.ids {
		if at, found := w.places[id]; found {
			c.moved = append(c.moved, at)
		}
		w.places[id] = place{c, i}
	}
	w.mu.Unlock()
	for _, at := range c.moved {
		at.chunk.moveAway(at.index)
	}
	return true
}

// account adds to what the worker has, and its heads. It is called under mu.
func (w *Worker) account(c *chunk, more use) {
	if c.order == nil { // heads of b7s take nothing before all has run
		more.unsent = more.bytes
	}
	w.has.add(more)
	w.useOf(c.name.head).add(more)
}

// remove takes a chunk away.
func (w *Worker) remove(c *chunk) {
	c.mu.Lock()
	size := c.bytes
	c.bytes = 0
	c.queue = nil
	c.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks[c.name] != c {
		return
	}
	delete(w.chunks, c.name)
	w.account(c, use{chunks: -1, items: -len(c.ids), bytes: -size, results: c.ordered - size})
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

// charge adds to what the worker holds.
func (c *chunk) charge(size int64) {
	w := c.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks[c.name] == c { // else remove has given back what was charged
		w.account(c, use{bytes: size, results: size})
	}
}

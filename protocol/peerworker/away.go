package peerworker

import "time"

// awayFor is how long orders and results are kept of a head that is away and that the worker does
// not name: it may be anyone, and may never come back. Heads in Options.Heads may be away for any
// time.
const awayFor = time.Hour

// dropAway forgets what heads have that are away for too long. Only keepLoop calls it.
func (w *Worker) dropAway() {
	now, away := w.options.clock.Now(), map[string]time.Time{}
	for _, c := range w.all() {
		head := c.name.head
		if w.isNamed(head) || w.isThere(head) {
			continue
		}
		since, known := w.away[head]
		if !known {
			since = now
		}
		if away[head] = since; now.Sub(since) < awayFor || c.isOver() {
			continue
		}
		w.rare.Warn("an order is forgotten, with its results: its head, which this worker does not name, does not come back",
			"head", head, "chunk", c.name.chunk, "after", awayFor)
		c.drop("its head is away")
	}
	w.away = away
}

// isThere reports whether a head is connected.
func (w *Worker) isThere(head string) bool {
	w.mu.Lock()
	l := w.links[head]
	w.mu.Unlock()
	return l != nil && l.isConnected()
}

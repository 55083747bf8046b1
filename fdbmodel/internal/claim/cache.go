package claim

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxCommitted is how many futures of claims that committed a cache remembers.
// Forgetting one too early costs a conflict and nothing else.
const maxCommitted = 4096

// Cache holds the futures that claims of this process are about to take, and
// those that they took at a version which another claim's snapshot may precede.
// Workers that share a process so never compete for a future, and take futures
// in the order of the index.
type Cache struct {
	mu        sync.Mutex
	taken     map[layout.ID]taking
	flying    int                     // futures whose claims are in flight
	committed [maxCommitted]layout.ID // a ring
	next      int                     // in committed
}

// taking is a claim of a future.
type taking struct {
	at    kv.Version // of the claim, inFlight until it is known
	until time.Time  // snapshots that precede it have ended, unless it is in flight
}

// inFlight is later than every snapshot.
const inFlight = kv.Version(1<<63 - 1)

// hides reports whether a snapshot may show a future that the claim has. A later
// snapshot at a lower version is of a store that was restored from a backup, in
// which the future may be ready again.
func (t taking) hides(snapshot kv.Version, now time.Time) bool {
	return snapshot < t.at && (t.at == inFlight || now.Before(t.until))
}

// Gone reports whether another claim has a future, as far as a snapshot at a
// version can tell.
func (c *Cache) Gone(id layout.ID, snapshot kv.Version, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[id].hides(snapshot, now)
}

// HasCommitted is Gone for claims that took their futures. A caller that relied on one in
// flight could wait for ever.
func (c *Cache) HasCommitted(id layout.ID, snapshot kv.Version, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.taken[id]
	return t.at != inFlight && t.hides(snapshot, now)
}

// Take enters a future for a claim whose snapshot is at a version. It returns
// false if another claim has it.
func (c *Cache) Take(id layout.ID, snapshot kv.Version, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[id].hides(snapshot, now) {
		return false
	}
	if c.taken == nil {
		c.taken = map[layout.ID]taking{}
	}
	c.taken[id] = taking{at: inFlight}
	c.flying++
	return true
}

// Release removes futures of a claim that did not take them, or whose commit has
// an unknown result: if that commits, later claims of them conflict.
func (c *Cache) Release(entries []layout.ReadyEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range entries {
		delete(c.taken, entries[i].ID)
	}
	c.flying -= len(entries)
}

// Commit records that a claim took its futures at a version.
func (c *Cache) Commit(entries []layout.ReadyEntry, at kv.Version, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range entries {
		if old := c.committed[c.next]; c.taken[old].at != inFlight {
			delete(c.taken, old)
		}
		c.committed[c.next] = entries[i].ID
		c.next = (c.next + 1) % maxCommitted
		c.taken[entries[i].ID] = taking{at, now.Add(kv.TxLifetime)}
	}
	c.flying -= len(entries)
}

// InFlight is how many futures a snapshot may show that other claims have.
func (c *Cache) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flying
}

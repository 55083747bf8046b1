package peerhead

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// cachedFor is how long the result of an attempt is cached until the attempt is claimed.
const cachedFor = 10 * time.Minute

// attempt is one attempt of a future.
type attempt struct {
	id     layout.ID
	number int
}

// resultCache has results of attempts that are not claimed: those of earlier
// memberships.
type resultCache struct {
	most  int64
	clock clock.Clock

	mu     sync.Mutex
	size   int64
	ofPeer map[PeerID]int64 // bytes
	by     map[attempt]cachedResult
}

type cachedResult struct {
	out  workers.RemoteOutcome
	from PeerID
	at   time.Time
}

// peerShare is the part of the cache that one peer may fill: one in so many.
const peerShare = 4

func newResultCache(most int64, c clock.Clock) *resultCache {
	return &resultCache{most: most, clock: c, ofPeer: map[PeerID]int64{}, by: map[attempt]cachedResult{}}
}

func sizeOf(out *workers.RemoteOutcome) int64 {
	const fixed = 200
	return int64(fixed + len(out.Value) + len(out.Stderr) + len(out.Message))
}

// put caches a result, and reports whether there was room, also for the peer.
func (c *resultCache) put(a attempt, from PeerID, out workers.RemoteOutcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.by[a]; known {
		return true
	}
	n := sizeOf(&out)
	if c.size+n > c.most || c.ofPeer[from]+n > max(c.most/peerShare, peerMin) {
		return false
	}
	c.by[a] = cachedResult{out, from, c.clock.Now()}
	c.size += n
	c.ofPeer[from] += n
	return true
}

// peerMin is what a peer may always have, if there is room: its largest result.
const peerMin = layout.MaxPut + 1<<20

// sweep drops what is too old.
func (c *resultCache) sweep(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, r := range c.by {
		if now.Sub(r.at) >= cachedFor {
			c.drop(a, &r)
		}
	}
}

// drop is called under mu.
func (c *resultCache) drop(a attempt, r *cachedResult) {
	n := sizeOf(&r.out)
	c.size -= n
	if c.ofPeer[r.from] -= n; c.ofPeer[r.from] == 0 {
		delete(c.ofPeer, r.from)
	}
	delete(c.by, a)
}

// take returns the result of an attempt, and drops it.
func (c *resultCache) take(id layout.ID, number int) (workers.RemoteOutcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := attempt{id, number}
	r, found := c.by[a]
	if found {
		c.drop(a, &r)
	}
	return r.out, found
}

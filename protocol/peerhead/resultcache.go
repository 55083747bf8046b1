package peerhead

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
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

// What a peer is told of a chunk that the head does not know.
const (
	incomparable = "results are compared here, which these can't be any more"
	proofWanted  = "the chunk is not known here: send its items too"
	neverGiven   = "the chunk was not given to this peer with these items"
)

// mayCount reports whether the result of an attempt may still count: the future is not over, and no other attempt
// has begun.
func mayCount(row *layout.Row, attempt int) bool {
	ending := row.Ending()
	return row.Spec != nil && !ending.Over() && row.Attempts.Failed+1 == attempt
}

// rowsAtOnce is how many futures are read in one transaction.
const rowsAtOnce = 500

// unwanted returns which items of a chunk of an earlier membership, or process of the head, need not go on, by their
// places: those whose results can't count, and those that are to be cancelled.
func (h *Head) unwanted(ctx context.Context, p *peer, m *protocol.WorkOrderProgress) (protocol.Code, string, []int) {
	switch {
	case h.options.Verify.on():
		return protocol.CodeGone, incomparable, nil
	case len(m.Order) == 0:
		return protocol.CodeConflict, proofWanted, nil
	case !sameMAC(orderMAC(h.options.Key, p.id, m.ChunkID, m.Order), m.OrderMAC):
		p.fault(1)
		return protocol.CodeGone, neverGiven, nil
	}
	wanted := make(map[layout.ID]int, len(m.Order)) // the attempt that is
	ids := make([]layout.ID, len(m.Order))
	for i := range m.Order {
		id, err := layout.ParseID(m.Order[i].ID)
		if err != nil {
			return protocol.CodeInvalid, err.Error(), nil
		}
		ids[i] = id
	}
	for some := range slices.Chunk(ids, rowsAtOnce) {
		rows, err := h.options.Cluster.GetMany(ctx, some)
		if err != nil {
			return protocol.CodeUnavailable, err.Error(), nil
		}
		for i := range rows {
			if row := &rows[i]; row.Cancel == nil && mayCount(row, row.Attempts.Failed+1) {
				wanted[row.ID] = row.Attempts.Failed + 1
			}
		}
	}
	var unwanted []int
	for i, id := range ids {
		if attempt, is := wanted[id]; !is || attempt != m.Order[i].Attempt {
			unwanted = append(unwanted, i)
		}
	}
	if len(unwanted) == len(ids) {
		return protocol.CodeGone, "no item of the chunk is wanted any more", nil
	}
	return protocol.CodeOK, "", unwanted
}

// late caches the results of a chunk that the peer was given in an earlier membership, or
// by an earlier process of the head: its order MAC says so. They count when the same
// attempts are claimed again. Large values stay with the peer until then.
func (h *Head) late(ctx context.Context, p *peer, r *protocol.WorkOrderBatchResponse) (protocol.Code, string) {
	if h.options.Verify.on() {
		return protocol.CodeGone, incomparable
	}
	if len(r.Items) == 0 && len(r.Outcomes) > 0 {
		return protocol.CodeConflict, proofWanted
	}
	if !sameMAC(orderMAC(h.options.Key, p.id, r.ChunkID, r.Items), r.OrderMAC) {
		p.refused.Add(int64(len(r.Outcomes)))
		p.fault(1)
		return protocol.CodeGone, neverGiven
	}
	wanted := map[layout.ID]int{} // by future, the place of its item
	var ids []layout.ID
	for i := range r.Outcomes {
		index := r.Outcomes[i].Index
		if index < 0 || index >= len(r.Items) {
			p.refused.Add(1)
			p.fault(1)
			continue
		}
		id, err := layout.ParseID(r.Items[index].ID)
		if err != nil {
			return protocol.CodeInvalid, err.Error()
		}
		if _, twice := wanted[id]; !twice {
			wanted[id] = i
			ids = append(ids, id)
		}
	}
	rows, err := h.options.Cluster.GetMany(ctx, ids)
	if err != nil {
		return protocol.CodeUnavailable, err.Error()
	}
	large := false
	for i := range rows {
		row := &rows[i]
		x := &r.Outcomes[wanted[row.ID]]
		number := r.Items[x.Index].Attempt
		if !mayCount(row, number) || !x.OK() {
			continue // what failed is run again
		}
		at := attempt{row.ID, number}
		out := h.outcome(p.id, at, x)
		large = large || out.Large != nil
		if !h.cache.put(at, p.id, out) {
			return protocol.CodeUnavailable, fmt.Sprintf(
				"too many bytes of results are cached: at most %d, and of one peer 1/%d", h.options.MaxCached, peerShare)
		}
	}
	if large {
		return protocol.CodeUnavailable, "a value is fetched once its attempt is claimed: keep it"
	}
	return protocol.CodeOK, ""
}

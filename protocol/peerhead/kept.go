package peerhead

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// keptFor is how long the result of an attempt is kept until the attempt is claimed.
const keptFor = 10 * time.Minute

// attempt is one attempt of a future.
type attempt struct {
	id     layout.ID
	number int
}

// keptResults are results of attempts that are not claimed: those of earlier
// memberships.
type keptResults struct {
	most  int64
	clock clock.Clock

	mu     sync.Mutex
	size   int64
	ofPeer map[PeerID]int64 // bytes
	by     map[attempt]keptResult
}

type keptResult struct {
	out  workers.RemoteOutcome
	from PeerID
	at   time.Time
}

// peerKept is which part of all that is kept one peer may have.
const peerKept = 4

func newKeptResults(most int64, c clock.Clock) *keptResults {
	return &keptResults{most: most, clock: c, ofPeer: map[PeerID]int64{}, by: map[attempt]keptResult{}}
}

func sizeOf(out *workers.RemoteOutcome) int64 {
	const fixed = 200
	return int64(fixed + len(out.Value) + len(out.Stderr) + len(out.Message))
}

// put keeps a result, and reports whether there was room, also for the peer.
func (k *keptResults) put(a attempt, from PeerID, out workers.RemoteOutcome) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.by[a]; known {
		return true
	}
	n := sizeOf(&out)
	if k.size+n > k.most || k.ofPeer[from]+n > max(k.most/peerKept, oneKept) {
		return false
	}
	k.by[a] = keptResult{out, from, k.clock.Now()}
	k.size += n
	k.ofPeer[from] += n
	return true
}

// oneKept is what a peer may always have, if there is room: its largest result.
const oneKept = layout.MaxPut + 1<<20

// sweep drops what is too old.
func (k *keptResults) sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for a, r := range k.by {
		if now.Sub(r.at) >= keptFor {
			k.drop(a, &r)
		}
	}
}

// drop is called under mu.
func (k *keptResults) drop(a attempt, r *keptResult) {
	n := sizeOf(&r.out)
	k.size -= n
	if k.ofPeer[r.from] -= n; k.ofPeer[r.from] == 0 {
		delete(k.ofPeer, r.from)
	}
	delete(k.by, a)
}

// take returns the result of an attempt, and keeps it no longer.
func (k *keptResults) take(id layout.ID, number int) (workers.RemoteOutcome, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := attempt{id, number}
	r, found := k.by[a]
	if found {
		k.drop(a, &r)
	}
	return r.out, found
}

// late keeps the results of a chunk that the peer was given in an earlier membership, or
// by an earlier process of the head: its ticket says so. They count when the same
// attempts are claimed again. Large values stay with the peer until then.
func (h *Head) late(ctx context.Context, p *peer, r *protocol.WorkOrderBatchResponse) (protocol.Code, string) {
	if h.options.Verify.on() {
		return protocol.CodeGone, "results are compared here, which these can't be any more"
	}
	if len(r.Items) == 0 && len(r.Outcomes) > 0 {
		return protocol.CodeConflict, "the chunk is not known here: send its items too"
	}
	if !sameTicket(ticket(h.options.Key, p.id, r.ChunkID, r.Items), r.Ticket) {
		p.refused.Add(int64(len(r.Outcomes)))
		p.fault(1)
		return protocol.CodeGone, "the chunk was not given to this peer with these items"
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
		ending := row.Ending()
		if row.Spec == nil || ending.Over() || row.Attempts.Failed+1 != number || !x.OK() {
			continue // over, or another attempt; what failed is run again
		}
		at := attempt{row.ID, number}
		out := h.outcome(p.id, at, x)
		large = large || out.Large != nil
		if !h.kept.put(at, p.id, out) {
			return protocol.CodeUnavailable, fmt.Sprintf(
				"too many bytes of results are kept: at most %d, and of one peer 1/%d", h.options.MaxKept, peerKept)
		}
	}
	if large {
		return protocol.CodeUnavailable, "a value is fetched once its attempt is claimed: keep it"
	}
	return protocol.CodeOK, ""
}

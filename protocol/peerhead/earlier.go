package peerhead

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// Chunks of earlier memberships, or of an earlier process of the head: what their peers say of them is heard too, as
// their results may still count.

// What a peer is told of such a chunk.
const (
	incomparable = "results are compared here, which these can't be any more"
	proofWanted  = "the chunk is not known here: send its items too"
	neverGiven   = "the chunk was not given to this peer with these items"
)

// attemptOf returns the attempt of a future whose result may count, 0 if the future is over.
func attemptOf(row *layout.Row) int {
	if ending := row.Ending(); row.Spec == nil || ending.Over() {
		return 0
	}
	return row.Attempts.Failed + 1
}

// rowsAtOnce is how many futures are read in one transaction.
const rowsAtOnce = 500

// unwanted returns which items of a chunk need not go on, by their places: those whose results can't count, and
// those that are to be cancelled.
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
	ids := make([]layout.ID, len(m.Order))
	for i := range m.Order {
		var err error
		if ids[i], err = layout.ParseID(m.Order[i].ID); err != nil {
			return protocol.CodeInvalid, err.Error(), nil
		}
	}
	wanted := make(map[attempt]bool, len(ids))
	for some := range slices.Chunk(ids, rowsAtOnce) {
		rows, err := h.options.Cluster.GetMany(ctx, some)
		if err != nil {
			return protocol.CodeUnavailable, err.Error(), nil
		}
		for i := range rows {
			if number := attemptOf(&rows[i]); number > 0 && rows[i].Cancel == nil {
				wanted[attempt{rows[i].ID, number}] = true
			}
		}
	}
	var unwanted []int
	for i, id := range ids {
		if !wanted[attempt{id, m.Order[i].Attempt}] {
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
		if attemptOf(row) != number || !x.OK() {
			continue // what failed is run again
		}
		at := attempt{row.ID, number}
		out, err := h.outcome(p.id, at, x)
		if err != nil {
			p.refused.Add(1)
			p.fault(1)
			continue
		}
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

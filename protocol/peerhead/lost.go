package peerhead

import (
	"cmp"
	"maps"
	"slices"
)

// maxLost is how many peers that went are remembered.
const maxLost = 500

// lostPeer is a peer that went.
type lostPeer struct {
	Peer
	rank int
}

// Ranks of peers that went: of any number of keys that a stranger makes, none pushes out one
// of a higher rank.
const (
	lostIdle    = iota // it ended no item
	lostUsed           // it did
	lostTrusted        // the head's user knows it
)

func rankOf(d *Peer, trusted bool) int {
	switch {
	case trusted:
		return lostTrusted
	case d.Done+d.Failed > 0:
		return lostUsed
	}
	return lostIdle
}

// keepLost remembers a peer that goes, if it was a worker. Beyond maxLost those of the lowest
// rank are forgotten, the first that went first. It is called under mu.
func (h *Head) keepLost(p *peer, trusted bool) {
	d := p.describe()
	if d.Dialect == "unknown" || d.Slots == 0 {
		return
	}
	p.mu.Lock()
	d.LostAt, d.Left = p.away, p.leaves.Load()
	p.mu.Unlock()
	d.Connected, d.Limit, d.Transfers = false, 0, nil
	h.lost[p.id] = &lostPeer{d, rankOf(&d, trusted)}
	if len(h.lost) <= maxLost {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(h.lost)), func(a, b *lostPeer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.LostAt.Compare(b.LostAt), cmp.Compare(a.ID, b.ID))
	})
	delete(h.lost, oldest.ID)
}

// resume gives a peer that comes back the counts that it had. It is called under mu.
func (h *Head) resume(p *peer) {
	h.dropLost()
	l := h.lost[p.id]
	if l == nil {
		return
	}
	delete(h.lost, p.id)
	p.done.Store(l.Done)
	p.failed.Store(l.Failed)
	p.refused.Store(l.Refused)
	p.disagreed.Store(l.Disagreed)
	p.takenBack.Store(l.TakenBack)
	h.gone.subtract(p)
}

// dropLost forgets peers that went too long ago. It is called under mu.
func (h *Head) dropLost() {
	now := h.clock.Now()
	for id, l := range h.lost {
		if now.Sub(l.LostAt) >= h.options.KeepLost {
			delete(h.lost, id)
		}
	}
}

// Lost are workers that went within Options.KeepLost, by their ids: as they were, with what they
// did. Of more than 500 those are left out that ended no item, then those that are not trusted,
// and of them those that went first. One that comes back is in Peers again, with its counts.
func (h *Head) Lost() []Peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropLost()
	list := make([]Peer, 0, len(h.lost))
	for _, l := range h.lost {
		list = append(list, l.Peer)
	}
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

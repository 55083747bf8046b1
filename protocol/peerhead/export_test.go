package peerhead

// Absent is how many scores are kept of peers that are not here.
func (h *Head) Absent() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.absent)
}

// Prove has a head take a peer for one that has answered all that it claims to take.
func (h *Head) Prove(id PeerID) {
	p := h.peer(id)
	p.score.lasts(maxSlots)
	p.settleLimit()
}

// LookForWorkers has a head do so.
func (h *Head) LookForWorkers() { h.lookForWorkers() }

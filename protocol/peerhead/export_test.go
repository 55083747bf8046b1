package peerhead

// Absent is how many scores are kept of peers that are not here.
func (h *Head) Absent() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.absent)
}

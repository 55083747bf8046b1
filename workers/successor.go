package workers

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// finishAndClaim is finish that goes on with the next futures of the lanes whose slots become free, as far as
// the worker has room for them.
func (m *membership) finishAndClaim(ctx context.Context, batch []fdbmodel.Completion) ([]fdbmodel.Completion, error) {
	inLanes := 0
	for i := range batch {
		if spec := batch[i].Future.Spec; spec != nil && !spec.Lane.IsZero() {
			inLanes++
		}
	}
	request := m.offer(ctx, inLanes)
	if request.Max == 0 {
		return m.finish(ctx, batch)
	}
	outcomes, claimed, err := m.reg.EndAndClaim(ctx, batch, request)
	for _, j := range m.worker.slots.accept(m, claimed, request.Max) {
		j.relinquish()
	}
	m.worker.slots.watchHeld()
	return m.ended(ctx, batch, outcomes, err)
}

// offer says what to claim with completions of which n are of lanes. What it offers counts as used until it
// is accepted.
func (m *membership) offer(ctx context.Context, n int) fdbmodel.ClaimRequest {
	if m.closing.Load() || m.worker.paused.Load() {
		return fdbmodel.ClaimRequest{}
	}
	request := m.worker.slots.offer(m.runs, n)
	if request.Max == 0 {
		return request
	}
	if may, _, err := quota.Of(m.worker.cluster).MayClaim(ctx, request.Max); err != nil || may < request.Max {
		m.worker.slots.accept(m, nil, request.Max)
		return fdbmodel.ClaimRequest{}
	}
	if m.kept != nil {
		m.fitStore(&request)
	}
	return request
}

const (
	// minOffer is how many successors may come while none came of late.
	minOffer = 4
	// succeedMax bounds what waits for a slot, successors included. They take the place of what ends, so what was claimed
	// from the pool must leave them room.
	succeedMax = 2 * aheadMax
)

// offer is request for up to n futures that come with what ends. It offers not much more than came of late: what
// it offers can't be claimed meanwhile. Where nothing of a lane ends, less will come.
func (s *slots) offer(runs func(string) bool, n int) fdbmodel.ClaimRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		s.succeeded /= 2
		return fdbmodel.ClaimRequest{}
	}
	room := min(s.unused(s.aheadUpTo(succeedMax), s.unblocked()), minOffer+2*s.succeeded)
	request := fdbmodel.ClaimRequest{Runs: runs, Max: max(0, min(n, room))}
	if s.closed || s.lean || s.quarantine.job != nil {
		request.Max = 0
	}
	if open := s.ofOpen(runs); open != nil {
		request.Runs = open
	}
	s.offered += request.Max
	return request
}

// accept is admit for what came of an offer.
func (s *slots) accept(m *membership, futures []fdbmodel.ClaimedFuture, offered int) (unwanted []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered -= offered
	s.succeeded += (len(futures) - s.succeeded) / 2
	unwanted = s.enqueue(m, futures, false)
	s.feed()
	return unwanted
}

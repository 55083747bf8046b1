package workers

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Context returns the context of the member alone. It ends with that of the call, and
// before it when the member is cancelled, with the cause ErrCancelled, or when its
// deadline has passed, with ErrDeadline. An end that the function returns for it is then
// ignored, but for a result of one that was cancelled, which counts.
func (m *Member) Context() context.Context {
	if m.ctx == nil {
		return context.Background()
	}
	return m.ctx
}

// gather is a Gather under way, and the cancels that came before what it takes did.
type gather struct{ early map[layout.ID]struct{} }

// beginGather has cancels of futures that are not known yet kept for the bundle.
func (s *slots) beginGather() *gather {
	g := &gather{early: map[layout.ID]struct{}{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathers[g] = struct{}{}
	return g
}

// endGather makes the members known, those of the bundle and those that were gathered now.
func (s *slots) endGather(g *gather, j *job, members []*job, got []fdbmodel.ClaimedFuture) []*job {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gathers, g)
	for i := range got {
		m := &job{membership: j.membership, future: got[i], claimed: now, started: now}
		m.ctx, m.cancel = context.WithCancelCause(jobContext{j.ctx, j})
		if _, early := g.early[m.future.ID]; early || m.future.Cancel != nil {
			m.cancel(ErrCancelled)
		}
		members = append(members, m)
	}
	j.bundled.Store(&members)
	return members
}

// beginCall returns the members that are still wanted: from now on, the call ends with
// the last of them.
func (s *slots) beginCall(j *job, members []*job) (wanted, unwanted []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.calling = true
	for _, m := range members {
		if m.wanted() {
			wanted = append(wanted, m)
		} else {
			unwanted = append(unwanted, m)
		}
	}
	return wanted, unwanted
}

// wanted reports whether a member was neither cancelled nor ended.
func (j *job) wanted() bool { return j.ctx.Err() == nil && !j.settled.Load() }

// cancelMember ends the context of a member of a running bundle. It is called under mu.
func (s *slots) cancelMember(id layout.ID) (found bool) {
	for j := range s.running {
		members := j.bundled.Load()
		if members == nil {
			continue
		}
		for _, m := range *members {
			if m.future.ID == id && !m.settled.Load() {
				m.cancel(ErrCancelled)
				j.endIfUnwanted()
				return true
			}
		}
	}
	return false
}

// endIfUnwanted ends the context of a call whose members were all cancelled, or have
// ended. It is called under mu.
func (j *job) endIfUnwanted() {
	members := j.bundled.Load()
	if !j.calling || members == nil {
		return
	}
	for _, m := range *members {
		if m.wanted() {
			return
		}
	}
	if j.ctx.Err() == nil {
		j.unwanted.Store(true)
		j.cancel(ErrCancelled)
	}
}

func (s *slots) endIfUnwanted(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.endIfUnwanted()
}

// boundMembers ends members at their deadlines, until stop is called.
func (w *Worker) boundMembers(j *job, members []*job) (stop func()) {
	var stops []func()
	for _, m := range members {
		deadline := m.futureDeadline()
		if m.boundBy(deadline); deadline.IsZero() || !w.cluster.Now().Before(deadline) {
			continue // without one, or it does not begin any more
		}
		stops = append(stops, w.cluster.Clock().AfterFunc(deadline, func() {
			m.expire()
			w.slots.endIfUnwanted(j)
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

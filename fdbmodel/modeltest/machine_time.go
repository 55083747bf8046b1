package modeltest

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// limit gives some futures a time to begin, or to be over.
func (m *Machine) limit(s *layout.Spec) {
	soon := func() int64 { return layout.Millis(m.Clock.Now()) + 1 + int64(m.random.IntN(6000)) }
	switch m.random.IntN(8) {
	case 0:
		s.ExpiresAt = soon()
	case 1:
		s.Deadline = soon()
	case 2:
		s.ExpiresAt, s.Deadline = soon(), soon()
	}
}

// overdue ends futures whose time is over.
func (m *Machine) overdue(ctx context.Context) (change, error) {
	m.Clock.Advance(time.Duration(m.random.IntN(2000)) * time.Millisecond)
	n, _, err := maintenance.Of(m.C).EndOverdue(ctx)
	m.logf("end overdue: %d %v", n, err)
	return func(before, after *layout.Row) bool {
		return m.isOver(before, after) && before.State() != layout.Claimed
	}, err
}

// isOver reports whether a future has ended because its time is over.
func (m *Machine) isOver(before, after *layout.Row) bool {
	if before == nil || after == nil || before.State().Terminal() || after.State() != layout.Failed {
		return false
	}
	at, kind := before.Limit()
	return at != 0 && at <= layout.Millis(m.Clock.Now()) && after.Exception.Kind == kind
}

// endsOver reports whether the end of a claim has ended a future because its time is
// over.
func (m *Machine) endsOver(before, after *layout.Row) bool {
	return m.isOver(before, after) && before.State() == layout.Claimed
}

// startedOver is what retrying a failed future makes of its counts.
func startedOver(before *layout.Row) layout.Attempts {
	at, _ := before.Spec.LimitAt()
	return layout.Attempts{Reason: before.Attempts.Reason, Lifted: at != 0}
}

func snoozed(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	wait := time.Duration(f.Attempts.Failed) * time.Second
	return fdbmodel.Completion{Future: f, Snooze: &wait}
}

func expired(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Expire: true}
}

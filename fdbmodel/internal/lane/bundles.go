package lane

import "github.com/futura-run/futura/fdbmodel/layout"

// call admits a bundle to a lane: a future that gathers members once a worker has claimed
// it. It is queued and sized as the first one in line, and runs its function. A member is
// one for good, also of a kind that has no bundles any more. It admits none while another
// has yet to gather.
func (a *admission) call(l *state, first *layout.Spec) (more, admitted bool, err error) {
	if l.record.Called > 0 {
		l.quota = 0
		return false, false, nil
	}
	id, err := a.Model.DrawID()
	if err != nil {
		return false, false, err
	}
	row := &layout.Row{ID: id, Spec: &layout.Spec{
		Function: first.Function, Codec: layout.CodecRaw, Queue: first.Queue, Priority: first.Priority,
		Requirements: first.Requirements, Timeout: first.Timeout, Lane: l.lane, Bundle: true,
		SubmittedAt: layout.Millis(a.now),
	}}
	a.Model.Insert(row)
	a.Model.Offer(row)
	l.record.Called++
	l.take(a.now)
	l.quota = 0
	return false, true, nil
}

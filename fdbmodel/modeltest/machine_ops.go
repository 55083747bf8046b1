package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

func none(_, _ *layout.Row) bool { return false }

// submit submits some futures of all kinds.
func (m *Machine) submit(ctx context.Context) (change, error) {
	subs := make([]fdbmodel.Submission, 1+m.random.IntN(3))
	for i := range subs {
		s := &subs[i]
		s.Spec = layout.Spec{
			Function: "go:f", Session: []layout.SessionID{"s1", "s2", ""}[m.random.IntN(3)], MaxRetries: m.random.IntN(3),
			Priority: uint8(m.random.IntN(2)), Requirements: layout.Requirements{CPU: int64(m.random.IntN(2))},
			Timeout: time.Duration(m.random.IntN(3)) * time.Second, Tags: m.tags(),
		}
		if m.random.IntN(4) == 0 {
			s.Spec.Owner, s.Spec.Lapses = "g", m.random.IntN(2) == 0
		}
		s.Spec.AsObject, s.Spec.AllowReconstruction = m.random.IntN(2) == 0, m.random.IntN(3) > 0
		switch m.random.IntN(4) {
		case 0:
			s.Key = fmt.Sprint(m.random.IntN(6))
			s.ID = layout.KeyedID(m.C.Name(), s.Key)
			s.Spec.Queue = layout.DefaultQueue
		case 1:
			s.NotBefore = m.Clock.Now().Add(time.Duration(m.random.IntN(3000)) * time.Millisecond)
		}
		if m.random.IntN(2) == 0 && s.Key == "" && s.Spec.Owner == "" {
			s.Inputs = m.inputs(subs[:i])
			m.approach(s)
		}
		m.drawLane(s)
		if m.random.IntN(6) == 0 && s.Key == "" && s.Spec.Lane.Kind != "bundle" {
			s.Spec.Function = moduleFunction
		}
		m.demand(&s.Spec, s.Key == "" && s.Spec.Lane.Kind != "bundle")
		m.drawUnique(s)
		m.limit(&s.Spec)
		if m.random.IntN(12) == 0 && s.Key == "" {
			s.Args = make([]byte, []int{2000, 20_000, 200_000}[m.random.IntN(3)])
		}
		if s.ID.IsZero() {
			drawn, err := m.C.DrawIDs(1)
			m.require(err)
			// A previously drawn id can be used only by naming it.
			if m.random.IntN(2) == 0 {
				s.ID = drawn[0]
			}
		}
	}
	return m.submitAll(ctx, subs)
}

func (m *Machine) submitAll(ctx context.Context, subs []fdbmodel.Submission) (change, error) {
	ids := map[layout.ID]bool{}
	answers, err := m.submitIn(ctx, subs)
	for _, a := range answers {
		ids[a.ID] = true
	}
	m.logf("submit %d: %v %v", len(subs), answers, err)
	if m.refusedAsNotUnique(err) || m.refusedAsFull(err, subs) || errors.Is(err, fdbmodel.ErrNotFound) {
		return none, nil // or the module is not stored
	}
	if errors.Is(err, layout.ErrBadSpec) && len(m.loose) > 0 {
		return none, nil // an input was discarded by an operation that was cut off
	}
	return func(before, after *layout.Row) bool {
		made := before == nil && (err != nil || ids[after.ID])
		if isReplaced(before, after, subs, made) || made && m.isUpstream(after) {
			return true
		}
		fresh := layout.Attempts{Due: after.Attempts.Due}
		if m.takesObjects(after) {
			fresh = placed(after)
		}
		return made && layout.PlaceOf(after) != nil && after.Attempts == fresh
	}, err
}

func (m *Machine) claim(ctx context.Context) (change, error) {
	w := m.worker(false)
	if id, waits := m.any(isAssigned); waits && m.random.IntN(2) == 0 && m.by(m.Rows[id].Attempts.Assigned) != nil {
		w = m.by(m.Rows[id].Attempts.Assigned)
	}
	if w == nil {
		return none, nil
	}
	free := layout.Resources{Slots: 2, CPU: 2, RAM: mostRAM}
	request := fdbmodel.ClaimRequest{Free: free, Max: 1 + m.random.IntN(4)}
	if most := m.random.IntN(4); most < 3 {
		request.Objects = &most
	}
	answer, err := w.Claim(ctx, request)
	doubt, now := w.doubt, m.Clock.Now()
	if wasCut(ctx, err) {
		w.doubt, doubt = true, true
	} else {
		w.doubt = false
	}
	m.logf("claim by %s (gone %t): %d %v", w.ID(), w.gone, len(answer.Futures), err)
	if w.gone && err == nil && len(answer.Futures) > 0 {
		m.fail("a dead worker has claimed")
	}
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone {
		err = nil
	}
	took := m.hold(w, &request, answer.Futures)
	return func(before, after *layout.Row) bool {
		switch {
		case before == nil || after == nil:
			return false
		case doubt && before.State() == layout.Claimed && before.Claim.Worker == w.ID():
			return true // given back, and perhaps taken again
		}
		return before.State() == layout.Ready && after.State() == layout.Claimed && after.Claim.Worker == w.ID() &&
			(doubt || took[after.ID]) && before.Attempts == after.Attempts && !passesOver(before, w.ID(), now)
	}, err
}

// ending is a possible outcome of a completion.
type ending struct {
	name   string
	to     []layout.State
	failed int
	back   int
	give   func(*fdbmodel.ClaimedFuture) fdbmodel.Completion
}

var endings = []ending{
	{"realize", []layout.State{layout.Realized}, 0, 0, realized},
	{"realize", []layout.State{layout.Realized}, 0, 0, realized},
	{"realize", []layout.State{layout.Realized}, 0, 0, realized},
	{"realize", []layout.State{layout.Realized}, 0, 0, realized},
	{"fail", []layout.State{layout.Delayed, layout.Failed}, 1, 0, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Exception: &layout.Exception{Kind: layout.KindError}}
	}},
	{"time out", []layout.State{layout.Delayed, layout.Failed}, 1, 0, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Exception: &layout.Exception{Kind: layout.KindTimeout}}
	}},
	{"use too much memory", []layout.State{layout.Delayed, layout.Failed}, 1, 0,
		func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
			return fdbmodel.Completion{Future: f, Exception: &layout.Exception{Kind: layout.KindMemory}}
		}},
	{"fail for good", []layout.State{layout.Failed}, 1, 0, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Exception: &layout.Exception{Kind: layout.KindError}, Permanent: true}
	}},
	{"fail and run at once", []layout.State{layout.Ready, layout.Failed}, 1, 0,
		func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
			return fdbmodel.Completion{Future: f, Exception: &layout.Exception{Kind: layout.KindPanic},
				RetryIn: new(time.Duration)}
		}},
	{"relinquish", []layout.State{layout.Ready, layout.Failed}, 0, 0, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}},
	{"snooze", []layout.State{layout.Delayed}, 0, 0, snoozed},
	{"expire", []layout.State{layout.Ready}, 0, 0, expired},
	{"reject", []layout.State{layout.Ready, layout.Delayed, layout.Failed}, 0, 1, reject},
}

var givenBack = ending{"relinquish", []layout.State{layout.Ready, layout.Failed}, 0, 0, nil}

// allows reports whether a completion may make this change to its row.
func (e *ending) allows(f *fdbmodel.ClaimedFuture, before, after *layout.Row) bool {
	if before == nil || after == nil || after.ID != f.ID || before.State() != layout.Claimed ||
		before.Claim.Token != f.Token || !slices.Contains(e.to, after.State()) {
		// A cancel request turns all but a result into a failure.
		return before != nil && after != nil && after.ID == f.ID && before.State() == layout.Claimed &&
			before.Claim.Token == f.Token && before.Cancel != nil && after.State() == layout.Failed && e.name != "realize"
	}
	if after.State() == layout.Failed && after.Exception.Kind == layout.KindCancelled {
		return before.Cancel != nil && before.Attempts == after.Attempts
	}
	grown := before.Attempts.RAM
	if e.name == "use too much memory" && after.Attempts.Failed > before.Attempts.Failed {
		grown = before.Spec.Grown(grown)
	}
	return after.Attempts.RAM == grown && after.Attempts.Failed == before.Attempts.Failed+e.failed &&
		after.Attempts.Rejected == before.Attempts.Rejected+e.back && (e.back == 0 || wasRejected(f, before, after))
}

func (m *Machine) finish(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil || len(w.held) == 0 {
		return none, nil
	}
	some := []*fdbmodel.ClaimedFuture{w.held[m.random.IntN(len(w.held))]}
	if m.random.IntN(2) == 0 {
		some = append(some, w.held[m.random.IntN(len(w.held))])
	}
	return m.end(ctx, w, some, endings)
}

// end has a worker end claims that it has, or had, in one of some ways each.
func (m *Machine) end(ctx context.Context, w *actorWorker, some []*fdbmodel.ClaimedFuture, ways []ending,
) (change, error) {
	var done []fdbmodel.Completion
	var how []*ending
	for _, f := range some {
		e := &ways[m.random.IntN(len(ways))]
		c := e.give(f)
		if m.random.IntN(3) == 0 {
			c.Progress = &fdbmodel.Progress{Future: f, Done: int64(m.random.IntN(9)), Text: e.name, At: m.Clock.Now()}
		}
		done, how = append(done, c), append(how, e)
	}
	outcomes, took, err := m.finishAll(ctx, w, done)
	for i, o := range outcomes {
		f := done[i].Future
		m.logf("%s of %s by %s (gone %t): %v", how[i].name, f.ID, w.ID(), w.gone, o)
		if m.random.IntN(4) > 0 { // else it is finished again later
			w.held = slices.DeleteFunc(w.held, func(h *fdbmodel.ClaimedFuture) bool { return h == f })
		}
		before := m.Rows[f.ID]
		had := before != nil && before.State() == layout.Claimed && before.Claim.Token == f.Token
		if o == fdbmodel.Applied && !had && len(m.loose) == 0 {
			m.fail("a claim that was lost ended a future: %s", digest(before))
		}
	}
	return func(before, after *layout.Row) bool {
		if after != nil && m.succeeds(w, took, before, after) {
			return true
		}
		for i := range done {
			if how[i].allows(done[i].Future, before, after) {
				return true
			}
			// Nobody could get an object of a dead worker: the future comes back.
			object := done[i].Result != nil && done[i].Result.Object != ""
			if object && w.gone && givenBack.allows(done[i].Future, before, after) {
				return true
			}
		}
		return false
	}, err
}

func (m *Machine) cancel(ctx context.Context) (change, error) {
	isUser := m.random.IntN(2) == 0
	id := m.someOr(func(r *layout.Row) bool {
		return r.State() == layout.Claimed && (r.Spec.HasInputs() || !isUser)
	})
	outcome, state, err := m.C.Cancel(ctx, id, "no more")
	m.logf("cancel %s: %v %v %v", id, outcome, state, err)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.ID != id {
			return false
		}
		if before.State() == layout.Claimed {
			return after.State() == layout.Claimed && after.Cancel != nil && before.Claim.Token == after.Claim.Token
		}
		return !before.State().Terminal() && after.State() == layout.Failed && after.Exception.Kind == layout.KindCancelled
	}, err
}

func (m *Machine) retry(ctx context.Context) (change, error) {
	id := m.retried()
	var err error
	if m.random.IntN(2) == 0 {
		err = m.C.Retry(ctx, id)
	} else {
		_, err = m.C.RetryMany(ctx, []layout.ID{id})
	}
	m.logf("retry %s: %v", id, err)
	if m.refusedAsNotUnique(err) {
		return none, nil
	}
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before != nil && after != nil && after.ID == id && before.State() == layout.Failed &&
			(after.Spec.HasInputs() || after.Spec.IsPromise()) {
			return after.State() == layout.Blocked || m.isUpstream(after) || after.State() == layout.Ready
		}
		return before != nil && after != nil && after.ID == id && after.State() == layout.Ready &&
			after.Attempts.Assigned == "" &&
			(before.State() == layout.Delayed || (before.State() == layout.Failed &&
				after.Attempts == startedOver(before)))
	}, err
}

func (m *Machine) discard(ctx context.Context) (change, error) {
	id := m.some()
	var err error
	if m.random.IntN(2) == 0 {
		err = m.C.Discard(ctx, id)
	} else {
		_, err = m.C.DiscardMany(ctx, []layout.ID{id})
	}
	m.logf("discard %s: %v", id, err)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		return before != nil && after == nil && before.ID == id && before.State().Terminal() && !m.isPinned(before)
	}, err
}

func (m *Machine) promote(ctx context.Context) (change, error) {
	m.Clock.Advance(time.Duration(m.random.IntN(3000)) * time.Millisecond)
	now := layout.Millis(m.Clock.Now())
	n, _, err := maintenance.Of(m.C).PromoteDue(ctx)
	m.logf("promote: %d %v", n, err)
	return func(before, after *layout.Row) bool {
		return before != nil && after != nil && before.State() == layout.Delayed && before.Attempts.Due <= now &&
			after.State() == layout.Ready && before.Attempts.Failed == after.Attempts.Failed
	}, err
}

func (m *Machine) assign(ctx context.Context) (change, error) {
	w := m.worker(false)
	if w == nil {
		return none, nil
	}
	id := m.some()
	outcomes, err := m.C.Assign(ctx, fdbmodel.Assignment{To: w.ID(), Reason: "y"}, []layout.ID{id})
	m.logf("assign %s to %s (gone %t): %v %v", id, w.ID(), w.gone, outcomes, err)
	if w.gone && err == nil {
		m.fail("something was assigned to a dead worker")
	}
	if row := m.Rows[id]; errors.Is(err, layout.ErrUnfit) && row != nil &&
		(isUnschedulable(row.Spec) || row.Attempts.Unplaceable ||
			len(row.Spec.Requirements.Labels) > 0 && !hasLabel(w.Info())) ||
		errors.Is(err, fdbmodel.ErrNotFound) && w.gone {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.State() != layout.Ready || after.ID != id ||
			before.State() != layout.Ready && !(before.State() == layout.Delayed && before.Spec.Held()) {
			return false
		}
		given := before.Attempts
		given.Due = 0
		given.Assigned, given.Reason = w.ID(), "y"
		return before.Attempts.Assigned == "" && given == after.Attempts
	}, err
}

func (m *Machine) unassign(ctx context.Context) (change, error) {
	w := m.worker(false)
	if w == nil {
		return none, nil
	}
	id := m.someOr(isAssigned)
	if row := m.Rows[id]; row != nil && m.by(row.Attempts.Assigned) != nil {
		w = m.by(row.Attempts.Assigned)
	}
	outcomes, err := m.C.Unassign(ctx, w.ID(), []layout.ID{id})
	m.logf("unassign %s from %s (gone %t): %v %v", id, w.ID(), w.gone, outcomes, err)
	return func(before, after *layout.Row) bool {
		return setFree(before, after, func(from layout.WorkerID) bool { return from == w.ID() }) && after.ID == id
	}, err
}

func (m *Machine) expire(ctx context.Context) (change, error) {
	m.Clock.Advance(time.Duration(m.random.IntN(20)) * time.Second)
	limit := layout.Millis(m.Clock.Now().Add(-m.C.Config().Retention))
	n, _, err := maintenance.Of(m.C).ExpireDone(ctx)
	m.logf("expire: %d %v", n, err)
	return func(before, after *layout.Row) bool {
		return before != nil && after == nil && before.State().Terminal() && before.FinishedAt() <= limit &&
			!m.isPinned(before)
	}, err
}

// What the workers can't run, but for the one of the finale, and when it ends.
const (
	unknownFunction = "go:unknown"
	tooMuch         = 1000
	mostRAM         = 3 // of a future, and of a worker
	infeasibleAfter = 4 * time.Second
)

// zoneA are the labels of some futures, and of some workers.
var zoneA = map[string]string{"zone": "a"}

func hasLabel(w layout.WorkerInfo) bool { return w.Labels["zone"] == "a" }

// anyLabel reports whether a worker that is alive has the label.
func (m *Machine) anyLabel() bool {
	return slices.ContainsFunc(m.workers, func(w *actorWorker) bool { return !w.gone && hasLabel(w.Info()) })
}

// demand gives a future requirements, some of which no worker meets. One with a key
// keeps its function.
func (m *Machine) demand(spec *layout.Spec, keyless bool) {
	if m.random.IntN(6) == 0 {
		spec.Requirements.Labels = zoneA
	}
	if m.random.IntN(3) == 0 {
		spec.Requirements.RAM, spec.Growth = 1, &layout.Growth{Factor: 2, Max: mostRAM}
	}
	if m.random.IntN(12) == 0 {
		spec.Requirements.CPU = tooMuch
	} else if m.random.IntN(12) == 0 && keyless {
		spec.Function = unknownFunction
	}
}

func isUnschedulable(spec *layout.Spec) bool {
	return spec.Function == unknownFunction || spec.Requirements.CPU == tooMuch
}

// infeasible looks for what no worker can run, for some time.
func (m *Machine) infeasible(ctx context.Context) (change, error) {
	var err error
	ended := 0
	for n := 0; n < 6 && err == nil; n++ {
		m.Clock.Advance(time.Duration(m.random.IntN(3000)) * time.Millisecond)
		var some int
		some, _, err = fit.EndInfeasible(ctx, m.C, &m.unschedulable)
		ended += some
	}
	m.logf("infeasible: %d %v", ended, err)
	return func(before, after *layout.Row) bool {
		return before != nil && after != nil && (before.InPool() || before.InLine() && before.Spec.Member) &&
			(isUnschedulable(before.Spec) || before.Attempts.Unplaceable ||
				len(before.Spec.Requirements.Labels) > 0 && !m.anyLabel()) &&
			after.State() == layout.Failed && after.Exception.Kind == layout.KindInfeasible &&
			before.Attempts == after.Attempts
	}, err
}

func (m *Machine) sweep(ctx context.Context) (change, error) {
	for shard := range m.C.Config().Shards {
		var cursor []byte
		for {
			next, n, err := maintenance.Of(m.C).SweepChunks(ctx, shard, cursor)
			if n > 0 {
				m.logf("sweep: %d", n)
			}
			if err != nil || next == nil {
				if err != nil {
					return none, err
				}
				break
			}
			cursor = next
		}
	}
	return none, nil
}

func (m *Machine) listen(ctx context.Context) (change, error) {
	s := []layout.SessionID{"s1", "s2"}[m.random.IntN(2)]
	if err := m.boxes[s].Refresh(ctx); err != nil {
		return none, err
	}
	notices, watch, err := m.boxes[s].Listen(ctx)
	m.logf("listen %s: %d %v", s, len(notices), err)
	if err != nil {
		return none, err
	}
	for _, n := range notices {
		m.seen[s][noticeKey(n.ID, n.State)] = true
	}
	if watch != nil {
		watch.Cancel()
	}
	return none, m.boxes[s].Acknowledge(ctx)
}

func (m *Machine) subscribe(ctx context.Context) (change, error) {
	s, id := []layout.SessionID{"s1", "s2"}[m.random.IntN(2)], m.some()
	if m.random.IntN(3) == 0 {
		delete(m.watched[s], id)
		m.logf("unsubscribe %s from %s", s, id)
		return none, m.boxes[s].Unsubscribe(ctx, []layout.ID{id})
	}
	over, missing, err := m.boxes[s].Subscribe(ctx, []layout.ID{id})
	m.logf("subscribe %s to %s: %v %v %v", s, id, over, missing, err)
	if err == nil && len(over)+len(missing) == 0 {
		m.watched[s][id] = true
	}
	return none, err
}

func (m *Machine) janitor(ctx context.Context) (change, error) {
	record, _, err := maintenance.Of(m.C).Present(ctx)
	if err == nil {
		worker := layout.WorkerID(fmt.Sprint(m.random.IntN(2)))
		_, _, err = maintenance.Of(m.C).Acquire(ctx, worker, record, m.random.Int64N(3))
	}
	return none, err
}

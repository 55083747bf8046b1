package modeltest

import (
	"bytes"
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// machineActors are the actors that a machine knows of.
type machineActors struct {
	heads map[string]actors.Head
	// stale are states as they once were: what a slow attempt has read.
	stale []actors.State
}

// actorKeys are the keys of the machine's actors.
var actorKeys = [...]string{"a", "b", "c"}

func (m *Machine) readActor(ctx context.Context, key string) (actors.State, error) {
	return actors.Of(m.C).Read(ctx, actors.Ref{Type: "machine", Key: key})
}

// act realizes a future that a worker holds, or held, with a turn over one or two actors, on their
// states as they are or once were, and sometimes with futures that are submitted with its result.
func (m *Machine) act(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil || len(w.held) == 0 {
		return none, nil
	}
	f := w.held[m.random.IntN(len(w.held))]
	var changes []actors.Change
	for _, at := range m.random.Perm(len(actorKeys))[:1+m.random.IntN(2)] {
		state, err := m.readActor(ctx, actorKeys[at])
		if err != nil {
			return none, err
		}
		if old := len(m.actors.stale); old > 0 && m.random.IntN(4) == 0 {
			if other := m.actors.stale[m.random.IntN(old)]; other.Ref == state.Ref {
				state = other
			}
		}
		m.actors.stale = append(m.actors.stale, state)
		change := actors.Change{Read: state, Write: m.random.IntN(5) > 0, Delete: m.random.IntN(9) == 0,
			Value: stateOf(f)}
		if m.random.IntN(2) == 0 {
			change.Parts = m.partsOf(f)
		}
		changes = append(changes, change)
	}
	done := realized(f)
	var err error
	if done.Beside, _, err = actors.Of(m.C).Turn(f, changes); err != nil {
		return none, err
	}
	if done.Beside.Submits, err = m.submitsWithResult(ctx); err != nil {
		return none, err
	}
	sent := slices.Clone(done.Beside.Submits)
	all := []fdbmodel.Completion{done}
	outcomes, err := w.Finish(ctx, all)
	m.logf("turn of %s by %s over %d actors, %d sent: %v, then %v, %v", f.ID, w.ID(), len(changes), len(sent), outcomes,
		all[0].After.State, err)
	if err == nil && outcomes[0] == fdbmodel.Applied && all[0].After.State == layout.Realized {
		m.requireSent(sent)
	}
	refused := ending{"fail", []layout.State{layout.Delayed, layout.Failed}, 1, 0, nil}
	success := ending{"realize", []layout.State{layout.Realized}, 0, 0, nil}
	return func(before, after *layout.Row) bool {
		if before == nil {
			return slices.ContainsFunc(sent, func(s fdbmodel.Submission) bool { return s.ID == after.ID })
		}
		return success.allows(f, before, after) || givenBack.allows(f, before, after) ||
			len(sent) > 0 && refused.allows(f, before, after)
	}, err
}

// submitsWithResult are futures to submit with a result.
func (m *Machine) submitsWithResult(ctx context.Context) ([]fdbmodel.Submission, error) {
	subs := make([]fdbmodel.Submission, max(0, m.random.IntN(5)-2))
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f", MaxRetries: m.random.IntN(2)}
		m.drawLane(&subs[i])
	}
	return m.C.Prepare(ctx, subs)
}

func (m *Machine) requireSent(sent []fdbmodel.Submission) {
	m.Faults.Pause()
	defer m.Faults.Resume()
	for i := range sent {
		rows, err := m.C.GetMany(context.Background(), []layout.ID{sent[i].ID})
		m.require(err)
		if len(rows) == 0 {
			m.fail("a result counts, and future %s that came with it does not exist", sent[i].ID)
		}
	}
}

// attemptOf is what an attempt writes: futures that were claimed together have one token.
func attemptOf(id layout.ID, token layout.Token) string { return id.String() + " " + token.String() }

// stateOf is the state that an attempt writes: of some it is too large for a head.
func stateOf(f *fdbmodel.ClaimedFuture) []byte {
	state := []byte(attemptOf(f.ID, f.Token))
	if f.Token.Sequence%3 == 0 {
		state = append(state, make([]byte, actors.MaxInHead)...)
	}
	return state
}

// writerOf is the attempt that has written a state.
func writerOf(s *actors.State) string { return string(bytes.TrimRight(s.Value, "\x00")) }

// lastPart is the part of an actor that each turn writes which writes parts.
const lastPart = "last"

// partsOf are changes of parts by an attempt.
func (m *Machine) partsOf(f *fdbmodel.ClaimedFuture) []actors.Part {
	value := actors.PartRecord{Value: []byte(attemptOf(f.ID, f.Token))}
	other := actors.Part{Name: []string{"x", "y"}[m.random.IntN(2)], PartRecord: value, Removed: m.random.IntN(2) == 0}
	return []actors.Part{{Name: lastPart, PartRecord: value}, other}
}

// verifyParts requires that the version of an actor is that of its state or of its parts, of those that one attempt
// wrote, and that what has no parts has none.
func (m *Machine) verifyParts(ctx context.Context, s *actors.State) {
	parts, _, err := actors.Of(m.C).Parts(ctx, s.Ref, actors.PartRange{})
	m.require(err)
	if !s.Head.Parts {
		if len(parts) > 0 {
			m.fail("actor %s has part %s, and none by its head", s.Key, parts[0].Name)
		}
		return
	}
	by := attemptOf(s.Head.Call, s.Head.Token)
	last := slices.ContainsFunc(parts, func(p actors.Part) bool { return p.Name == lastPart && string(p.Value) == by })
	if writerOf(s) != by && !last {
		m.fail("actor %s has a version by %s, and neither its state nor its parts are of that: %v", s.Key, by, parts)
	}
	for i := range parts {
		if !last && string(parts[i].Value) == by {
			m.fail("actor %s has a part by %s alone", s.Key, by)
		}
	}
}

// verifyActors requires that each state is that of the attempt that its head names, or its parts are, and that a
// version is never another one.
func (m *Machine) verifyActors(ctx context.Context) {
	for _, key := range actorKeys {
		state, err := m.readActor(ctx, key)
		m.require(err)
		was := m.actors.heads[key]
		m.actors.heads[key] = state.Head
		m.verifyParts(ctx, &state)
		if !state.Exists() || state.Head == was {
			continue
		}
		h := &state.Head
		if writerOf(&state) != attemptOf(h.Call, h.Token) && !h.Parts {
			m.fail("actor %s has the state of %s, and its head is that of %s", key, writerOf(&state), h.Token)
		}
		row := m.Rows[h.Call]
		if row != nil && (row.Result == nil || row.Result.Token != h.Token) {
			m.fail("the state of actor %s is that of attempt %s of future %s, which is not realized by it: %s", key, h.Token,
				h.Call, digest(row))
		}
		if h.Version == was.Version && was.Version > 1 {
			m.fail("actor %s had version %d by future %s, and has it by future %s", key, h.Version, was.Call, h.Call)
		}
	}
}

func newMachineActors() machineActors { return machineActors{heads: map[string]actors.Head{}} }

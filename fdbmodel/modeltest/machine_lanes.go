package modeltest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// The kinds of lanes of a machine, and the settings that they may have.
var laneKinds = map[string][]layout.LaneKind{
	"narrow": {{Width: 3}, {Width: 4, MaxWaiting: 9}, {Width: 1, MaxWaiting: 2, Paused: true}},
	"aside":  {{Width: 1, Aside: true, MaxWaiting: 1}, {Width: 3, Aside: true}},
	"turns":  {{Width: 1, Total: 1}, {Width: 2, Total: 2}, {Width: 2, Total: 3, Paused: true}},
	"bundle": {{Width: 1, Bundle: "go:f", MaxWaiting: 1}, {Width: 2, Bundle: "go:f", Most: 2},
		{Width: 1, Bundle: "go:f", Paused: true}},
	"rated": {{Width: 2, Rate: 1, Every: time.Second}, {Width: 1, Rate: 100, Every: time.Second}, {Width: 1}},
}

// The names of the kinds, in an order, and the keys of their lanes.
var (
	laneNames = []string{"narrow", "aside", "turns", "rated", "bundle"}
	laneKeys  = []string{"a", "b", "a\x00e"} // of one shard, and the last one goes on as the first with a zero byte
)

// setLanes sets the kinds that are not set yet.
func (m *Machine) setLanes() {
	ctx := context.Background()
	kinds, err := lanes.Of(m.C).Kinds(ctx)
	m.require(err)
	for _, name := range laneNames {
		if _, set := kinds[name]; !set {
			m.require(lanes.Of(m.C).SetKind(ctx, name, laneKinds[name][0]))
		}
	}
}

func (m *Machine) lane() layout.Lane {
	return layout.Lane{Kind: laneNames[m.random.IntN(len(laneNames))], Key: laneKeys[m.random.IntN(len(laneKeys))]}
}

// drawLane has some submissions be in lanes.
func (m *Machine) drawLane(s *fdbmodel.Submission) {
	if m.random.IntN(3) > 0 || s.Key != "" || s.Spec.Owner != "" || s.Spec.MustBeNear {
		return
	}
	if lane := m.lane(); lane.Kind != "bundle" || len(s.Inputs) == 0 {
		s.Spec.Lane = lane
	}
}

// setLaneKind changes the settings of a kind. The width that its lanes may have used
// before counts until they were seen within the new one.
func (m *Machine) setLaneKind(ctx context.Context) (change, error) {
	name := laneNames[m.random.IntN(len(laneNames))]
	k := laneKinds[name][m.random.IntN(len(laneKinds[name]))]
	err := lanes.Of(m.C).SetKind(ctx, name, k)
	if err == nil {
		err = lanes.Of(m.C).PauseKind(ctx, name, k.Paused)
	}
	m.logf("set kind %s to %+v: %v", name, k, err)
	return none, err
}

// crowd submits futures to one lane, some of them with the same name. Those in line lie between those
// that overtake them.
func (m *Machine) crowd(ctx context.Context) (change, error) {
	lane := m.lane()
	subs := make([]fdbmodel.Submission, 1+m.random.IntN(8))
	ids := map[layout.ID]bool{}
	drawn, err := m.C.DrawIDs(len(subs))
	m.require(err)
	for i := range subs {
		subs[i] = fdbmodel.Submission{ID: drawn[i], Drawn: true,
			Spec: layout.Spec{Function: "go:f", Lane: lane, Priority: uint8(m.random.IntN(2))}}
		m.drawUnique(&subs[i])
		ids[drawn[i]] = true
	}
	answers, err := m.submitIn(ctx, subs)
	m.logf("submit %d to lane %s: %v %v", len(subs), lane, answers, err)
	if m.refusedAsNotUnique(err) || m.refusedAsFull(err, subs) {
		return none, nil
	}
	return func(before, after *layout.Row) bool {
		isNew := before == nil && ids[after.ID] && after.State() == layout.Ready
		return isNew || isReplaced(before, after, subs, ids[after.ID])
	}, err
}

// refusedAsFull requires that a lane that is said to be full has as many in line as may wait, with
// those of a refused submit.
func (m *Machine) refusedAsFull(err error, subs []fdbmodel.Submission) bool {
	if !errors.Is(err, fdbmodel.ErrLaneFull) {
		return false
	}
	m.Faults.Pause()
	defer m.Faults.Resume()
	kinds, failed := lanes.Of(m.C).Kinds(context.Background())
	m.require(failed)
	lined := map[layout.Lane]int{}
	for _, row := range m.Rows {
		if row.InLine() {
			lined[row.Spec.Lane]++
		}
	}
	full := false
	for i := range subs {
		lane := subs[i].Spec.Lane
		lined[lane]++
		most := kinds[lane.Kind].MaxWaiting
		full = full || most > 0 && lined[lane] > most
	}
	if !full && len(m.loose) == 0 {
		m.fail("a lane is said to be full, and none of those of a submit is: %v", err)
	}
	return true
}

// verifyBounds requires that nothing new is in line beyond the bound of its lane. What was submitted
// before may be.
func (m *Machine) verifyBounds(now map[layout.ID]*layout.Row) {
	kinds, err := lanes.Of(m.C).Kinds(context.Background())
	m.require(err)
	lined, fresh, others := map[layout.Lane]int{}, map[layout.Lane]bool{}, map[layout.Lane]bool{}
	for id, row := range now {
		if !row.InLine() {
			continue
		}
		before := m.Rows[id]
		lined[row.Spec.Lane]++
		fresh[row.Spec.Lane] = fresh[row.Spec.Lane] || before == nil && !row.Spec.HasInputs()
		others[row.Spec.Lane] = others[row.Spec.Lane] || before != nil && !before.InLine() ||
			before == nil && row.Spec.HasInputs()
	}
	for lane := range fresh {
		if most := kinds[lane.Kind].MaxWaiting; most > 0 && fresh[lane] && !others[lane] && lined[lane] > most {
			m.fail("lane %s has %d in line, one of them new, and %d may be", lane, lined[lane], most)
		}
	}
}

func (m *Machine) pauseLane(ctx context.Context) (change, error) {
	lane, paused := m.lane(), m.random.IntN(2) == 0
	err := lanes.Of(m.C).Pause(ctx, lane, paused)
	m.logf("pause %v of lane %s: %v", paused, lane, err)
	return none, err
}

func (m *Machine) admitDue(ctx context.Context) (change, error) {
	m.Clock.Advance(time.Duration(m.random.IntN(500)) * time.Millisecond)
	n, _, err := lanes.Of(m.C).AdmitDue(ctx)
	m.logf("admit due: %d lanes, %v", n, err)
	if err == nil && m.random.IntN(2) == 0 {
		err = lanes.Of(m.C).Sweep(ctx)
	}
	return none, err
}

// isAdmitted reports whether a future was admitted, or has got in line, and nothing
// else.
func isAdmitted(before, after *layout.Row) bool {
	if before == nil || after == nil || before.InLine() == after.InLine() {
		return false
	}
	same := *after
	same.Line = before.Line
	return before.InLine() && digest(&same) == digest(before)
}

// admitted returns a change that also takes what was admitted just before.
func admitted(allowed change) change {
	return func(before, after *layout.Row) bool {
		if before == nil || !before.InLine() {
			return allowed(before, after)
		}
		was := *before
		was.Line = nil
		return allowed(before, after) || allowed(&was, after)
	}
}

// verifyLanes requires that nobody was overtaken: those that were admitted were the
// first in their lines, and those that remain in line keep their places.
func (m *Machine) verifyLanes(now map[layout.ID]*layout.Row) {
	keys := m.C.Keys()
	for id, before := range m.Rows {
		after := now[id]
		if !before.InLine() || after == nil || after.State().Terminal() {
			continue
		}
		if after.InLine() {
			if !bytes.Equal(keys.Line(before), keys.Line(after)) {
				m.fail("future %s was at %x in line and is at %x", id, keys.Line(before), keys.Line(after))
			}
			continue
		}
		for other, row := range m.Rows {
			if row.InLine() && row.Spec.Lane == before.Spec.Lane && now[other] != nil && now[other].InLine() &&
				bytes.Compare(keys.Line(row), keys.Line(before)) < 0 {
				m.fail("future %s of lane %s was admitted before %s, which was ahead of it", id, row.Spec.Lane, other)
			}
		}
	}
	slots := map[layout.Lane]int{}
	for _, row := range now {
		if row.HasSlot() {
			slots[row.Spec.Lane]++
		}
	}
	for lane, n := range slots {
		widest := 0
		for _, k := range laneKinds[lane.Kind] {
			widest = max(widest, k.Width)
		}
		if n > widest {
			m.fail("lane %s has admitted %d futures, and its widest settings are %d", lane, n, widest)
		}
	}
}

// openLanes lets all lanes admit, and ends all pauses.
func (m *Machine) openLanes(ctx context.Context) {
	m.resumeAll(ctx)
	for _, name := range laneNames {
		m.require(lanes.Of(m.C).SetKind(ctx, name, laneKinds[name][1]))
		m.require(lanes.Of(m.C).PauseKind(ctx, name, false))
		for _, key := range laneKeys {
			m.require(lanes.Of(m.C).Pause(ctx, layout.Lane{Kind: name, Key: key}, false))
		}
	}
}

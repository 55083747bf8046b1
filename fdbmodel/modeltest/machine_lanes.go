package modeltest

import (
	"bytes"
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// The kinds of lanes of a machine, and the settings that they may have.
var laneKinds = map[string][]layout.LaneKind{
	"narrow": {{Width: 1}, {Width: 2}, {Width: 1, Paused: true}},
	"aside":  {{Width: 1, Aside: true}, {Width: 3, Aside: true}},
	"turns":  {{Width: 1, Total: 1}, {Width: 2, Total: 2}, {Width: 2, Total: 3, Paused: true}},
	"bundle": {{Width: 1, Bundle: "go:f"}, {Width: 2, Bundle: "go:f", Most: 2}, {Width: 1, Bundle: "go:f", Paused: true}},
	"rated":  {{Width: 2, Rate: 1, Every: time.Second}, {Width: 1, Rate: 100, Every: time.Second}, {Width: 1}},
}

// The names of the kinds, in an order, and the keys of their lanes.
var (
	laneNames = []string{"narrow", "aside", "turns", "rated", "bundle"}
	laneKeys  = []string{"a", "b", "c"}
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
		m.require(lanes.Of(m.C).SetKind(ctx, name, laneKinds[name][0]))
		m.require(lanes.Of(m.C).PauseKind(ctx, name, false))
		for _, key := range laneKeys {
			m.require(lanes.Of(m.C).Pause(ctx, layout.Lane{Kind: name, Key: key}, false))
		}
	}
}

package modeltest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// pausable is a queue or a function.
type pausable struct{ what, name string }

var pausables = []pausable{
	{pause.Queue, layout.DefaultQueue}, {pause.Function, "go:f"}, {pause.Function, moduleFunction},
}

// pausing is what a machine knows of what is paused.
type pausing struct {
	paused map[pausable]bool
	// doubted are those with a call that was cut off, whose commit may be made at any time.
	doubted map[pausable]bool
}

// pauseWork pauses a queue or a function, or resumes one more often.
func (m *Machine) pauseWork(ctx context.Context) (change, error) {
	if m.pausing.paused == nil {
		m.pausing = pausing{map[pausable]bool{}, map[pausable]bool{}}
	}
	p := pausables[m.random.IntN(len(pausables))]
	return m.setPaused(ctx, p, m.random.IntN(3) == 0)
}

// resumeWork resumes a queue or a function that may be paused.
func (m *Machine) resumeWork(ctx context.Context) (change, error) {
	p := pausables[m.random.IntN(len(pausables))]
	if !m.pausing.paused[p] && !m.pausing.doubted[p] {
		return none, nil
	}
	return m.setPaused(ctx, p, false)
}

func (m *Machine) setPaused(ctx context.Context, p pausable, pause bool) (change, error) {
	var err error
	if pause {
		_, err = pauses.Of(m.C).Pause(ctx, p.what, p.name, "why")
	} else {
		_, err = pauses.Of(m.C).Resume(ctx, p.what, p.name)
	}
	m.logf("pause %v of %v: %v", pause, p, err)
	if err != nil {
		m.pausing.doubted[p] = true
		if errors.Is(err, fdbmodel.ErrNotFound) && p.name == moduleFunction { // it is not stored at present
			err = nil
		}
		return none, err
	}
	m.pausing.paused[p] = pause
	return none, nil
}

// verifyClaimed requires that nothing was claimed of what is paused.
func (m *Machine) verifyClaimed(claimed []fdbmodel.ClaimedFuture) {
	for p, paused := range m.pausing.paused {
		for i := range claimed {
			spec := claimed[i].Spec
			if paused && !m.pausing.doubted[p] && (p.name == spec.Queue || p.name == spec.Function) {
				m.fail("future %s was claimed, whose %s %s is paused", claimed[i].ID, p.what, p.name)
			}
		}
	}
}

// resumeAll ends all pauses.
func (m *Machine) resumeAll(ctx context.Context) {
	paused, err := pauses.Of(m.C).List(ctx)
	m.require(err)
	for _, p := range paused {
		_, err := pauses.Of(m.C).Resume(ctx, p.What, p.Name)
		m.require(err)
	}
}

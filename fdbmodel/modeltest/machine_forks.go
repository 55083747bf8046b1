package modeltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// fork forks a future: from where it failed, from a step that it has recorded, or from the start.
// Some forks have a name, so that a repeated one finds the first.
func (m *Machine) fork(ctx context.Context) (change, error) {
	r := forks.Request{Source: m.some(), From: []forks.Point{forks.FromFailed(), forks.FromStart(),
		forks.FromStep(fmt.Sprint("s", 1+m.random.IntN(2)))}[m.random.IntN(3)]}
	if m.random.IntN(2) == 0 {
		r.Name = fmt.Sprint("fork", m.random.IntN(2))
		r.ID = forks.Of(m.C).IDOf(r.Name, r.Source)
	} else {
		drawn, err := m.C.DrawIDs(1)
		m.require(err)
		r.ID = drawn[0]
	}
	if m.random.IntN(3) == 0 {
		r.Set = []forks.Value{{Step: "given", JSON: []byte("1")}}
	}
	source := m.Rows[r.Source]
	made, err := forks.Of(m.C).Make(ctx, []forks.Request{r})
	m.logf("fork %s of %s from %s: %+v %v", r.ID, r.Source, r.From, made, err)
	if err != nil {
		m.expectSteps(&r, m.steps.perhaps)
	} else if m.judgeFork(&r, source, &made[0]); made[0].Err == nil && !made[0].Existed {
		m.expectSteps(&r, m.steps.recorded)
	}
	return func(before, after *layout.Row) bool {
		if before != nil || after.ID != r.ID || after.Spec.Fork == nil || after.Spec.Fork.From != r.Source {
			return false
		}
		s := after.State()
		return s == layout.Ready || s == layout.Blocked || m.isUpstream(after)
	}, err
}

// judgeFork compares the answer to a fork with what is known of its source.
func (m *Machine) judgeFork(r *forks.Request, source *layout.Row, made *forks.Made) {
	if len(m.loose) > 0 {
		return
	}
	existing := m.Rows[r.ID]
	switch {
	case errors.Is(made.Err, fdbmodel.ErrNotFound) && source == nil, errors.Is(made.Err, layout.ErrBadSpec):
	case errors.Is(made.Err, fdbmodel.ErrLaneFull):
		m.refusedAsFull(made.Err, []fdbmodel.Submission{{Spec: *source.Spec}})
	case errors.Is(made.Err, forks.ErrForked) && existing != nil:
	case made.Existed != (existing != nil && made.Err == nil):
		m.fail("a fork existed: %t", made.Existed)
	case errors.Is(made.Err, fdbmodel.ErrTransition) && !source.State().Terminal():
	case made.Existed:
	case errors.Is(made.Err, fdbmodel.ErrNotFound) && source.Spec.Function == moduleFunction && !m.isStored():
	case made.Err != nil && source.State().Terminal() && r.From.String() == "start" &&
		!errors.Is(made.Err, forks.ErrUnforkable):
		m.fail("a future that is over is not forked: %v", made.Err)
	case made.Err == nil && !source.State().Terminal():
		m.fail("future %s is %s, and was forked", r.Source, source.State())
	case made.Err == nil && r.From == forks.FromFailed() && (source.State() != layout.Failed || !source.Steps):
		m.fail("future %s is %s, and was forked where it failed", r.Source, source.State())
	}
}

// expectSteps notes what a fork begins with.
func (m *Machine) expectSteps(r *forks.Request, in map[layout.ID]map[string]steps.Record) {
	kept, last := map[string]steps.Record{}, 0
	end := 0
	if r.From != forks.FromFailed() && r.From != forks.FromStart() {
		end = m.steps.recorded[r.Source][r.From.String()].Number
	}
	for name, record := range m.steps.recorded[r.Source] {
		if r.From == forks.FromFailed() || record.Number < end {
			kept[name], last = record, max(last, record.Number)
		}
	}
	if len(r.Set) > 0 {
		number := last + 1
		if was, replaced := kept["given"]; replaced {
			number = was.Number
		}
		kept["given"] = steps.Record{Number: number, Value: []byte("1")}
	}
	for name, record := range kept {
		note(in, r.ID, name, record)
	}
}

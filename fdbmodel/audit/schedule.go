package audit

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// checkSchedules checks a key of a schedule.
func (p *page) checkSchedules(it *item) {
	switch it.Kind.Name {
	case schedule.KeyDefinition:
		p.checkSchedule(it)
	case schedule.KeyState:
		p.checkScheduleState(it)
	case schedule.KeyTime:
		p.checkScheduleTime(it)
	}
}

// checkSchedule looks for what changes of a schedule.
func (p *page) checkSchedule(it *item) {
	name := it.Text("schedule")
	p.require(schedule.Keys(p.keys).State(name), func() {
		p.broken(InvariantSchedule, it.Raw, "schedule %s has no state", name)
	})
}

// checkScheduleState looks for the schedule, and for its key among those that are due.
func (p *page) checkScheduleState(it *item) {
	name := it.Text("schedule")
	p.require(schedule.Keys(p.keys).Definition(name), func() {
		p.broken(InvariantSchedule, it.Raw, "there is no schedule %s", name)
	})
	if it.err != nil {
		return
	}
	state := it.Record.(*schedule.State)
	line := state.Line
	sound := slices.IsSorted(line) && (len(line) == 0 || state.Next == 0 || line[len(line)-1] < state.Next)
	if !sound {
		p.broken(InvariantSchedule, it.Raw, "schedule %s has %v in line before %d, out of order", name, line, state.Next)
	}
	due := state.Due()
	if due == 0 {
		return
	}
	p.require(schedule.Keys(p.keys).At(due, name), func() {
		of := p.broken(InvariantSchedule, it.Raw, "schedule %s is due at %d and has no key there", name, due)
		if sound {
			of.by(set(schedule.Keys(p.keys).At(due, name), layout.Mark()))
		}
	})
}

// checkScheduleTime compares a key of those that are due with its schedule.
func (p *page) checkScheduleTime(it *item) {
	name, due := it.Text("schedule"), it.Int("due_ms")
	key := schedule.Keys(p.keys).State(name)
	p.get(key, func(value []byte) {
		state := new(schedule.State)
		switch {
		case value == nil:
			of := p.broken(InvariantSchedule, it.Raw, "schedule %s is due here and does not exist", name)
			p.require(schedule.Keys(p.keys).Definition(name), func() { of.by(drop(it.Raw)) })
		case layout.Decode(key, value, state) == nil && state.Due() != due:
			p.broken(InvariantSchedule, it.Raw, "schedule %s is due at %d, and has a key here", name, state.Due()).
				by(drop(it.Raw))
		}
	})
}

package audit

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkSchedules checks a key of a schedule.
func (p *page) checkSchedules(it *item) {
	switch it.Kind.Name {
	case layout.KeySchedule:
		p.checkSchedule(it)
	case layout.KeyScheduleState:
		p.checkScheduleState(it)
	case layout.KeyScheduleTime:
		p.checkScheduleTime(it)
	}
}

// checkSchedule looks for what changes of a schedule.
func (p *page) checkSchedule(it *item) {
	name := it.Text("schedule")
	p.require(p.keys.ScheduleState(name), func() {
		p.broken(InvariantSchedule, it.Raw, "schedule %s has no state", name)
	})
}

// checkScheduleState looks for the schedule, and for its key among those that are due.
func (p *page) checkScheduleState(it *item) {
	name := it.Text("schedule")
	p.require(p.keys.Schedule(name), func() {
		p.broken(InvariantSchedule, it.Raw, "there is no schedule %s", name)
	})
	if it.err != nil {
		return
	}
	state := it.Record.(*layout.ScheduleState)
	line := state.Line
	sound := slices.IsSorted(line) && (len(line) == 0 || state.Next == 0 || line[len(line)-1] < state.Next)
	if !sound {
		p.broken(InvariantSchedule, it.Raw, "schedule %s has %v in line before %d, out of order", name, line, state.Next)
	}
	due := state.Due()
	if due == 0 {
		return
	}
	p.require(p.keys.ScheduleAt(due, name), func() {
		of := p.broken(InvariantSchedule, it.Raw, "schedule %s is due at %d and has no key there", name, due)
		if sound {
			of.by(set(p.keys.ScheduleAt(due, name), layout.Mark()))
		}
	})
}

// checkScheduleTime compares a key of those that are due with its schedule.
func (p *page) checkScheduleTime(it *item) {
	name, due := it.Text("schedule"), it.Int("due_ms")
	key := p.keys.ScheduleState(name)
	p.get(key, func(value []byte) {
		state := new(layout.ScheduleState)
		switch {
		case value == nil:
			of := p.broken(InvariantSchedule, it.Raw, "schedule %s is due here and does not exist", name)
			p.require(p.keys.Schedule(name), func() { of.by(drop(it.Raw)) })
		case layout.Decode(key, value, state) == nil && state.Due() != due:
			p.broken(InvariantSchedule, it.Raw, "schedule %s is due at %d, and has a key here", name, state.Due()).
				by(drop(it.Raw))
		}
	})
}

package schedule

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Subspace has the keys of schedules.
const Subspace = "schedules"

// Kinds of keys of schedules.
const (
	KeyDefinition = "schedule"
	KeyState      = "schedule state"
	KeyTime       = "schedule time"
)

// Parts of the keys of schedules.
const (
	byNamePart     = "by-name"
	byTimePart     = "by-time"
	definitionPart = "definition"
	statePart      = "state"
)

// Kinds returns the kinds of keys of schedules.
func Kinds() []layout.KeyKind {
	named := func(part string) []layout.Element {
		return []layout.Element{layout.Fixed(byNamePart), layout.Text("schedule"), layout.Fixed(part)}
	}
	return []layout.KeyKind{
		{Name: KeyDefinition, Subspace: Subspace, Elements: named(definitionPart), Record: layout.RecordOf[Record],
			Holds: "when a schedule fires, and the future that it submits", Writer: "PutSchedule"},
		{Name: KeyState, Subspace: Subspace, Elements: named(statePart), Record: layout.RecordOf[State],
			Holds:  "the next time of a schedule, and its last ones",
			Writer: "the janitor that fires it, pause, resume, trigger"},
		{Name: KeyTime, Subspace: Subspace, Format: layout.FormatMark,
			Elements: []layout.Element{layout.Fixed(byTimePart), layout.Number("due_ms"), layout.Text("schedule")},
			Holds:    "a schedule that is not paused is due", Writer: "every change of its state"},
	}
}

// Keys makes the keys of schedules.
type Keys layout.Keyspace

// byName returns the prefix of the schedules in the order of their names.
func (k Keys) byName() []byte {
	return tuple.AppendString(layout.Keyspace(k).Global(Subspace), byNamePart)
}

// of returns the prefix of the records of a schedule.
func (k Keys) of(name string) []byte {
	return tuple.AppendString(k.byName(), name)
}

// Definition returns the key of the definition of a schedule.
func (k Keys) Definition(name string) []byte {
	return tuple.AppendString(k.of(name), definitionPart)
}

// State returns the key of what changes of a schedule.
func (k Keys) State(name string) []byte {
	return tuple.AppendString(k.of(name), statePart)
}

// ByTime returns the prefix of the schedules in the order in which they are
// due.
func (k Keys) ByTime() []byte {
	return tuple.AppendString(layout.Keyspace(k).Global(Subspace), byTimePart)
}

// At returns the key of a schedule among those that are due.
func (k Keys) At(due int64, name string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.ByTime(), due), name)
}

package layout

import "github.com/futura-run/futura/fdbmodel/tuple"

// Parts of the keys of schedules.
const (
	scheduleByName = "by-name"
	scheduleByTime = "by-time"
	scheduleIs     = "definition"
	scheduleHas    = "state"
)

// SchedulesByName returns the prefix of the schedules in the order of their names.
func (k Keyspace) SchedulesByName() []byte {
	return tuple.AppendString(k.Global(SubSchedules), scheduleByName)
}

// ScheduleOf returns the prefix of the records of a schedule.
func (k Keyspace) ScheduleOf(name string) []byte {
	return tuple.AppendString(k.SchedulesByName(), name)
}

// Schedule returns the key of the definition of a schedule.
func (k Keyspace) Schedule(name string) []byte {
	return tuple.AppendString(k.ScheduleOf(name), scheduleIs)
}

// ScheduleState returns the key of what changes of a schedule.
func (k Keyspace) ScheduleState(name string) []byte {
	return tuple.AppendString(k.ScheduleOf(name), scheduleHas)
}

// SchedulesByTime returns the prefix of the schedules in the order in which they are
// due.
func (k Keyspace) SchedulesByTime() []byte {
	return tuple.AppendString(k.Global(SubSchedules), scheduleByTime)
}

// ScheduleAt returns the key of a schedule among those that are due.
func (k Keyspace) ScheduleAt(due int64, name string) []byte {
	return tuple.AppendString(tuple.AppendInt(k.SchedulesByTime(), due), name)
}

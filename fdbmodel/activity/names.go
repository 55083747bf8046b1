package activity

import (
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Steps of records.
const (
	Minutes = meter.Minutes
	Hours   = meter.Hours
)

// Activity is the record of a step, Key says which step it is of, and Keys makes its key.
type (
	Activity = meter.Activity
	Key      = meter.ActivityKey
	Keys     = meter.Keys
)

// Ended is the end of an attempt, Pair what has ended of a function in a queue, and QueueCounts
// how many futures of a queue are in each state.
type (
	Ended       = meter.Ended
	Pair        = meter.Pair
	QueueCounts = meter.QueueCounts
)

// CountsByQueue returns how many futures each queue has, by the name of the queue: those with
// the most futures, and all others as one.
func CountsByQueue(counts layout.Counts) []QueueCounts { return meter.CountsByQueue(counts) }

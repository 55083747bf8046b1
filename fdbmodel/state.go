package fdbmodel

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Outcome is the outcome of an event.
type Outcome = state.Outcome

// The outcomes, as in package state.
const (
	Applied   = state.Applied
	Already   = state.Already
	Lost      = state.Lost
	Requested = state.Requested
	Refused   = state.Refused
)

// Limits of what one future may cost, as in package state.
const (
	MaxRebuilds = state.MaxRebuilds
	MaxCrashes  = state.MaxCrashes
)

// Event is an event with its data, and EventKind what happens.
type (
	Event     = state.Event
	EventKind = state.EventKind
)

// The events, as in package state.
const (
	EventClaim      = state.EventClaim
	EventRealize    = state.EventRealize
	EventFail       = state.EventFail
	EventRelinquish = state.EventRelinquish
	EventReject     = state.EventReject
	EventReap       = state.EventReap
	EventReappear   = state.EventReappear
	EventCancel     = state.EventCancel
	EventPromote    = state.EventPromote
	EventRetry      = state.EventRetry
	EventAssign     = state.EventAssign
	EventUnassign   = state.EventUnassign
	EventUnblock    = state.EventUnblock
	EventUpstream   = state.EventUpstream
	EventLose       = state.EventLose
	EventBlock      = state.EventBlock
	EventInfeasible = state.EventInfeasible
	EventReplace    = state.EventReplace
	EventAdmit      = state.EventAdmit
	EventSnooze     = state.EventSnooze
	EventExpire     = state.EventExpire
	EventTake       = state.EventTake
	EventGather     = state.EventGather
)

// Next applies an event to a future, as state.Next does.
func Next(row layout.Row, e Event) (layout.Row, Outcome) { return state.Next(row, e) }

package fdbmodel

import "github.com/futura-run/futura/fdbmodel/state"

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

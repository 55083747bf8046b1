package layout

import (
	"fmt"
)

// State is the state of a future in its life cycle.
type State uint8

// The states. Ready and Delayed are the two states of an unclaimed future.
const (
	Ready    State = iota + 1 // waits for a worker
	Delayed                   // waits for a time
	Claimed                   // a worker holds it
	Realized                  // has its result
	Failed                    // has failed permanently
)

var stateNames = [...]string{"", "ready", "delayed", "claimed", "realized", "failed"}

// States lists all states, in the order of a future's life.
func States() []State { return []State{Ready, Delayed, Claimed, Realized, Failed} }

// String returns the state's name as in keys and answers.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState parses a state's name.
func ParseState(name string) (State, error) {
	for _, s := range States() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: state %.40q: use ready, delayed, claimed, realized or failed", ErrBadName, name)
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(b []byte) error {
	parsed, err := ParseState(string(b))
	if err == nil {
		*s = parsed
	}
	return err
}

// Terminal reports whether a future in this state is finished.
func (s State) Terminal() bool { return s == Realized || s == Failed }

package layout

import (
	"fmt"
	"slices"
	"strings"
)

// State is the state of a future in its life cycle.
type State uint8

// The states.
const (
	Blocked  State = iota + 1 // waits for the results of other futures
	Ready                     // waits for a worker
	Delayed                   // waits for a time
	Claimed                   // a worker holds it
	Realized                  // has its result
	Failed                    // has failed permanently
)

var stateNames = [...]string{Blocked: "blocked", Ready: "ready", Delayed: "delayed", Claimed: "claimed",
	Realized: "realized", Failed: "failed"}

// States lists all states, in the order of a future's life.
func States() []State {
	states := make([]State, len(stateNames)-1)
	for i := range states {
		states[i] = State(i + 1)
	}
	return states
}

// AnyOf returns the names of two or more states as a sentence lists them: ready,
// delayed or claimed.
func AnyOf(states []State) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// String returns the state's name as in keys and answers.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState parses a state's name.
func ParseState(name string) (State, error) {
	if i := slices.Index(stateNames[1:], name); i >= 0 {
		return State(i + 1), nil
	}
	return 0, fmt.Errorf("%w: state %.40q: use %s", ErrBadName, name, AnyOf(States()))
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

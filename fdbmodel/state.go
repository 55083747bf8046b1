package fdbmodel

import (
	"fmt"
	"time"
)

// State is where a future is in its life.
type State uint8

// The states. Ready and Delayed are the two ways to be unclaimed; a future is
// in exactly one of the ready and delayed subspaces then, and in neither
// otherwise.
const (
	Ready    State = iota + 1 // waits for a worker
	Delayed                   // waits for a time
	Claimed                   // a worker holds it
	Realized                  // has its result
	Failed                    // has failed for good
)

var stateNames = [...]string{"", "ready", "delayed", "claimed", "realized", "failed"}

// States are all states, in the order of a future's life.
func States() []State { return []State{Ready, Delayed, Claimed, Realized, Failed} }

// String returns the state's name as it stands in keys and answers.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState reads a state's name.
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

// Terminal tells whether a future in this state is over.
func (s State) Terminal() bool { return s == Realized || s == Failed }

// EventKind is something that happens to a future.
type EventKind uint8

// The events.
const (
	EventClaim      EventKind = iota + 1 // a worker takes it
	EventRealize                         // its worker has the result
	EventFail                            // its worker's attempt failed
	EventRelinquish                      // its worker gives it back unrun or interrupted; no attempt
	EventPutBack                         // its worker can't run it; another may
	EventReap                            // its worker was declared dead
	EventCancel                          // somebody wants it no more
	EventPromote                         // its time has come
	EventRetry                           // somebody wants it to run again, or at once
	EventAssign                          // it is given to a worker
	EventUnassign                        // it is taken from that worker
)

var eventNames = [...]string{
	"", "claim", "realize", "fail", "relinquish", "put back", "reap", "cancel", "promote", "retry",
	"assign", "unassign",
}

// Events are all kinds of event.
func Events() []EventKind {
	return []EventKind{EventClaim, EventRealize, EventFail, EventRelinquish, EventPutBack, EventReap, EventCancel,
		EventPromote, EventRetry, EventAssign, EventUnassign}
}

// String returns the event's name.
func (e EventKind) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// Event is an event with what it carries. Which fields count depends on Kind.
type Event struct {
	Kind      EventKind
	Token     Token          // Claim, Realize, Fail, Relinquish, PutBack; Reap: only its worker
	Result    *Result        // Realize
	Exception *Exception     // Fail
	Permanent bool           // Fail: no further attempt, whatever its kind
	RetryIn   *time.Duration // Fail: wait this long instead of the backoff
	Cancel    *CancelRequest // Cancel
	Why       string         // Assign: what it is assigned for
	Now       time.Time      // every event
	Jitter    float64        // Fail, PutBack: in [0,1), spreads the backoff
}

// Outcome says what an event came to.
type Outcome uint8

const (
	// Applied means that the future changed.
	Applied Outcome = iota + 1
	// Already means that this very event was applied before.
	Already
	// Lost means that the claim which the event relies on is gone: somebody
	// else decides about the future now.
	Lost
	// Requested means that whoever holds the future is asked to stop.
	Requested
	// Refused means that the event is not possible in the future's state.
	Refused
)

var outcomeNames = [...]string{"", "applied", "already", "lost", "requested", "refused"}

// String returns the outcome's name.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// maxCrashes is how many workers may die while they hold a future, before it
// is taken for the cause.
const maxCrashes = 3

// Next applies e to a future and returns what it is afterwards. It is pure: it
// changes neither row nor event, and knows no clock, store or chance but what
// the event carries. Events that are not in the table of transitions come to
// Refused, and to Lost where they come from a worker without the claim. Next
// needs row.Spec for Fail, PutBack, and nothing of it otherwise.
func Next(row Row, e Event) (Row, Outcome) {
	from := row.State()
	for i := range transitions {
		t := &transitions[i]
		if t.from == from && t.event == e.Kind && (t.when.holds == nil || t.when.holds(&row, &e)) {
			t.then.apply(&row, &e)
			return row, t.outcome
		}
	}
	return row, Refused
}

type condition struct {
	text  string
	holds func(*Row, *Event) bool
}

type effect struct {
	text  string
	apply func(*Row, *Event)
}

type transition struct {
	from    State
	event   EventKind
	when    condition
	to      State
	then    effect
	outcome Outcome
}

// transitions is the whole life of a future, most specific row first.
var transitions = []transition{
	{Ready, EventClaim, always, Claimed, setClaim, Applied},
	{Ready, EventRealize, always, Ready, nothing, Lost},
	{Ready, EventFail, always, Ready, nothing, Lost},
	{Ready, EventRelinquish, always, Ready, nothing, Lost},
	{Ready, EventPutBack, always, Ready, nothing, Lost},
	{Ready, EventReap, always, Ready, nothing, Lost},
	{Ready, EventCancel, always, Failed, failCancelled, Applied},
	{Ready, EventPromote, always, Ready, nothing, Already},
	{Ready, EventAssign, unassigned, Ready, setAssigned, Applied},
	{Ready, EventAssign, assignedToWorker.and(sameReason), Ready, nothing, Already},
	{Ready, EventUnassign, assignedToWorker, Ready, clearAssigned, Applied},

	{Delayed, EventRealize, always, Delayed, nothing, Lost},
	{Delayed, EventFail, always, Delayed, nothing, Lost},
	{Delayed, EventRelinquish, always, Delayed, nothing, Lost},
	{Delayed, EventPutBack, always, Delayed, nothing, Lost},
	{Delayed, EventReap, always, Delayed, nothing, Lost},
	{Delayed, EventCancel, always, Failed, failCancelled, Applied},
	{Delayed, EventPromote, isDue, Ready, becomeReady, Applied},
	{Delayed, EventRetry, always, Ready, becomeReady, Applied},
	{Delayed, EventAssign, isHeld, Ready, setAssigned, Applied},

	{Claimed, EventClaim, holdsClaim, Claimed, nothing, Already},
	{Claimed, EventClaim, always, Claimed, nothing, Lost},
	{Claimed, EventRealize, holdsClaim, Realized, setResult, Applied},
	{Claimed, EventRealize, always, Claimed, nothing, Lost},
	{Claimed, EventFail, holdsClaim.and(cancelAsked), Failed, failCancelled, Applied},
	{Claimed, EventFail, holdsClaim.and(permanent), Failed, failAttempt, Applied},
	{Claimed, EventFail, holdsClaim.and(attemptsSpent), Failed, failAttempt, Applied},
	{Claimed, EventFail, holdsClaim.and(withoutWait), Ready, retryNow, Applied},
	{Claimed, EventFail, holdsClaim, Delayed, retryLater, Applied},
	{Claimed, EventFail, always, Claimed, nothing, Lost},
	{Claimed, EventRelinquish, holdsClaim.and(cancelAsked), Failed, failCancelled, Applied},
	{Claimed, EventRelinquish, holdsClaim, Ready, dropClaim, Applied},
	{Claimed, EventRelinquish, always, Claimed, nothing, Lost},
	{Claimed, EventPutBack, holdsClaim.and(cancelAsked), Failed, failCancelled, Applied},
	{Claimed, EventPutBack, holdsClaim, Delayed, putBackLater, Applied},
	{Claimed, EventPutBack, always, Claimed, nothing, Lost},
	{Claimed, EventReap, claimOfWorker.and(cancelAsked), Failed, failCancelled, Applied},
	{Claimed, EventReap, claimOfWorker.and(crashesSpent), Failed, failLost, Applied},
	{Claimed, EventReap, claimOfWorker, Ready, countCrash, Applied},
	{Claimed, EventReap, always, Claimed, nothing, Lost},
	{Claimed, EventCancel, cancelAsked, Claimed, nothing, Requested},
	{Claimed, EventCancel, always, Claimed, askCancel, Requested},

	{Realized, EventRealize, holdsClaim, Realized, nothing, Already},
	{Realized, EventRealize, always, Realized, nothing, Lost},
	{Realized, EventFail, always, Realized, nothing, Lost},
	{Realized, EventRelinquish, always, Realized, nothing, Lost},
	{Realized, EventPutBack, always, Realized, nothing, Lost},
	{Realized, EventReap, always, Realized, nothing, Lost},
	{Realized, EventCancel, always, Realized, nothing, Already},

	{Failed, EventRealize, always, Failed, nothing, Lost},
	{Failed, EventFail, always, Failed, nothing, Lost},
	{Failed, EventRelinquish, always, Failed, nothing, Lost},
	{Failed, EventPutBack, always, Failed, nothing, Lost},
	{Failed, EventReap, always, Failed, nothing, Lost},
	{Failed, EventCancel, always, Failed, nothing, Already},
	{Failed, EventRetry, always, Ready, startOver, Applied},
}

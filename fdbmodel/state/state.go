// Package state is the life cycle of a future: a table of what each event makes of each state,
// and the pure function that applies it.
package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// EventKind is something that happens to a future.
type EventKind uint8

// The events.
const (
	EventClaim      EventKind = iota + 1 // a worker takes it
	EventRealize                         // its worker has the result
	EventFail                            // its worker's attempt failed
	EventRelinquish                      // its worker gives it back unrun or interrupted; not an attempt
	EventReject                          // its worker can't run it; another may
	EventReap                            // its worker was declared dead
	EventReappear                        // a worker that was declared dead with it is alive
	EventCancel                          // its cancellation is requested
	EventPromote                         // it is due
	EventRetry                           // it is to run again, or at once
	EventAssign                          // it is assigned to a worker
	EventUnassign                        // it is unassigned from that worker
	EventUnblock                         // all its inputs are realized
	EventUpstream                        // one of its inputs failed, or is gone
	EventLose                            // no worker has a copy of its result
	EventBlock                           // its worker finds that the result of an input was lost
	EventInfeasible                      // no worker could run it for too long
	EventReplace                         // a worker that has what it must be near may be able to run it by now
	EventAdmit                           // its lane admits it
	EventSnooze                          // its function asks to be run again later; not an attempt
	EventExpire                          // its time is over
	EventTake                            // a bundle takes it out of the line
	EventGather                          // it is a bundle, and has taken members
	EventFulfill                         // it is a promise, and gets its value
	EventDecline                         // it is a promise, and is rejected
)

var eventNames = [...]string{
	EventClaim: "claim", EventRealize: "realize", EventFail: "fail", EventRelinquish: "relinquish",
	EventReject: "reject", EventReap: "reap", EventReappear: "reappear", EventCancel: "cancel",
	EventPromote: "promote", EventRetry: "retry",
	EventAssign: "assign", EventUnassign: "unassign", EventUnblock: "unblock", EventUpstream: "upstream",
	EventLose: "lose", EventBlock: "block",
	EventInfeasible: "infeasible", EventReplace: "replace", EventAdmit: "admit", EventTake: "take", EventGather: "gather",
	EventSnooze: "snooze", EventExpire: "expire", EventFulfill: "fulfill", EventDecline: "decline",
}

// Events lists all kinds of event.
func Events() []EventKind {
	events := make([]EventKind, len(eventNames)-1)
	for i := range events {
		events[i] = EventKind(i + 1)
	}
	return events
}

// String returns the event's name.
func (e EventKind) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// Event is an event with its data. Kind determines which fields are used.
type Event struct {
	Kind EventKind
	// Token is that of the claim for Claim, Realize, Fail, Relinquish, Reject, Block
	// and Snooze, and for Expire if its worker says so, that of the result for Lose; Reap
	// and Reappear use only its worker.
	Token       layout.Token
	Result      *layout.Result        // Realize, Fulfill
	Exception   *layout.Exception     // Fail, Upstream; Infeasible and Decline: only its message
	Permanent   bool                  // Fail: no further attempt, whatever its kind
	RetryIn     *time.Duration        // Fail: wait this long instead of the backoff; Snooze: how long
	Crash       bool                  // Reap: running the future may have killed the worker
	Cancel      *layout.CancelRequest // Cancel
	Reason      string                // Assign: the reason for the assignment; Lose: how the result was lost
	Near        layout.WorkerID       // Unblock: the worker that it is best left to, if any,
	NearWait    time.Duration         // and for how long; the only one, if it must be near an object
	Unplaceable bool                  // Unblock: none that has that object could run it
	Peer        string                // Reject: the worker's LabelPeer, if it has one
	Crowded     bool                  // Reject: the worker passes over too many futures already
	Started     time.Time             // Fail: when the attempt began, the zero time if that is unknown
	Now         time.Time             // every event
	Jitter      float64               // Fail, Reject, Reap: in [0,1), spreads the backoff
}

// Outcome is the outcome of an event.
type Outcome uint8

const (
	// Applied means that the future changed.
	Applied Outcome = iota + 1
	// Already means that this very event was applied before.
	Already
	// Lost means that the claim which the event relies on no longer exists: the
	// worker has no say over the future.
	Lost
	// Requested means that the holder of the future is asked to stop it.
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

// ErrTransition is returned when a future is in a state that does not allow a request.
var ErrTransition = errors.New("not possible in this state")

// MaxRebuilds is how often a future runs again because its result was lost. They
// are counted apart from its attempts, all of which it has each time.
const MaxRebuilds = 16

// MaxCrashes is how many crashes a future may have before it is assumed to be
// their cause: deaths of workers that were known to run it, with nothing more
// suspicious beside it.
const MaxCrashes = 3

// Next applies e to a future and returns the resulting row. A failure that another one
// replaces goes into the history. It is pure: it modifies neither row nor event, and uses
// no clock, store or randomness but the data in the event. An event that fits no row of
// the table of transitions changes nothing, and has the outcome that is said for it there,
// or Refused. Next needs row.Spec for Fail, Reject, Reap, Promote, Retry, Unassign,
// Unblock and Infeasible only, and for all events of a future in a lane.
func Next(row layout.Row, e Event) (layout.Row, Outcome) {
	outcome := Apply(&row, &e)
	return row, outcome
}

// Apply is Next that changes the row itself: a row and an event that are on the heap anyway are not copied to it.
func Apply(row *layout.Row, e *Event) Outcome {
	from := row.State()
	for i := range transitions {
		t := &transitions[i]
		if t.from == from && t.event == e.Kind && (t.when.holds == nil || t.when.holds(row, e)) {
			before := *row
			t.then.apply(row, e)
			remember(row, before.Exception, e.Kind)
			if t.outcome == Applied {
				followLane(&before, row)
			}
			return t.outcome
		}
	}
	for i := range otherwise {
		if o := &otherwise[i]; o.event == e.Kind && (o.when.holds == nil || o.when.holds(row, e)) {
			return o.outcome
		}
	}
	return Refused
}

type condition struct {
	text  string
	holds func(*layout.Row, *Event) bool
}

type effect struct {
	text  string
	apply func(*layout.Row, *Event)
}

type transition struct {
	from    layout.State
	event   EventKind
	when    condition
	to      layout.State
	then    effect
	outcome Outcome
}

// transitions is the whole life cycle of a future, most specific row first.
var transitions = []transition{
	{layout.Blocked, EventExpire, byWorker, layout.Blocked, nothing, Lost},
	{layout.Blocked, EventExpire, isOver, layout.Failed, failOver, Applied},
	{layout.Blocked, EventReappear, diedWithWorker, layout.Blocked, forgetDeath, Applied},
	{layout.Blocked, EventCancel, always, layout.Failed, failCancelled, Applied},
	{layout.Blocked, EventFulfill, isPromise.and(isOver), layout.Failed, failOver, Applied},
	{layout.Blocked, EventFulfill, isPromise, layout.Realized, fulfill, Applied},
	{layout.Blocked, EventDecline, isPromise.and(isOver), layout.Failed, failOver, Applied},
	{layout.Blocked, EventDecline, isPromise, layout.Failed, decline, Applied},
	{layout.Blocked, EventUnblock, isPromise, layout.Blocked, nothing, Refused},
	{layout.Blocked, EventUpstream, isPromise, layout.Blocked, nothing, Refused},
	{layout.Blocked, EventUnblock, waitsForTime, layout.Delayed, unblock, Applied},
	{layout.Blocked, EventUnblock, always, layout.Ready, unblockNow, Applied},
	{layout.Blocked, EventUpstream, always, layout.Failed, failUpstream, Applied},

	{layout.Ready, EventClaim, isAdmitted, layout.Claimed, setClaim, Applied},
	{layout.Ready, EventExpire, byWorker, layout.Ready, nothing, Lost},
	{layout.Ready, EventExpire, isOver, layout.Failed, failOver, Applied},
	{layout.Ready, EventReappear, diedWithWorker, layout.Ready, forgetDeath, Applied},
	{layout.Ready, EventCancel, always, layout.Failed, failCancelled, Applied},
	{layout.Ready, EventTake, isInLine.and(isMember), layout.Claimed, leaveLineWithClaim, Applied},
	{layout.Ready, EventAdmit, isInLine.and(isNoMember), layout.Ready, leaveLine, Applied},
	{layout.Ready, EventAssign, unassigned.and(isAdmitted), layout.Ready, setAssigned, Applied},
	{layout.Ready, EventAssign, assignedToWorker.and(sameReason), layout.Ready, nothing, Already},
	{layout.Ready, EventUnassign, assignedToWorker.and(mustBeNear), layout.Blocked, lookAgain, Applied},
	{layout.Ready, EventUnassign, assignedToWorker, layout.Ready, clearAssigned, Applied},
	{layout.Ready, EventInfeasible, isInLine.and(isMember), layout.Failed, failInfeasible, Applied},
	{layout.Ready, EventInfeasible, inPool, layout.Failed, failInfeasible, Applied},
	{layout.Ready, EventReplace, unplaceable, layout.Blocked, lookAgain, Applied},

	{layout.Delayed, EventExpire, byWorker, layout.Delayed, nothing, Lost},
	{layout.Delayed, EventExpire, isOver, layout.Failed, failOver, Applied},
	{layout.Delayed, EventReappear, diedWithWorker, layout.Delayed, forgetDeath, Applied},
	{layout.Delayed, EventCancel, always, layout.Failed, failCancelled, Applied},
	{layout.Delayed, EventPromote, isDue.and(mustBeNear), layout.Blocked, lookAgain, Applied},
	{layout.Delayed, EventPromote, isDue, layout.Ready, becomeReady, Applied},
	{layout.Delayed, EventRetry, mustBeNear, layout.Blocked, lookAgain, Applied},
	{layout.Delayed, EventRetry, always, layout.Ready, becomeReady, Applied},
	{layout.Delayed, EventAssign, isHeld, layout.Ready, setAssigned, Applied},

	{layout.Claimed, EventRealize, holdsClaim, layout.Realized, setResult, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(permanent), layout.Failed, failAttempt, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(attemptsSpent), layout.Failed, failAttempt, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(withoutWait).and(mustBeNear), layout.Blocked, retryBlocked, Applied},
	{layout.Claimed, EventFail, holdsClaim.and(withoutWait), layout.Ready, retryNow, Applied},
	{layout.Claimed, EventFail, holdsClaim, layout.Delayed, retryLater, Applied},
	{layout.Claimed, EventRelinquish, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventRelinquish, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventRelinquish, holdsClaim, layout.Ready, dropClaim, Applied},
	{layout.Claimed, EventReject, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventReject, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventReject, holdsClaim.and(othersMay), layout.Ready, rejectToOthers, Applied},
	{layout.Claimed, EventReject, holdsClaim, layout.Delayed, rejectLater, Applied},
	{layout.Claimed, EventSnooze, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventSnooze, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventSnooze, holdsClaim, layout.Delayed, snoozeLater, Applied},
	{layout.Claimed, EventExpire, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventExpire, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventExpire, holdsClaim, layout.Ready, dropClaim, Applied},
	{layout.Claimed, EventExpire, always, layout.Claimed, nothing, Lost},
	{layout.Claimed, EventReap, claimOfWorker.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventReap, claimOfWorker.and(isCrash).and(crashesSpent), layout.Failed, failLost, Applied},
	{layout.Claimed, EventReap, claimOfWorker.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventReap, claimOfWorker.and(isHeld), layout.Ready, countDeath, Applied},
	{layout.Claimed, EventReap, claimOfWorker, layout.Delayed, countDeathAndWait, Applied},
	{layout.Claimed, EventReappear, diedWithWorker, layout.Claimed, forgetDeath, Applied},
	{layout.Claimed, EventGather, holdsClaim.and(isBundle), layout.Claimed, setTaken, Applied},
	{layout.Claimed, EventBlock, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},
	{layout.Claimed, EventBlock, holdsClaim.and(isOver), layout.Failed, failOver, Applied},
	{layout.Claimed, EventBlock, holdsClaim.and(hasInputs), layout.Blocked, blockAgain, Applied},
	{layout.Claimed, EventCancel, cancelAsked, layout.Claimed, nothing, Requested},
	{layout.Claimed, EventCancel, always, layout.Claimed, askCancel, Requested},

	{layout.Realized, EventRealize, holdsClaim, layout.Realized, nothing, Already},
	{layout.Realized, EventFulfill, isPromise.and(sameValue), layout.Realized, nothing, Already},
	{layout.Realized, EventLose, loses.and(mayRebuild).and(hasInputs), layout.Blocked, rebuildBlocked, Applied},
	{layout.Realized, EventLose, loses.and(mayRebuild), layout.Ready, rebuild, Applied},
	{layout.Realized, EventLose, loses, layout.Failed, failRebuild, Applied},

	{layout.Failed, EventDecline, isPromise.and(sameRejection), layout.Failed, nothing, Already},
	{layout.Failed, EventRetry, wasPut, layout.Failed, nothing, Refused},
	{layout.Failed, EventRetry, isPromise, layout.Blocked, startOverBlocked, Applied},
	{layout.Failed, EventRetry, isBundle, layout.Failed, nothing, Refused},
	{layout.Failed, EventRetry, hasInputs, layout.Blocked, startOverBlocked, Applied},
	{layout.Failed, EventRetry, always, layout.Ready, startOver, Applied},
}

// otherwise is the outcome of an event that no row of the table fits; the future does not
// change. What is not here either is Refused.
var otherwise = []struct {
	event   EventKind
	when    condition
	outcome Outcome
}{
	{EventRealize, always, Lost},
	{EventFail, always, Lost},
	{EventRelinquish, always, Lost},
	{EventReject, always, Lost},
	{EventSnooze, always, Lost},
	{EventBlock, always, Lost},
	{EventReap, always, Lost},
	{EventGather, isClaimed, Lost},
	{EventReappear, isOpen, Already},
	{EventExpire, isTerminal, Already},
	{EventCancel, isTerminal, Already},
}

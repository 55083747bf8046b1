package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Conditions of the table of transitions.
var (
	always     = condition{"", nil}
	holdsClaim = condition{"token holds the claim",
		func(r *layout.Row, e *Event) bool { return r.Claim.Token == e.Token }}
	claimOfWorker = condition{"worker holds the claim", func(r *layout.Row, e *Event) bool {
		return r.Claim.Worker == e.Token.Worker
	}}
	isClaimed  = condition{"claimed", func(r *layout.Row, _ *Event) bool { return r.State() == layout.Claimed }}
	isTerminal = condition{"realized or failed",
		func(r *layout.Row, _ *Event) bool { return r.State().Terminal() }}
	isOpen = condition{"neither realized nor failed",
		func(r *layout.Row, _ *Event) bool { return !r.State().Terminal() }}
	cancelAsked = condition{"cancel was asked", func(r *layout.Row, _ *Event) bool { return r.Cancel != nil }}
	permanent   = condition{"failure is permanent", func(_ *layout.Row, e *Event) bool {
		return e.Permanent || !e.Exception.Kind.Retryable()
	}}
	attemptsSpent = condition{"attempts are spent", func(r *layout.Row, _ *Event) bool {
		return r.Attempts.Failed+1 >= r.Spec.MaxRetries+1
	}}
	isCrash      = condition{"death counts as a crash", func(_ *layout.Row, e *Event) bool { return e.Crash }}
	crashesSpent = condition{"crashes are spent", func(r *layout.Row, _ *Event) bool {
		return r.Attempts.Crashes+1 >= MaxCrashes
	}}
	withoutWait = condition{"retry in 0 was asked", func(_ *layout.Row, e *Event) bool {
		return e.RetryIn != nil && *e.RetryIn <= 0
	}}
	unassigned = condition{"not assigned",
		func(r *layout.Row, _ *Event) bool { return r.Attempts.Assigned == "" }}
	assignedToWorker = condition{"assigned to the worker", func(r *layout.Row, e *Event) bool {
		return r.Attempts.Assigned == e.Token.Worker
	}}
	diedWithWorker = condition{"death of the worker is on record", func(r *layout.Row, e *Event) bool {
		_, found := r.Attempts.Deaths.Of(e.Token.Worker)
		return found
	}}
	inPool     = condition{"in the pool", func(r *layout.Row, _ *Event) bool { return r.InPool() }}
	isHeld     = condition{"held", func(r *layout.Row, _ *Event) bool { return r.Spec.Held() }}
	sameReason = condition{"for the same reason",
		func(r *layout.Row, e *Event) bool { return r.Attempts.Reason == e.Reason }}
	mustBeNear = condition{"must be near an object",
		func(r *layout.Row, _ *Event) bool { return r.Spec != nil && r.Spec.MustBeNear }}
	unplaceable = condition{"no worker that has the object it must be near could run it",
		func(r *layout.Row, _ *Event) bool { return r.Attempts.Unplaceable }}
	hasInputs = condition{"it has inputs", func(r *layout.Row, _ *Event) bool { return r.Spec.HasInputs() }}
	loses     = condition{"its result with this token is an object", func(r *layout.Row, e *Event) bool {
		return r.Result.Object != "" && r.Result.Token == e.Token
	}}
	mayRebuild = condition{"may run again", func(r *layout.Row, _ *Event) bool {
		return r.Spec.AllowReconstruction && r.Attempts.Rebuilt < MaxRebuilds
	}}
	wasPut       = condition{"its result was put", func(r *layout.Row, _ *Event) bool { return r.Spec.IsPut() }}
	waitsForTime = condition{"due later",
		func(r *layout.Row, e *Event) bool { return r.Attempts.Due > layout.Millis(e.Now) }}
	isInLine   = condition{"in line", func(r *layout.Row, _ *Event) bool { return r.InLine() }}
	isMember   = condition{"member of bundles", func(r *layout.Row, _ *Event) bool { return r.Spec.Member }}
	isNoMember = condition{"no member of bundles", func(r *layout.Row, _ *Event) bool { return !r.Spec.Member }}
	isBundle   = condition{"bundle", func(r *layout.Row, _ *Event) bool { return r.Spec.Bundle }}
	isAdmitted = condition{"not in line", func(r *layout.Row, _ *Event) bool { return !r.InLine() }}
	othersMay  = condition{"others may take it", func(r *layout.Row, e *Event) bool {
		return isForOthers(r, e) &&
			r.Attempts.Refused.Passing(layout.Millis(e.Now)) < layout.MaxRefusals
	}}
	isDue = condition{"due", func(r *layout.Row, e *Event) bool { return r.Attempts.Due <= layout.Millis(e.Now) }}
)

func (c condition) and(d condition) condition {
	return condition{c.text + ", " + d.text, func(r *layout.Row, e *Event) bool { return c.holds(r, e) && d.holds(r, e) }}
}

// Effects of the table of transitions. Row is a pointer to a copy; values
// behind its own pointers are replaced, never modified.
var (
	nothing            = effect{"", func(*layout.Row, *Event) {}}
	setClaim           = effect{"set claim", func(r *layout.Row, e *Event) { r.Claim = &layout.Claim{Token: e.Token} }}
	leaveLineWithClaim = effect{"clear place in line, set claim", func(r *layout.Row, e *Event) {
		r.Line, r.Claim = nil, &layout.Claim{Token: e.Token}
	}}
	setResult      = effect{"set result", func(r *layout.Row, e *Event) { r.Result, r.Cancel = e.Result, nil }}
	leaveLine      = effect{"clear place in line", func(r *layout.Row, _ *Event) { r.Line = nil }}
	setTaken       = effect{"set taken", func(r *layout.Row, _ *Event) { r.Attempts.Taken = true }}
	askCancel      = effect{"set cancel", func(r *layout.Row, e *Event) { r.Cancel = e.Cancel }}
	dropClaim      = effect{"clear claim", func(r *layout.Row, _ *Event) { r.Claim, r.Attempts.Due = nil, 0 }}
	becomeReady    = effect{"clear due time", func(r *layout.Row, _ *Event) { r.Attempts.Due = 0 }}
	failCancelled  = effect{"final exception: cancelled", applyCancelled}
	failInfeasible = effect{"final exception: infeasible", applyInfeasible}
	failLost       = effect{"record death, count crash, final exception: lost", applyLost}
	setAssigned    = effect{"set assignment, clear due time", func(r *layout.Row, e *Event) {
		r.Attempts.Assigned, r.Attempts.Reason, r.Attempts.Due = e.Token.Worker, e.Reason, 0
	}}
	clearAssigned = effect{"clear assignment", func(r *layout.Row, _ *Event) { r.Attempts.Assigned = "" }}
	countDeath    = effect{"clear claim and assignment, record death, count crash if it is one", applyDeath}
	forgetDeath   = effect{"forget death, and its crash", applyReappear}
	// What ran together doesn't come back together.
	countDeathAndWait = effect{"clear claim and assignment, record death, count crash if it is one, set due time",
		func(r *layout.Row, e *Event) {
			applyDeath(r, e)
			wait := deathBackoff.Wait(r.Attempts.Deaths.Len(), e.Jitter)
			r.Attempts.Due = max(1, layout.Millis(e.Now.Add(wait)))
		}}
	failAttempt = effect{"clear assignment, count attempt, final exception", func(r *layout.Row, e *Event) {
		countAttempt(r, e, true)
	}}
	retryNow = effect{"clear assignment, count attempt, exception", func(r *layout.Row, e *Event) {
		countAttempt(r, e, false)
	}}
	retryLater = effect{"clear assignment, count attempt, exception, set due time", func(r *layout.Row, e *Event) {
		countAttempt(r, e, false)
		wait := r.Spec.Backoff.Wait(r.Attempts.Failed, e.Jitter)
		if e.RetryIn != nil {
			wait = *e.RetryIn
		}
		r.Attempts.Due = max(1, layout.Millis(e.Now.Add(wait)))
	}}
	rejectLater = effect{"clear claim and assignment, count rejection, record the worker, set due time",
		func(r *layout.Row, e *Event) {
			r.Attempts.Due = applyReject(r, e)
			if isForOthers(r, e) { // too many pass it over
				r.Attempts.Due = r.Attempts.Refused.First(layout.Millis(e.Now))
			}
		}}
	rejectToOthers = effect{
		"clear claim and assignment, count rejection, record the worker and until when it passes over",
		func(r *layout.Row, e *Event) { applyReject(r, e) }}
	unblock    = effect{"clear blocked, set the nearest worker", applyUnblock}
	unblockNow = effect{"clear blocked and due time, set the nearest worker, assigned if it must be near",
		func(r *layout.Row, e *Event) {
			applyUnblock(r, e)
			if r.Attempts.Due = 0; r.Spec != nil && r.Spec.MustBeNear {
				r.Attempts.Assigned, r.Attempts.Unplaceable = e.Near, e.Unplaceable
			}
		}}
	lookAgain    = effect{"clear assignment and due time, set blocked", applyLookAgain}
	retryBlocked = effect{"clear assignment, count attempt, exception, set blocked", func(r *layout.Row, e *Event) {
		countAttempt(r, e, false)
		applyLookAgain(r, e)
	}}
	failUpstream = effect{"clear blocked and due time, final exception: upstream", func(r *layout.Row, e *Event) {
		exception := *e.Exception
		exception.Final, exception.At = true, layout.Millis(e.Now)
		r.Blocked, r.Attempts.Due, r.Exception = nil, 0, &exception
	}}
	blockAgain = effect{"clear claim and assignment, set blocked", func(r *layout.Row, _ *Event) {
		r.Claim, r.Attempts.Due, r.Attempts.Assigned, r.Blocked = nil, 0, "", &layout.BlockedRecord{}
	}}
	rebuild        = effect{"clear claim, result and counts, count rebuild", applyRebuild}
	rebuildBlocked = effect{"clear claim, result and counts, count rebuild, set blocked",
		func(r *layout.Row, e *Event) {
			applyRebuild(r, e)
			r.Blocked = &layout.BlockedRecord{}
		}}
	failRebuild      = effect{"clear claim and result, final exception: lost", applyLoss}
	startOver        = effect{"clear counts and finality", applyStartOver}
	startOverBlocked = effect{"clear counts and finality, set blocked", func(r *layout.Row, e *Event) {
		applyStartOver(r, e)
		r.Blocked = &layout.BlockedRecord{}
	}}
)

// isForOthers reports whether any worker may have what one puts back.
func isForOthers(r *layout.Row, e *Event) bool {
	return !e.Crowded && !r.Spec.MustBeNear && !r.Spec.Held() && !r.Spec.Aside
}

// applyReject returns when its worker may have it again.
func applyReject(r *layout.Row, e *Event) (until int64) {
	r.Claim, r.Attempts.Assigned, r.Attempts.Due = nil, "", 0
	r.Attempts.Rejected++
	until = max(1, layout.Millis(e.Now.Add(r.Spec.Backoff.Wait(r.Attempts.Rejected, e.Jitter))))
	r.Attempts.Refused = r.Attempts.Refused.With(layout.Refusal{
		Worker: e.Token.Worker, Peer: e.Peer, At: layout.Millis(e.Now), Until: until})
	return until
}

func applyUnblock(r *layout.Row, e *Event) {
	r.Blocked, r.Attempts.Near, r.Attempts.NearWait = nil, "", 0
	if r.Spec == nil || !r.Spec.MustBeNear {
		r.Attempts.Near, r.Attempts.NearWait = e.Near, e.NearWait
	}
}

// applyLookAgain has the dependencies of the future resolved, which finds a worker for it.
func applyLookAgain(r *layout.Row, _ *Event) {
	r.Attempts.Assigned, r.Attempts.Unplaceable, r.Attempts.Due = "", false, 0
	r.Blocked = &layout.BlockedRecord{}
}

func applyStartOver(r *layout.Row, _ *Event) {
	r.Attempts, r.Claim, r.Cancel, r.Result = layout.Attempts{Reason: r.Attempts.Reason}, nil, nil, nil
	r.Attempts.Lifted = hasLimit(r)
	exception := *r.Exception
	exception.Final = false
	r.Exception = &exception
}

// applyRebuild gives the future all its attempts again. What it did to workers
// stays on record.
func applyRebuild(r *layout.Row, _ *Event) {
	a := r.Attempts
	r.Attempts = layout.Attempts{Reason: a.Reason, Crashes: a.Crashes, Deaths: a.Deaths, Rebuilt: a.Rebuilt + 1}
	r.Attempts.Lifted = hasLimit(r)
	r.Claim, r.Result = nil, nil
}

func applyLoss(r *layout.Row, e *Event) {
	why := "its submit does not allow it to run again"
	if r.Spec.IsPut() {
		why = "it was put, not computed"
	} else if r.Spec.AllowReconstruction {
		why = fmt.Sprintf("it has run again %d times", r.Attempts.Rebuilt)
	}
	r.Exception = &layout.Exception{
		Kind: layout.KindLost, Message: fmt.Sprintf("its result was lost (%s), and it cannot be rebuilt because %s",
			e.Reason, why), Attempt: r.Result.Attempt, Worker: r.Result.Worker, Final: true, At: layout.Millis(e.Now),
	}
	r.Claim, r.Result = nil, nil
}

// maxFailedOn is the maximum length of Exception.FailedOn.
const maxFailedOn = 8

func countAttempt(r *layout.Row, e *Event, final bool) {
	exception := *e.Exception
	exception.Attempt, exception.Worker = r.Attempts.Failed+1, e.Token.Worker
	exception.Final, exception.Permanent, exception.At = final, e.Permanent, layout.Millis(e.Now)
	if !e.Started.IsZero() {
		exception.StartedAt = layout.Millis(e.Started)
	}
	var earlier []layout.WorkerID
	if r.Exception != nil {
		earlier = r.Exception.FailedOn
	}
	earlier = earlier[max(0, len(earlier)+1-maxFailedOn):]
	exception.FailedOn = append(slices.Clone(earlier), exception.Worker)
	r.Claim, r.Exception, r.Attempts.Due, r.Attempts.Assigned = nil, &exception, 0, ""
	r.Attempts.Failed++
	if exception.Kind == layout.KindMemory {
		r.Attempts.RAM = r.Spec.Grown(r.Attempts.RAM)
	}
}

func applyCancelled(r *layout.Row, e *Event) {
	request := r.Cancel
	if e.Kind == EventCancel {
		request = e.Cancel
	}
	message := "cancelled"
	if request != nil && request.Reason != "" {
		message = request.Reason
	}
	last := e.Exception
	if last == nil {
		last = r.Exception
	}
	exception := endedBy(layout.KindCancelled, message, last, e.Now)
	if r.Claim != nil {
		exception.Attempt, exception.Worker = r.Attempts.Failed+1, r.Claim.Worker
	}
	r.Claim, r.Cancel, r.Exception, r.Blocked, r.Attempts.Due = nil, nil, exception, nil, 0
}

// endedBy is the final exception of a future that no attempt has ended. What is
// known of its last attempt stays.
func endedBy(kind layout.FailureKind, message string, last *layout.Exception, now time.Time) *layout.Exception {
	exception := &layout.Exception{Kind: kind, Message: message, Final: true, At: layout.Millis(now)}
	if last != nil {
		exception.Stdout, exception.Stderr, exception.StderrRef = last.Stdout, last.Stderr, last.StderrRef
		exception.ExitCode, exception.Truncated = last.ExitCode, last.Truncated
		exception.Attempt, exception.Worker, exception.FailedOn = last.Attempt, last.Worker, last.FailedOn
	}
	return exception
}

func applyInfeasible(r *layout.Row, e *Event) {
	r.Exception = endedBy(layout.KindInfeasible, e.Exception.Message, r.Exception, e.Now)
}

// deathBackoff is how long a future waits after a death of its worker. Its own
// backoff is for its failures.
var deathBackoff = layout.Backoff{Base: time.Second, Max: 30 * time.Second}

func applyDeath(r *layout.Row, e *Event) {
	r.History = r.History.With(deathOf(r, e))
	r.Claim, r.Attempts.Due, r.Attempts.Assigned = nil, 0, ""
	recordDeath(r, e)
}

func recordDeath(r *layout.Row, e *Event) {
	r.Attempts.Deaths = r.Attempts.Deaths.With(layout.Death{Worker: e.Token.Worker, Crash: e.Crash})
	if e.Crash {
		r.Attempts.Crashes++
	}
}

func applyReappear(r *layout.Row, e *Event) {
	if death, _ := r.Attempts.Deaths.Of(e.Token.Worker); death.Crash {
		r.Attempts.Crashes--
	}
	r.Attempts.Deaths = r.Attempts.Deaths.Without(e.Token.Worker)
}

func applyLost(r *layout.Row, e *Event) {
	recordDeath(r, e)
	r.Exception = &layout.Exception{
		Kind: layout.KindLost, Message: fmt.Sprintf("%d workers died while they ran it", r.Attempts.Crashes),
		Attempt: r.Attempts.Failed + 1, Worker: r.Claim.Worker, Final: true, At: layout.Millis(e.Now),
	}
	r.Claim, r.Attempts.Due = nil, 0
}

package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

var (
	gridToken = layout.Token{Worker: "a", Sequence: 1}
	otherTok  = layout.Token{Worker: "b", Sequence: 1}
	gridNow   = time.UnixMilli(1_000_000)
)

// gridRow is a future in a state, with one attempt left.
func gridRow(s layout.State) layout.Row {
	row := layout.Row{Spec: &layout.Spec{Function: "go:f", Queue: layout.DefaultQueue, MaxRetries: 1}}
	switch s {
	case layout.Blocked:
		row.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
		row.Blocked = &layout.BlockedRecord{Linked: 1}
	case layout.Delayed:
		row.Attempts.Due = layout.Millis(gridNow) + 1
	case layout.Claimed:
		row.Claim = &layout.Claim{Token: gridToken}
	case layout.Realized:
		row.Claim = &layout.Claim{Token: gridToken}
		row.Result = &layout.Result{Token: gridToken}
	case layout.Failed:
		row.Exception = &layout.Exception{Kind: layout.KindError, Final: true}
		row.Attempts.Failed = 2
	}
	return row
}

func gridEvent(k state.EventKind, token layout.Token) state.Event {
	e := state.Event{
		Kind: k, Token: token, Result: &layout.Result{Token: token},
		Exception: &layout.Exception{Kind: layout.KindError, Message: "m"},
		Cancel:    &layout.CancelRequest{Reason: "r"}, Now: gridNow, Jitter: 0.5,
	}
	if k == state.EventSnooze {
		e.RetryIn = new(time.Duration)
	}
	return e
}

// TestStateGrid covers every pair of state and event, by the holder and by
// another worker.
func TestStateGrid(t *testing.T) {
	t.Parallel()
	// One line for each state: the outcome of the holder's event, then of
	// another worker's, as STATE/OUTCOME.
	want := map[string]string{
		"blocked claim": "blocked/refused blocked/refused", "blocked realize": "blocked/lost blocked/lost",
		"blocked fail": "blocked/lost blocked/lost", "blocked relinquish": "blocked/lost blocked/lost",
		"blocked reject": "blocked/lost blocked/lost", "blocked reap": "blocked/lost blocked/lost",
		"blocked reappear": "blocked/already blocked/already", "blocked cancel": "failed/applied failed/applied",
		"blocked promote": "blocked/refused blocked/refused", "blocked retry": "blocked/refused blocked/refused",
		"blocked assign": "blocked/refused blocked/refused", "blocked unassign": "blocked/refused blocked/refused",

		"blocked lose": "blocked/refused blocked/refused", "ready lose": "ready/refused ready/refused",
		"delayed lose": "delayed/refused delayed/refused", "claimed lose": "claimed/refused claimed/refused",
		"realized lose": "realized/refused realized/refused", "failed lose": "failed/refused failed/refused",

		"blocked block": "blocked/lost blocked/lost", "ready block": "ready/lost ready/lost",
		"delayed block": "delayed/lost delayed/lost", "claimed block": "claimed/lost claimed/lost",
		"realized block": "realized/lost realized/lost", "failed block": "failed/lost failed/lost",

		"blocked unblock": "ready/applied ready/applied", "ready unblock": "ready/refused ready/refused",
		"delayed unblock": "delayed/refused delayed/refused", "claimed unblock": "claimed/refused claimed/refused",
		"realized unblock": "realized/refused realized/refused", "failed unblock": "failed/refused failed/refused",

		"blocked upstream": "failed/applied failed/applied", "ready upstream": "ready/refused ready/refused",
		"delayed upstream": "delayed/refused delayed/refused", "claimed upstream": "claimed/refused claimed/refused",
		"realized upstream": "realized/refused realized/refused", "failed upstream": "failed/refused failed/refused",

		"ready claim": "claimed/applied claimed/applied", "delayed claim": "delayed/refused delayed/refused",
		"claimed claim": "claimed/refused claimed/refused", "realized claim": "realized/refused realized/refused",
		"failed claim": "failed/refused failed/refused",

		"ready realize": "ready/lost ready/lost", "delayed realize": "delayed/lost delayed/lost",
		"claimed realize": "realized/applied claimed/lost", "realized realize": "realized/already realized/lost",
		"failed realize": "failed/lost failed/lost",

		"ready fail": "ready/lost ready/lost", "delayed fail": "delayed/lost delayed/lost",
		"claimed fail": "delayed/applied claimed/lost", "realized fail": "realized/lost realized/lost",
		"failed fail": "failed/lost failed/lost",

		"ready relinquish": "ready/lost ready/lost", "delayed relinquish": "delayed/lost delayed/lost",
		"claimed relinquish": "ready/applied claimed/lost", "realized relinquish": "realized/lost realized/lost",
		"failed relinquish": "failed/lost failed/lost",

		"ready reject": "ready/lost ready/lost", "delayed reject": "delayed/lost delayed/lost",
		"claimed reject": "ready/applied claimed/lost", "realized reject": "realized/lost realized/lost",
		"failed reject": "failed/lost failed/lost",

		"ready reap": "ready/lost ready/lost", "delayed reap": "delayed/lost delayed/lost",
		"claimed reap": "delayed/applied claimed/lost", "realized reap": "realized/lost realized/lost",
		"failed reap": "failed/lost failed/lost",

		"ready reappear": "ready/already ready/already", "delayed reappear": "delayed/already delayed/already",
		"claimed reappear": "claimed/already claimed/already", "realized reappear": "realized/refused realized/refused",
		"failed reappear": "failed/refused failed/refused",

		"ready cancel": "failed/applied failed/applied", "delayed cancel": "failed/applied failed/applied",
		"claimed cancel": "claimed/requested claimed/requested", "realized cancel": "realized/already realized/already",
		"failed cancel": "failed/already failed/already",

		"ready promote": "ready/refused ready/refused", "delayed promote": "delayed/refused delayed/refused",
		"claimed promote": "claimed/refused claimed/refused", "realized promote": "realized/refused realized/refused",
		"failed promote": "failed/refused failed/refused",

		"ready retry": "ready/refused ready/refused", "delayed retry": "ready/applied ready/applied",
		"claimed retry": "claimed/refused claimed/refused", "realized retry": "realized/refused realized/refused",
		"failed retry": "ready/applied ready/applied",

		"ready assign": "ready/applied ready/applied", "delayed assign": "delayed/refused delayed/refused",
		"claimed assign": "claimed/refused claimed/refused", "realized assign": "realized/refused realized/refused",
		"failed assign": "failed/refused failed/refused",

		"ready unassign": "ready/refused ready/refused", "delayed unassign": "delayed/refused delayed/refused",
		"claimed unassign": "claimed/refused claimed/refused", "realized unassign": "realized/refused realized/refused",
		"failed unassign": "failed/refused failed/refused",

		"blocked infeasible": "blocked/refused blocked/refused",
		"ready infeasible":   "failed/applied failed/applied", "delayed infeasible": "delayed/refused delayed/refused",
		"claimed infeasible": "claimed/refused claimed/refused", "realized infeasible": "realized/refused realized/refused",
		"failed infeasible": "failed/refused failed/refused",

		"blocked snooze": "blocked/lost blocked/lost", "ready snooze": "ready/lost ready/lost",
		"delayed snooze": "delayed/lost delayed/lost", "claimed snooze": "delayed/applied claimed/lost",
		"realized snooze": "realized/lost realized/lost", "failed snooze": "failed/lost failed/lost",

		"blocked expire": "blocked/lost blocked/lost", "ready expire": "ready/lost ready/lost",
		"delayed expire": "delayed/lost delayed/lost", "claimed expire": "ready/applied claimed/lost",
		"realized expire": "realized/already realized/already", "failed expire": "failed/already failed/already",

		"blocked replace": "blocked/refused blocked/refused",
		"ready replace":   "ready/refused ready/refused", "delayed replace": "delayed/refused delayed/refused",
		"claimed replace": "claimed/refused claimed/refused", "realized replace": "realized/refused realized/refused",
		"failed replace": "failed/refused failed/refused",

		"blocked take": "blocked/refused blocked/refused",
		"ready take":   "ready/refused ready/refused", "delayed take": "delayed/refused delayed/refused",
		"claimed take": "claimed/refused claimed/refused", "realized take": "realized/refused realized/refused",
		"failed take": "failed/refused failed/refused",

		"blocked gather": "blocked/refused blocked/refused",
		"ready gather":   "ready/refused ready/refused", "delayed gather": "delayed/refused delayed/refused",
		"claimed gather": "claimed/lost claimed/lost", "realized gather": "realized/refused realized/refused",
		"failed gather": "failed/refused failed/refused",

		"blocked admit": "blocked/refused blocked/refused",
		"ready admit":   "ready/refused ready/refused", "delayed admit": "delayed/refused delayed/refused",
		"claimed admit": "claimed/refused claimed/refused", "realized admit": "realized/refused realized/refused",
		"failed admit": "failed/refused failed/refused",
	}
	for _, s := range layout.States() {
		for _, e := range state.Events() {
			var got []string
			for _, token := range []layout.Token{gridToken, otherTok} {
				row := gridRow(s)
				before := fmt.Sprintf("%+v", row)
				after, outcome := state.Next(row, gridEvent(e, token))
				require.Equal(t, before, fmt.Sprintf("%+v", row), "Next is pure")
				got = append(got, after.State().String()+"/"+outcome.String())
			}
			require.Equal(t, wantedOf(want, s, e), strings.Join(got, " "), "%v %v", s, e)
		}
	}
}

// TestStateOfAnEarlierClaim has the holder's own worker end a claim that it had
// before: only the claim that the future is in counts.
func TestStateOfAnEarlierClaim(t *testing.T) {
	t.Parallel()
	earlier := layout.Token{Worker: gridToken.Worker, Sequence: gridToken.Sequence - 1}
	for _, s := range layout.States() {
		for _, e := range []state.EventKind{
			state.EventRealize, state.EventFail, state.EventRelinquish, state.EventReject,
		} {
			row := gridRow(s)
			after, outcome := state.Next(row, gridEvent(e, earlier))
			require.Equal(t, state.Lost, outcome, "%v %v", s, e)
			require.Equal(t, row, after)
		}
	}
}

func TestStateConditions(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	asked := func(r *layout.Row, _ *state.Event) { r.Cancel = &layout.CancelRequest{} }
	tooLarge := func(_ *layout.Row, e *state.Event) { e.Exception.Kind = layout.KindTooLarge }
	for name, c := range map[string]struct {
		change  func(*layout.Row, *state.Event)
		event   state.EventKind
		want    layout.State
		kind    layout.FailureKind
		failed  int
		crashes int
	}{
		"fail with a cancel":       {asked, state.EventFail, layout.Failed, layout.KindCancelled, 0, 0},
		"relinquish with a cancel": {asked, state.EventRelinquish, layout.Failed, layout.KindCancelled, 0, 0},
		"reject with a cancel":     {asked, state.EventReject, layout.Failed, layout.KindCancelled, 0, 0},
		"reap with a cancel":       {asked, state.EventReap, layout.Failed, layout.KindCancelled, 0, 0},
		"a result beats a cancel":  {asked, state.EventRealize, layout.Realized, "", 0, 0},
		"permanent failure": {func(_ *layout.Row, e *state.Event) { e.Permanent = true }, state.EventFail,
			layout.Failed, layout.KindError, 1, 0},
		"kind that is not retryable": {tooLarge, state.EventFail, layout.Failed, layout.KindTooLarge, 1, 0},
		"last attempt": {func(r *layout.Row, _ *state.Event) { r.Attempts.Failed = 1 }, state.EventFail,
			layout.Failed, layout.KindError, 2, 0},
		"no retries": {func(r *layout.Row, _ *state.Event) { r.Spec.MaxRetries = 0 }, state.EventFail,
			layout.Failed, layout.KindError, 1, 0},
		"retry without a wait": {func(_ *layout.Row, e *state.Event) { e.RetryIn = &zero }, state.EventFail,
			layout.Ready, layout.KindError, 1, 0},
		"second crash": {crashed(1, true), state.EventReap, layout.Delayed, "", 0, 2},
		"third crash":  {crashed(2, true), state.EventReap, layout.Failed, layout.KindLost, 0, 3},
		"a death beside a poison candidate after two crashes": {crashed(2, false), state.EventReap, layout.Delayed, "", 0, 2},
		"crash of a held future": {func(r *layout.Row, e *state.Event) { r.Spec.Owner, e.Crash = "g", true },
			state.EventReap, layout.Ready, "", 0, 1},
	} {
		row, event := gridRow(layout.Claimed), gridEvent(c.event, gridToken)
		c.change(&row, &event)
		after, outcome := state.Next(row, event)
		require.Equal(t, state.Applied, outcome, name)
		require.Equal(t, c.want, after.State(), name)
		require.Equal(t, c.failed, after.Attempts.Failed, name)
		require.Equal(t, c.crashes, after.Attempts.Crashes, name)
		if c.kind != "" {
			require.Equal(t, c.kind, after.Exception.Kind, name)
			require.Equal(t, c.want == layout.Failed, after.Exception.Final, name)
		}
		if c.want == layout.Failed {
			require.Nil(t, after.Claim, name)
			require.Nil(t, after.Cancel, name)
		}
	}
}

// TestStateOfAPutFuture loses a result that was put: nothing makes it again.
func TestStateOfAPutFuture(t *testing.T) {
	t.Parallel()
	row := gridRow(layout.Realized)
	row.Spec.Function, row.Result.Object = layout.FunctionPut, "object"
	lost, outcome := state.Next(row, gridEvent(state.EventLose, gridToken))
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Failed, lost.State())
	require.Equal(t, layout.KindLost, lost.Exception.Kind)
	require.Contains(t, lost.Exception.Message, "cannot be rebuilt because it was put, not computed")
	again, outcome := state.Next(lost, gridEvent(state.EventRetry, gridToken))
	require.Equal(t, state.Refused, outcome)
	require.Equal(t, lost, again)
}

// crashed gives a row some crashes, and says whether the event is another one.
func crashed(n int, another bool) func(*layout.Row, *state.Event) {
	return func(r *layout.Row, e *state.Event) { r.Attempts.Crashes, e.Crash = n, another }
}

// TestMemoryGrows has attempts that had too little memory, and others.
func TestMemoryGrows(t *testing.T) {
	t.Parallel()
	row := gridRow(layout.Ready)
	row.Spec.MaxRetries, row.Spec.Requirements.RAM = 9, 100
	row.Spec.Growth = &layout.Growth{Factor: 2.5, Max: 300}
	fail := func(kind layout.FailureKind) {
		claimed, outcome := state.Next(row, gridEvent(state.EventClaim, gridToken))
		require.Equal(t, state.Applied, outcome)
		event := gridEvent(state.EventFail, gridToken)
		event.Exception.Kind, event.RetryIn = kind, new(time.Duration)
		row, outcome = state.Next(claimed, event)
		require.Equal(t, state.Applied, outcome)
	}
	for _, c := range []struct {
		kind layout.FailureKind
		want int64
	}{
		{layout.KindError, 100}, {layout.KindMemory, 250}, {layout.KindTimeout, 250}, {layout.KindMemory, 300},
		{layout.KindMemory, 300},
	} {
		fail(c.kind)
		require.Equal(t, c.want, row.Needs().Requirements.RAM)
		require.EqualValues(t, 100, row.Spec.Requirements.RAM)
	}
	row.Spec.Growth = nil
	fail(layout.KindMemory)
	require.EqualValues(t, 300, row.Attempts.RAM)
	row.Exception.Final = true
	row, _ = state.Next(row, gridEvent(state.EventRetry, gridToken))
	require.EqualValues(t, 100, row.Needs().Requirements.RAM, "it starts over")

	tiny := layout.Spec{Requirements: layout.Requirements{RAM: 1}, Growth: &layout.Growth{Factor: 1.1, Max: 9}}
	require.EqualValues(t, 2, tiny.Grown(0), "it grows")
}

// TestDeathsAreRememberedAndForgotten has two workers die with a future, which
// was the cause of one death for all that is known, and come back.
func TestDeathsAreRememberedAndForgotten(t *testing.T) {
	t.Parallel()
	row := gridRow(layout.Ready)
	step := func(want layout.State, e state.Event) {
		e.Now = gridNow
		after, outcome := state.Next(row, e)
		require.Equal(t, state.Applied, outcome, "%v", e.Kind)
		require.Equal(t, want, after.State(), "%v", e.Kind)
		row = after
	}
	step(layout.Claimed, state.Event{Kind: state.EventClaim, Token: gridToken})
	step(layout.Delayed, state.Event{Kind: state.EventReap, Token: gridToken, Jitter: 0.5})
	require.Equal(t, layout.Millis(gridNow.Add(time.Second)), row.Attempts.Due)
	require.Equal(t, 1, row.Attempts.Suspicion())
	step(layout.Ready, state.Event{Kind: state.EventRetry})
	step(layout.Claimed, state.Event{Kind: state.EventClaim, Token: otherTok})
	step(layout.Delayed, state.Event{Kind: state.EventReap, Token: otherTok, Crash: true, Jitter: 0.5})
	require.Equal(t, layout.Millis(gridNow.Add(2*time.Second)), row.Attempts.Due)
	require.Equal(t, layout.Attempts{Crashes: 1, Due: row.Attempts.Due,
		Deaths: layout.Deaths{{Worker: gridToken.Worker}, {Worker: otherTok.Worker, Crash: true}}}, row.Attempts)
	step(layout.Delayed, state.Event{Kind: state.EventReappear, Token: otherTok})
	require.Equal(t, layout.Attempts{Due: row.Attempts.Due, Deaths: layout.Deaths{{Worker: gridToken.Worker}}},
		row.Attempts)
	_, outcome := state.Next(row, state.Event{Kind: state.EventReappear, Token: otherTok})
	require.Equal(t, state.Already, outcome)
	step(layout.Ready, state.Event{Kind: state.EventRetry})
	step(layout.Ready, state.Event{Kind: state.EventReappear, Token: gridToken})
	require.Zero(t, row.Attempts)
}

func TestStateConditionsOfAssignments(t *testing.T) {
	t.Parallel()
	assigned := gridRow(layout.Ready)
	assigned.Attempts.Assigned = gridToken.Worker
	for _, c := range []struct {
		event state.EventKind
		token layout.Token
		want  state.Outcome
		left  layout.WorkerID
	}{
		{state.EventAssign, gridToken, state.Already, gridToken.Worker},
		{state.EventAssign, otherTok, state.Refused, gridToken.Worker},
		{state.EventUnassign, otherTok, state.Refused, gridToken.Worker},
		{state.EventUnassign, gridToken, state.Applied, ""},
		{state.EventClaim, gridToken, state.Applied, gridToken.Worker},
	} {
		after, outcome := state.Next(assigned, gridEvent(c.event, c.token))
		require.Equal(t, c.want, outcome, "%v", c.event)
		require.Equal(t, c.left, after.Attempts.Assigned, "%v", c.event)
	}
	for _, e := range []state.EventKind{state.EventFail, state.EventReject, state.EventReap} {
		row := gridRow(layout.Claimed)
		row.Attempts.Assigned = gridToken.Worker
		after, _ := state.Next(row, gridEvent(e, gridToken))
		require.Empty(t, after.Attempts.Assigned, "%v", e)
	}
	_, outcome := state.Next(assigned, gridEvent(state.EventInfeasible, gridToken))
	require.Equal(t, state.Refused, outcome, "it is not in the pool")
	due := gridRow(layout.Delayed)
	due.Attempts.Due = layout.Millis(gridNow)
	after, outcome := state.Next(due, gridEvent(state.EventPromote, gridToken))
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Ready, after.State())
}

func TestStateConditionsOfInputs(t *testing.T) {
	t.Parallel()
	later := gridRow(layout.Blocked)
	later.Attempts.Due = layout.Millis(gridNow) + 1
	after, outcome := state.Next(later, gridEvent(state.EventUnblock, gridToken))
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Delayed, after.State())
	require.Nil(t, after.Blocked)

	due := gridRow(layout.Blocked)
	due.Attempts.Due = layout.Millis(gridNow)
	after, _ = state.Next(due, gridEvent(state.EventUnblock, gridToken))
	require.Equal(t, layout.Ready, after.State())
	require.Zero(t, after.Attempts.Due)

	for _, e := range []state.EventKind{state.EventUpstream, state.EventCancel} {
		after, _ = state.Next(later, gridEvent(e, gridToken))
		require.Equal(t, layout.Failed, after.State(), "%v", e)
		require.True(t, after.Exception.Final)
		require.Nil(t, after.Blocked)
		require.Zero(t, after.Attempts.Due)
	}
	failed := gridRow(layout.Failed)
	failed.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
	after, outcome = state.Next(failed, gridEvent(state.EventRetry, gridToken))
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Blocked, after.State())
	require.Zero(t, after.Blocked.Linked)
}

// TestStateConditionsOfWhatMustBeNear has futures that must be near an object: they
// are never in the pool for want of a worker, but look for one again.
func TestStateConditionsOfWhatMustBeNear(t *testing.T) {
	t.Parallel()
	bound := func(s layout.State) layout.Row {
		row := gridRow(s)
		row.Spec.Near, row.Spec.MustBeNear = layout.ID{1}, true
		row.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
		return row
	}
	event := gridEvent(state.EventUnblock, gridToken)
	event.Near, event.NearWait = gridToken.Worker, time.Second
	after, outcome := state.Next(bound(layout.Blocked), event)
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Attempts{Assigned: gridToken.Worker}, after.Attempts)
	free, _ := state.Next(gridRow(layout.Blocked), event)
	require.Equal(t, layout.Attempts{Near: gridToken.Worker, NearWait: time.Second}, free.Attempts)
	event.Near, event.Unplaceable = "", true
	unplaceable, _ := state.Next(bound(layout.Blocked), event)
	require.Equal(t, layout.Ready, unplaceable.State())
	require.Equal(t, "near="+layout.ID{1}.String(), unplaceable.Needs().Class().Labels)

	due, zero := bound(layout.Delayed), time.Duration(0)
	due.Attempts.Due = layout.Millis(gridNow)
	failed := gridEvent(state.EventFail, gridToken)
	failed.RetryIn = &zero
	for name, c := range map[string]struct {
		row   layout.Row
		event state.Event
	}{
		"unassigned":  {after, gridEvent(state.EventUnassign, gridToken)},
		"due":         {due, gridEvent(state.EventPromote, gridToken)},
		"by hand":     {due, gridEvent(state.EventRetry, gridToken)},
		"tried again": {bound(layout.Claimed), failed},
		"unplaceable": {unplaceable, gridEvent(state.EventReplace, gridToken)},
	} {
		looks, outcome := state.Next(c.row, c.event)
		require.Equal(t, state.Applied, outcome, name)
		require.Equal(t, layout.Blocked, looks.State(), name)
		require.Zero(t, looks.Blocked.Linked, name)
		require.Empty(t, looks.Attempts.Assigned, name)
		require.Zero(t, looks.Attempts.Due, name)
		require.False(t, looks.Attempts.Unplaceable, name)
	}
}

func TestStateConditionsOfObjects(t *testing.T) {
	t.Parallel()
	object := func() layout.Row {
		row := gridRow(layout.Realized)
		row.Result.Object = "hash"
		row.Spec.AsObject, row.Spec.AllowReconstruction = true, true
		row.Attempts = layout.Attempts{Failed: 1, Rejected: 2, Crashes: 1, Rebuilt: 3,
			Deaths: layout.Deaths{{Worker: "w", Crash: true}}}
		return row
	}
	lose := gridEvent(state.EventLose, gridToken)
	row := object()
	after, outcome := state.Next(row, lose)
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Ready, after.State())
	require.Equal(t, layout.Attempts{Crashes: 1, Deaths: row.Attempts.Deaths, Rebuilt: 4}, after.Attempts,
		"all attempts again, and what it did to workers stays")
	require.Nil(t, after.Result)

	_, outcome = state.Next(row, gridEvent(state.EventLose, otherTok))
	require.Equal(t, state.Refused, outcome, "another result")

	row.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
	after, _ = state.Next(row, lose)
	require.Equal(t, layout.Blocked, after.State())

	for says, change := range map[string]func(*layout.Row){
		"does not allow": func(r *layout.Row) { r.Spec.AllowReconstruction = false },
		"16 times":       func(r *layout.Row) { r.Attempts.Rebuilt = state.MaxRebuilds },
	} {
		row := object()
		change(&row)
		after, outcome = state.Next(row, lose)
		require.Equal(t, state.Applied, outcome)
		require.Equal(t, layout.Failed, after.State())
		require.Equal(t, layout.KindLost, after.Exception.Kind)
		require.True(t, after.Exception.Final)
		require.Contains(t, after.Exception.Message, says)
	}

	claimed := gridRow(layout.Claimed)
	claimed.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
	block := gridEvent(state.EventBlock, gridToken)
	after, outcome = state.Next(claimed, block)
	require.Equal(t, state.Applied, outcome)
	require.Equal(t, layout.Blocked, after.State())
	require.Zero(t, after.Attempts)
	claimed.Cancel = &layout.CancelRequest{}
	after, _ = state.Next(claimed, block)
	require.Equal(t, layout.Failed, after.State())
}

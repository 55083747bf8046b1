package fdbmodel

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated pages and golden files")

const stateMachinePage = "../docs/reference/state_machine.md"

const stateMachineHead = `# State machine

Printed from the table in the code by ` + "`make generate`" + `; a test compares. The first row that fits a state, an
event and its condition counts. A pair that is not here is refused.

`

func TestDocsStateMachine(t *testing.T) {
	t.Parallel()
	want := stateMachineHead + TransitionTable()
	if *update {
		require.NoError(t, os.WriteFile(stateMachinePage, []byte(want), 0o644))
	}
	got, err := os.ReadFile(stateMachinePage)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make generate")
}

var (
	gridToken = Token{Worker: "a", Sequence: 1}
	otherTok  = Token{Worker: "b", Sequence: 1}
	gridNow   = time.UnixMilli(1_000_000)
)

// gridRow is a future in a state, with one attempt left.
func gridRow(s State) Row {
	row := Row{Spec: &Spec{Function: "go:f", Queue: DefaultQueue, MaxRetries: 1}}
	switch s {
	case Delayed:
		row.Attempts.Due = millis(gridNow) + 1
	case Claimed:
		row.Claim = &Claim{Token: gridToken}
	case Realized:
		row.Claim = &Claim{Token: gridToken}
		row.Result = &Result{Token: gridToken}
	case Failed:
		row.Exception = &Exception{Kind: KindError, Final: true}
		row.Attempts.Failed = 2
	}
	return row
}

func gridEvent(k EventKind, token Token) Event {
	return Event{
		Kind: k, Token: token, Result: &Result{Token: token}, Exception: &Exception{Kind: KindError, Message: "m"},
		Cancel: &CancelRequest{Reason: "r"}, Now: gridNow, Jitter: 0.5,
	}
}

// TestStateGrid has every pair of state and event, by the holder and by another.
func TestStateGrid(t *testing.T) {
	t.Parallel()
	// One line for each state: what the holder's, then another's event comes to,
	// as STATE/OUTCOME.
	want := map[string]string{
		"ready claim": "claimed/applied claimed/applied", "delayed claim": "delayed/refused delayed/refused",
		"claimed claim": "claimed/already claimed/lost", "realized claim": "realized/refused realized/refused",
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

		"ready put back": "ready/lost ready/lost", "delayed put back": "delayed/lost delayed/lost",
		"claimed put back": "delayed/applied claimed/lost", "realized put back": "realized/lost realized/lost",
		"failed put back": "failed/lost failed/lost",

		"ready reap": "ready/lost ready/lost", "delayed reap": "delayed/lost delayed/lost",
		"claimed reap": "ready/applied claimed/lost", "realized reap": "realized/lost realized/lost",
		"failed reap": "failed/lost failed/lost",

		"ready cancel": "failed/applied failed/applied", "delayed cancel": "failed/applied failed/applied",
		"claimed cancel": "claimed/requested claimed/requested", "realized cancel": "realized/already realized/already",
		"failed cancel": "failed/already failed/already",

		"ready promote": "ready/already ready/already", "delayed promote": "delayed/refused delayed/refused",
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
	}
	for _, s := range States() {
		for _, e := range Events() {
			var got []string
			for _, token := range []Token{gridToken, otherTok} {
				row := gridRow(s)
				before := fmt.Sprintf("%+v", row)
				after, outcome := Next(row, gridEvent(e, token))
				require.Equal(t, before, fmt.Sprintf("%+v", row), "Next is pure")
				got = append(got, after.State().String()+"/"+outcome.String())
			}
			require.Equal(t, want[s.String()+" "+e.String()], strings.Join(got, " "), "%v %v", s, e)
		}
	}
}

func TestStateConditions(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	asked := func(r *Row, _ *Event) { r.Cancel = &CancelRequest{} }
	tooLarge := func(_ *Row, e *Event) { e.Exception.Kind = KindTooLarge }
	for name, c := range map[string]struct {
		change  func(*Row, *Event)
		event   EventKind
		want    State
		kind    FailureKind
		failed  int
		crashes int
	}{
		"fail with a cancel":         {asked, EventFail, Failed, KindCancelled, 0, 0},
		"relinquish with a cancel":   {asked, EventRelinquish, Failed, KindCancelled, 0, 0},
		"put back with a cancel":     {asked, EventPutBack, Failed, KindCancelled, 0, 0},
		"reap with a cancel":         {asked, EventReap, Failed, KindCancelled, 0, 0},
		"a result beats a cancel":    {asked, EventRealize, Realized, "", 0, 0},
		"permanent failure":          {func(_ *Row, e *Event) { e.Permanent = true }, EventFail, Failed, KindError, 1, 0},
		"kind that is not retryable": {tooLarge, EventFail, Failed, KindTooLarge, 1, 0},
		"last attempt":               {func(r *Row, _ *Event) { r.Attempts.Failed = 1 }, EventFail, Failed, KindError, 2, 0},
		"no retries":                 {func(r *Row, _ *Event) { r.Spec.MaxRetries = 0 }, EventFail, Failed, KindError, 1, 0},
		"retry without a wait":       {func(_ *Row, e *Event) { e.RetryIn = &zero }, EventFail, Ready, KindError, 1, 0},
		"second crash":               {func(r *Row, _ *Event) { r.Attempts.Crashes = 1 }, EventReap, Ready, "", 0, 2},
		"third crash":                {func(r *Row, _ *Event) { r.Attempts.Crashes = 2 }, EventReap, Failed, KindLost, 0, 3},
	} {
		row, event := gridRow(Claimed), gridEvent(c.event, gridToken)
		c.change(&row, &event)
		after, outcome := Next(row, event)
		require.Equal(t, Applied, outcome, name)
		require.Equal(t, c.want, after.State(), name)
		require.Equal(t, c.failed, after.Attempts.Failed, name)
		require.Equal(t, c.crashes, after.Attempts.Crashes, name)
		if c.kind != "" {
			require.Equal(t, c.kind, after.Exception.Kind, name)
			require.Equal(t, c.want == Failed, after.Exception.Final, name)
		}
		if c.want == Failed {
			require.Nil(t, after.Claim, name)
			require.Nil(t, after.Cancel, name)
		}
	}
	assigned := gridRow(Ready)
	assigned.Attempts.Assigned = gridToken.Worker
	for _, c := range []struct {
		event EventKind
		token Token
		want  Outcome
		left  WorkerID
	}{
		{EventAssign, gridToken, Already, gridToken.Worker}, {EventAssign, otherTok, Refused, gridToken.Worker},
		{EventUnassign, otherTok, Refused, gridToken.Worker}, {EventUnassign, gridToken, Applied, ""},
		{EventClaim, gridToken, Applied, gridToken.Worker},
	} {
		after, outcome := Next(assigned, gridEvent(c.event, c.token))
		require.Equal(t, c.want, outcome, "%v", c.event)
		require.Equal(t, c.left, after.Attempts.Assigned, "%v", c.event)
	}
	for _, e := range []EventKind{EventFail, EventPutBack, EventReap} {
		row := gridRow(Claimed)
		row.Attempts.Assigned = gridToken.Worker
		after, _ := Next(row, gridEvent(e, gridToken))
		require.Empty(t, after.Attempts.Assigned, "%v", e)
	}
	due := gridRow(Delayed)
	due.Attempts.Due = millis(gridNow)
	after, outcome := Next(due, gridEvent(EventPromote, gridToken))
	require.Equal(t, Applied, outcome)
	require.Equal(t, Ready, after.State())
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		for _, jitter := range []float64{0, 0.5, 0.999} {
			wait := Backoff{}.wait(n, jitter)
			require.GreaterOrEqual(t, wait, defaultBackoffBase/2)
			require.LessOrEqual(t, wait, defaultBackoffMax*3/2)
		}
	}
	require.Equal(t, 4*time.Second, Backoff{Base: time.Second}.wait(3, 0.5))
}

package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// promiseRow is a promise in a state that it may have.
func promiseRow(s layout.State) layout.Row {
	row := gridRow(s)
	row.Spec.Function, row.Spec.Inputs, row.Spec.MaxRetries, row.Attempts.Failed = layout.FunctionPromise, nil, 0, 0
	switch s {
	case layout.Blocked:
		row.Blocked = &layout.BlockedRecord{}
	case layout.Realized:
		row.Result.Value, row.Result.Size = []byte("v"), 1
	case layout.Failed:
		row.Exception.Message, row.Exception.Permanent = "m", true
	}
	return row
}

// wantedOf returns a line of the grid. Futures that are no promises refuse what completes those.
func wantedOf(lines map[string]string, s layout.State, e state.EventKind) string {
	if e == state.EventFulfill || e == state.EventDecline {
		return fmt.Sprintf("%v/refused %v/refused", s, s)
	}
	return lines[s.String()+" "+e.String()]
}

// TestStateGridOfPromises covers every pair of state and event of a promise: only its completion,
// a cancel and its time end it, and nothing has it run.
func TestStateGridOfPromises(t *testing.T) {
	t.Parallel()
	for _, s := range []layout.State{layout.Blocked, layout.Realized, layout.Failed} {
		for _, e := range state.Events() {
			row, event := promiseRow(s), gridEvent(e, gridToken)
			event.Result.Value, event.Result.Size = []byte("v"), 1
			after, outcome := state.Next(row, event)
			want, to := state.Refused, s
			switch {
			case s == layout.Blocked && e == state.EventFulfill:
				want, to = state.Applied, layout.Realized
			case s == layout.Blocked && (e == state.EventDecline || e == state.EventCancel):
				want, to = state.Applied, layout.Failed
			case s == layout.Failed && e == state.EventRetry:
				want, to = state.Applied, layout.Blocked
			case s == layout.Realized && (e == state.EventFulfill || e == state.EventRealize),
				s == layout.Failed && e == state.EventDecline:
				want = state.Already
			case outcome == state.Lost || outcome == state.Already: // as of any future
				want = outcome
			}
			require.Equal(t, want, outcome, "%v %v", s, e)
			require.Equal(t, to, after.State(), "%v %v", s, e)
			require.True(t, after.Blocked != nil == (to == layout.Blocked), "%v %v", s, e)
		}
	}
}

func TestStateOfACompletedPromise(t *testing.T) {
	t.Parallel()
	ref := func(name string) *layout.ChunkRef { return &layout.ChunkRef{Token: name} }
	for name, c := range map[string]struct {
		has, gets layout.Result
		same      bool
	}{
		"the same":      {layout.Result{Size: 1, Value: []byte("v")}, layout.Result{Size: 1, Value: []byte("v")}, true},
		"another value": {layout.Result{Size: 1, Value: []byte("v")}, layout.Result{Size: 1, Value: []byte("w")}, false},
		"another codec": {layout.Result{Codec: "json"}, layout.Result{Codec: "raw"}, false},
		"another length": {layout.Result{Size: 9, ValueRef: ref("h.1")},
			layout.Result{Size: 8, ValueRef: ref("h.1")}, false},
		"stored elsewhere": {layout.Result{Size: 9, ValueRef: ref("h.1")},
			layout.Result{Size: 9, ValueRef: ref("h.2")}, true},
		"other large value": {layout.Result{Size: 9, ValueRef: ref("h.1")},
			layout.Result{Size: 9, ValueRef: ref("g.1")}, false},
	} {
		row, event := promiseRow(layout.Realized), gridEvent(state.EventFulfill, otherTok)
		c.has.Token = gridToken
		row.Result, event.Result = &c.has, &c.gets
		_, outcome := state.Next(row, event)
		require.Equal(t, map[bool]state.Outcome{true: state.Already, false: state.Refused}[c.same], outcome, name)
	}
	row, event := promiseRow(layout.Failed), gridEvent(state.EventDecline, gridToken)
	event.Exception.Message = "another"
	_, outcome := state.Next(row, event)
	require.Equal(t, state.Refused, outcome)
	row.Exception.Kind, event.Exception.Message = layout.KindCancelled, "m"
	_, outcome = state.Next(row, event)
	require.Equal(t, state.Refused, outcome, "what was cancelled was not rejected")
}

// TestStateOfAnExpiredPromise completes promises whose time is over, and which no janitor has
// looked at since.
func TestStateOfAnExpiredPromise(t *testing.T) {
	t.Parallel()
	for _, e := range []state.EventKind{state.EventFulfill, state.EventDecline} {
		row, event := promiseRow(layout.Blocked), gridEvent(e, gridToken)
		row.Spec.ExpiresAt = layout.Millis(event.Now)
		after, outcome := state.Next(row, event)
		require.Equal(t, state.Applied, outcome)
		require.Equal(t, layout.Failed, after.State())
		require.Equal(t, layout.KindExpired, after.Exception.Kind)
		require.Nil(t, after.Result)
		again, outcome := state.Next(after, gridEvent(state.EventRetry, gridToken))
		require.Equal(t, state.Applied, outcome)
		done, outcome := state.Next(again, event)
		require.Equal(t, state.Applied, outcome)
		require.NotEqual(t, layout.KindExpired, done.Ending().Failure, "it was asked for again after its time")
		require.True(t, done.State() == layout.Realized || done.Exception.Kind == layout.KindError)
	}
}

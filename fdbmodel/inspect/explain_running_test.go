package inspect_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/steps"
)

func explainOf(s *modeltest.Stage, id layout.ID) inspect.Explanation {
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(s.T, err)
	return e
}

// TestExplainOfACircle has two functions await each other.
func TestExplainOfACircle(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	a, b := s.Submit(), s.Submit()
	s.Claim(s.Worker)
	_, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Awaits: []layout.Await{
		{ID: a, For: b, Count: 1, Since: 1}, {ID: b, For: a, Count: 1, Since: 2},
	}})
	require.NoError(t, err)
	for _, id := range []layout.ID{a, b} {
		e := explainOf(s, id)
		require.Equal(t, inspect.ReasonCircle, e.Reason)
		require.Contains(t, e.Text, a.String()+" (f) awaits "+b.String())
		require.Contains(t, e.Text, b.String()+" (f) awaits "+a.String())
	}
}

// TestExplainOfAFunctionThatAwaits goes by the heartbeat of its worker.
func TestExplainOfAFunctionThatAwaits(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id, other := s.Submit(), s.Submit()
	s.Claim(s.Worker)
	made, err := promises.Of(s.C).Make(s.Ctx, fdbmodel.Submission{ID: layout.ID{15: 7}})
	require.NoError(t, err)
	since := layout.Millis(s.C.Now())
	for _, of := range []struct {
		waits layout.Await
		says  string
	}{
		{layout.Await{ID: id, For: made.ID, Count: 1}, made.ID.String() + " (promise, blocked now), since "},
		{layout.Await{ID: id, For: made.ID, Count: 2}, made.ID.String() + " (promise, blocked now) and another one, since "},
		{layout.Await{ID: id, For: made.ID, Count: 12}, " and 11 others, since "},
		{layout.Await{ID: id, Count: 3000}, "was waiting for 3000 futures, since "},
		{layout.Await{ID: id, For: layout.ID{15: 8}, Count: 1}, " (not of this cluster, or removed), since "},
	} {
		of.waits.Since = since
		awaits := []layout.Await{{ID: layout.ID{15: 9}, Count: 1}, of.waits}
		_, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Awaits: awaits})
		require.NoError(t, err)
		e := explainOf(s, id)
		require.Equal(t, inspect.ReasonAwaiting, e.Reason)
		require.Contains(t, e.Text, of.says)
		require.Equal(t, inspect.ReasonClaimed, explainOf(s, other).Reason, "its function awaits nothing")
	}
}

// TestExplainCountsSteps names the last one by its number, and those that are unused.
func TestExplainCountsSteps(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	require.NotContains(t, explainOf(s, id).Text, "recorded")
	write := func(number int, name string, wake int64) {
		_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &f, Name: name, First: number == 1,
			Record: steps.Record{Token: f.Token, Number: number, Attempt: f.Attempt(), At: 1000, Wake: wake}}})
		require.NoError(t, err)
	}
	write(1, "ship", 0)
	require.Contains(t, explainOf(s, id).Text, " It has recorded 1 step (ship, in attempt 1) at 1970-01-01T00:00:01Z.")
	write(2, "charge", 0)
	require.Contains(t, explainOf(s, id).Text, " It has recorded 2 steps, the last one (charge, in attempt 1) at ")
	write(3, "sleep", 2000)
	require.Contains(t, explainOf(s, id).Text, "(sleep, in attempt 1) at 1970-01-01T00:00:01Z, a sleep until "+
		"1970-01-01T00:00:02Z.")
	for i := range 2 {
		write(4+i, fmt.Sprint("old", i), 0)
	}
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{},
		Beside: &fdbmodel.Beside{Write: []kv.KeyValue{steps.Of(s.C).Unused(&f, []string{"old0", "old1"}, false)}}})
	require.Contains(t, explainOf(s, id).Text, "; its last attempt did not ask for old0, old1.")
}

// TestExplainNamesFewUnusedSteps has an attempt end that asked for none, and one that asked for few.
func TestExplainNamesFewUnusedSteps(t *testing.T) {
	t.Parallel()
	for says, unused := range map[string][]string{
		"; its last attempt asked for none of them.":                        nil,
		"; its last attempt did not ask for 4 of them: a, b, c and others.": {"a", "b", "c", "d"},
	} {
		s := modeltest.NewStage(t)
		id := s.Submit()
		f := s.Claim(s.Worker)[0]
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &f, Name: name, First: i == 0,
				Record: steps.Record{Token: f.Token, Number: i + 1, Attempt: 1, At: 1000}}})
			require.NoError(t, err)
		}
		s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{},
			Beside: &fdbmodel.Beside{Write: []kv.KeyValue{steps.Of(s.C).Unused(&f, unused, unused == nil)}}})
		require.Contains(t, explainOf(s, id).Text, says)
	}
}

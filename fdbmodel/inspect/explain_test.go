package inspect_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

func TestExplainTellsOfSilence(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	s.Claim(s.Worker)
	why := func() string {
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Equal(t, inspect.ReasonClaimed, e.Reason)
		return e.Text
	}
	s.Clock.Advance(s.C.Config().DeadAfter)
	require.NotContains(t, why(), "sign of life")
	s.Clock.Advance(45*time.Second - s.C.Config().DeadAfter)
	require.Contains(t, why(), "Its last heartbeat is 45s old")
}

// TestExplainOfWorkersThatStop: a worker that drains is none that a future waits for.
func TestExplainOfWorkersThatStop(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	held := s.Submit()
	s.Claim(s.Worker)
	ready := s.Submit()
	explain := func(id layout.ID) inspect.Explanation {
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		return e
	}
	require.NotEqual(t, inspect.ReasonDraining, explain(ready).Reason)
	_, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Free: layout.Resources{Slots: 9}, Draining: true})
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonDraining, explain(ready).Reason)
	require.Contains(t, explain(ready).Text, "The workers that can run it are stopping.")
	require.Contains(t, explain(held).Text, "The worker is stopping")
}

// TestEachPlaceIsShown explains and inspects the futures of all states and places.
func TestEachPlaceIsShown(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	ids := append(slices.Collect(maps.Values(p.IDs)), p.Held[:]...)
	for _, id := range ids {
		row := p.Get(t, id)
		e, err := inspect.Explain(t.Context(), p.C, id)
		require.NoError(t, err)
		require.Equal(t, row.State(), e.State)
		require.NotEmpty(t, e.Reason)
		require.True(t, strings.HasSuffix(e.Text, "."), e.Text)
		_, found, err := inspect.Future(t.Context(), p.C, id)
		require.NoError(t, err)
		if place := layout.PlaceOf(&row); place != nil {
			require.Equal(t, 1, kindsIn(found)[place.Kind], place.Kind)
		}
	}
}

func TestExplainOfLongWaits(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for due, says := range map[time.Time]string{
		s.C.Now().Add(90 * time.Second):               "(1m30s from now).",
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "until 9999-12-31T00:00:00Z.",
	} {
		id := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = due })
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Contains(t, e.Text, says)
	}
}

// TestExplainOfWhatNoHolderCanRun says of a future that must be near an object what the
// workers lack that have it, and what it waits for.
func TestExplainOfWhatNoHolderCanRun(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	big := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.AsObject, sub.Spec.AllowReconstruction = true, true
	})
	claimed := s.Claim(s.Worker)[0]
	s.Finish(s.Worker, fdbmodel.Completion{Future: &claimed, Result: &layout.Result{Object: "hash", Size: 9}})
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.Near, sub.Spec.MustBeNear, sub.Spec.Requirements.Labels = big, true, map[string]string{"disk": "ssd"}
	})
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonNoLabel, e.Reason)
	for _, says := range []string{"of the workers that have that (" + string(s.Worker.ID()) + ") none can run it",
		"has the labels disk=ssd", "futura clone " + big.String() + " --to WORKER"} {
		require.Contains(t, e.Text, says)
	}
	state, err := results.Of(s.C).ReportLost(s.Ctx, big, claimed.Token, []layout.WorkerID{s.Worker.ID()})
	require.NoError(t, err)
	require.Equal(t, layout.Ready, state)
	e, err = inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Contains(t, e.Text, "which no worker has any more")
}

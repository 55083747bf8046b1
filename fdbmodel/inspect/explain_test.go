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

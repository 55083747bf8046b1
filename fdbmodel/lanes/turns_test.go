package lanes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestATotalWidthIsRaisedByMuch has more lanes wait for their turn than one transaction can look at.
func TestATotalWidthIsRaisedByMuch(t *testing.T) {
	t.Parallel()
	const n = 12_000
	s := newLaneStage(t, layout.LaneKind{Total: 1})
	for from := 0; from < n; from += layout.MaxSubmit {
		subs := make([]fdbmodel.Submission, layout.MaxSubmit)
		for i := range subs {
			subs[i].Spec = layout.Spec{Function: "go:f", Lane: s.lane(fmt.Sprint(from + i))}
		}
		_, err := s.C.Submit(s.Ctx, subs)
		require.NoError(t, err)
	}
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Total: n}))
	require.NoError(t, s.L.Sweep(s.Ctx))
	for lanes := 1; lanes > 0; {
		lanes, _ = s.admit()
	}
	key, total := s.C.Keys().LaneTotal("k"), layout.LaneTotal{}
	require.NoError(t, layout.Decode(key, s.Read(key), &total))
	require.Equal(t, n, total.Open)
}

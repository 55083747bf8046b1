package layout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestWhatAFutureCameTo(t *testing.T) {
	t.Parallel()
	claim := &layout.Claim{Token: layout.Token{Worker: "w", Sequence: 1}}
	result := &layout.Result{Token: claim.Token, Value: []byte("value"), Stderr: []byte("err"), At: 2}
	large := &layout.Result{Token: claim.Token, ValueRef: &layout.ChunkRef{Size: 9000}, At: 2}
	retried := &layout.Exception{Kind: layout.KindError, Message: "no", Stdout: []byte("out"), Worker: "v", At: 1}
	final := &layout.Exception{Kind: layout.KindExit, StderrRef: &layout.ChunkRef{Size: 5000}, Final: true, At: 1}
	cancelled := &layout.Exception{Kind: layout.KindCancelled, Message: "enough", Final: true, At: 1}
	realized := layout.Row{Claim: claim, Result: result, Exception: retried}
	for name, c := range map[string]struct {
		row                    layout.Row
		result                 *layout.Result
		failure                *layout.Exception
		over, cancelled, whole bool
		worker                 layout.WorkerID
		at, size               int64
	}{
		"new":       {row: layout.Row{}},
		"retried":   {layout.Row{Exception: retried}, nil, retried, false, false, true, "v", 1, 5},
		"running":   {layout.Row{Claim: claim, Exception: retried}, nil, retried, false, false, true, "v", 1, 5},
		"realized":  {realized, result, nil, true, false, true, "w", 2, 8},
		"large":     {layout.Row{Claim: claim, Result: large}, large, nil, true, false, false, "w", 2, 9000},
		"outdated":  {row: layout.Row{Claim: &layout.Claim{}, Result: result}},
		"failed":    {layout.Row{Exception: final}, nil, final, true, false, false, "", 1, 5000},
		"cancelled": {layout.Row{Exception: cancelled}, nil, cancelled, true, true, true, "", 1, 6},
	} {
		e := c.row.Ending()
		require.Equal(t, layout.Ending{State: c.row.State(), Result: c.result, Failure: c.failure}, e, name)
		require.Equal(t, []bool{c.over, c.cancelled, c.whole}, []bool{e.Over(), e.Cancelled(), e.Whole()}, name)
		require.Equal(t, c.worker, e.Worker(), name)
		require.Equal(t, []int64{c.at, c.size}, []int64{e.At(), e.Size()}, name)
	}
	told := layout.Notice{State: layout.Realized, Result: result}
	require.Equal(t, layout.Ending{State: layout.Realized, Result: result}, told.Ending())
	bare := (&layout.Notice{State: layout.Failed}).Ending()
	require.True(t, bare.Over())
	require.False(t, bare.Whole(), "the record has it")
	require.False(t, bare.Cancelled())
}

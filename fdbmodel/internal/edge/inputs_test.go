package edge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestSomeInputsAreNeverNone has the list of a future's inputs be cut in the middle of one: no input would be left
// again and again.
func TestSomeInputsAreNeverNone(t *testing.T) {
	t.Parallel()
	row := &layout.Row{Spec: &layout.Spec{Inputs: make(layout.IDList, 24)}}
	ids, err := Some(t.Context(), nil, layout.NewKeyspace("c"), row, 0, 9)
	require.NoError(t, err)
	require.Len(t, ids, 1)
	_, err = Some(t.Context(), nil, layout.NewKeyspace("c"), row, 1, 9)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	require.ErrorContains(t, err, "input 2 of")
}

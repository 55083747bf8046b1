package transfer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/transfer"
)

// TestLinesKeepTheirOrderInAYoungerStore moves a line to a store whose versions are
// lower than those with which the futures got in line: who gets in line there is behind
// them.
func TestLinesKeepTheirOrderInAYoungerStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	old := modeltest.OpenMemory(t)
	lane := layout.Lane{Kind: "k", Key: "a"}
	submit := func(c *fdbmodel.Cluster) layout.ID {
		got, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Lane: lane}}})
		require.NoError(t, err)
		return got[0].ID
	}
	c, err := fdbmodel.Open(ctx, old, "lines", fdbmodel.Options{})
	require.NoError(t, err)
	require.NoError(t, lanes.Of(c).SetKind(ctx, lane.Kind, layout.LaneKind{}))
	for range 50 {
		require.NoError(t, lanes.Of(c).SetKind(ctx, "other", layout.LaneKind{})) // the store grows older
	}
	submit(c)
	want := []layout.ID{submit(c), submit(c)}
	for range 3 {
		young := modeltest.OpenMemory(t)
		_, err = transfer.Migrate(ctx, old, young, "lines", transfer.Options{})
		require.NoError(t, err)
		moved, err := fdbmodel.Open(ctx, young, "lines", fdbmodel.Options{})
		require.NoError(t, err)
		want = append(want, submit(moved))
		view, err := lanes.Of(moved).View(ctx, lane, 100)
		require.NoError(t, err)
		require.Equal(t, want, view.Line)
		old = young
	}
}

package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

// TestDeclaredDeadWhileAFunctionSteps has a function step its worker until that has
// become a member again: the function ends, and the new membership goes on.
func TestDeclaredDeadWhileAFunctionSteps(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	s := seam.Worker{Manual: true}
	w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: &s})
	require.NoError(t, err)
	step := func() {
		_, err := s.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
	}
	var cause error
	var again layout.WorkerID
	require.NoError(t, w.Register("parent", func(ctx context.Context, _ []byte) ([]byte, error) {
		if again != "" {
			return nil, nil
		}
		ended := layout.NoteAwait(ctx)
		first := w.ID()
		b.declareDead(first)
		for again = first; again == first || again == ""; again = w.ID() {
			b.clock.Advance(b.cluster.Config().Heartbeat)
			step()
		}
		ended()
		cause = context.Cause(ctx)
		return nil, nil
	}))
	id := b.one("go:parent")
	for again == "" {
		step()
	}
	require.ErrorIs(t, cause, fdbmodel.ErrReaped)
	require.Equal(t, again, w.ID())
	for !stateOf(b, id).Terminal() {
		b.clock.Advance(b.cluster.Config().Heartbeat)
		step()
	}
	require.Equal(t, again, b.row(id).Result.Worker)
	require.Equal(t, 1, w.Stats().Free.Slots)
	require.NoError(t, s.Leave(b.ctx))
}

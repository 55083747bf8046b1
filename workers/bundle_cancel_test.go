package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestCancelsThatComeBeforeTheirGather has members cancelled between the commit that
// takes them and its answer: they are unwanted before the call.
func TestCancelsThatComeBeforeTheirGather(t *testing.T) {
	t.Parallel()
	s := newSlots(clock.Real{}, layout.Resources{Slots: 1}, 0, 0)
	bundle := &job{future: fdbmodel.ClaimedFuture{ID: layout.ID{1}}}
	bundle.ctx, bundle.cancel = context.WithCancelCause(t.Context())
	s.running[bundle] = struct{}{}
	taken := []fdbmodel.ClaimedFuture{{ID: layout.ID{2}}, {ID: layout.ID{3}}, {ID: layout.ID{4},
		Cancel: &layout.CancelRequest{}}}
	g := s.beginGather()
	require.Nil(t, s.cancel(layout.ID{3}))
	members := s.endGather(g, bundle, nil, taken)
	require.Nil(t, s.cancel(layout.ID{9}), "nobody waits for that one")
	require.Empty(t, s.gathers)
	require.Empty(t, s.early)

	wanted, unwanted := s.beginCall(bundle, members)
	require.Equal(t, members[:1], wanted)
	require.Equal(t, members[1:], unwanted)
	require.NoError(t, bundle.ctx.Err())
	s.cancel(layout.ID{2})
	require.ErrorIs(t, context.Cause(bundle.ctx), ErrCancelled)
	require.True(t, bundle.unwanted.Load())
	bundle.cancel(nil)
	for _, m := range members {
		require.ErrorIs(t, context.Cause(m.ctx), ErrCancelled)
	}
}

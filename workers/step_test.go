package workers

import (
	"context"
	"testing"
	"time"

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

// TestObjectsOfAManualWorker has a worker that is stepped keep a result as an object,
// read it, copy it to another one and lose it, and sweep what was discarded.
func TestObjectsOfAManualWorker(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	start := func(memory int64) (*Worker, *seam.Worker) {
		s := &seam.Worker{Manual: true}
		w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: s, Objects: ObjectOptions{Memory: memory, Above: -1}})
		require.NoError(t, err)
		require.NoError(t, w.Register("make", func(context.Context, []byte) ([]byte, error) { return []byte("made"), nil }))
		return w, s
	}
	step := func(s *seam.Worker) {
		b.clock.Advance(b.cluster.Config().Heartbeat)
		_, err := s.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
	}
	_, first := start(1 << 20)
	_, none := start(0)
	spec := layout.Spec{Function: "go:make", AsObject: true}
	answers, err := b.cluster.Submit(b.ctx, []fdbmodel.Submission{{Spec: spec}})
	require.NoError(t, err)
	id := answers[0].ID
	for !stateOf(b, id).Terminal() {
		step(first)
	}
	result := b.row(id).Result
	require.NotEmpty(t, result.Object)
	value, found := first.ReadObject(result.Object, result.Size)
	require.True(t, found)
	require.Equal(t, "made", string(value))
	step(none)
	token := result.Token
	require.Error(t, none.AddCopy(b.ctx, id, string(token.Worker), token.Sequence, value), "it has no object store")
	_, second := start(1 << 20)
	step(second)
	require.NoError(t, second.AddCopy(b.ctx, id, string(token.Worker), token.Sequence, value))
	copies, err := b.cluster.Copies(b.ctx, id)
	require.NoError(t, err)
	require.Len(t, copies, 2)
	require.True(t, second.DropObject(result.Object))
	require.False(t, second.DropObject(result.Object))
	_, found = second.ReadObject(result.Object, result.Size)
	require.False(t, found)

	require.NoError(t, b.cluster.Discard(b.ctx, id))
	_, found = first.ReadObject(result.Object, result.Size)
	require.True(t, found)
	for n := time.Duration(0); n <= sweepObjectsEvery; n += b.cluster.Config().Heartbeat {
		step(first)
	}
	_, found = first.ReadObject(result.Object, result.Size)
	require.False(t, found)
	for _, s := range []*seam.Worker{first, second, none} {
		require.NoError(t, s.Leave(b.ctx))
	}
}

package workers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/taskcontext"
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
		ended := taskcontext.NoteAwait(ctx, nil, nil)
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

// seamReader reads the objects of manual workers.
type seamReader map[layout.WorkerID]*seam.Worker

// OpenObject implements results.ObjectReader.
func (r seamReader) OpenObject(_ context.Context, object string, size int64, from *results.Copy,
) (results.OpenObject, error) {
	value, found := r[from.Worker].ReadObject(object, size)
	if !found {
		return nil, fdbmodel.ErrNotFound
	}
	return seamObject(value), nil
}

type seamObject []byte

// ReadAt implements results.OpenObject.
func (o seamObject) ReadAt(_ context.Context, p []byte, offset int64) error {
	copy(p, o[offset:])
	return nil
}

// Close implements results.OpenObject.
func (seamObject) Close() {}

// TestObjectsOfAManualWorker has a worker that is stepped keep a result as an object,
// read it, copy it to another one and lose it, sweep what was discarded, and hand over
// what was put with it when it leaves.
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
	reader := seamReader{}
	results.Of(b.cluster).OfferReader(reader)
	step := func(s *seam.Worker) {
		b.clock.Advance(b.cluster.Config().Heartbeat)
		_, err := s.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
	}
	w, first := start(1 << 20)
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
	require.Error(t, none.Take(b.ctx, id, false), "it has no object store")
	other, second := start(1 << 20)
	step(second)
	reader[w.ID()], reader[other.ID()] = first, second
	require.NoError(t, second.Take(b.ctx, id, false))
	copies, err := results.Of(b.cluster).Copies(b.ctx, id)
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

	put := b.putWith(first, "put")
	first.RoomOf = func(worker string) int64 {
		free, _ := reader[layout.WorkerID(worker)].Room()
		return free
	}
	first.Give = func(ctx context.Context, worker string, id [16]byte, alone bool) error {
		_, _, err := first.Keep(ctx, id, []byte("late"))
		require.Error(t, err, "it stops")
		require.True(t, alone)
		return reader[layout.WorkerID(worker)].Take(ctx, id, alone)
	}
	for _, s := range []*seam.Worker{none, first} {
		require.NoError(t, s.Leave(b.ctx))
	}
	copies, err = results.Of(b.cluster).Copies(b.ctx, put)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.Equal(t, other.ID(), copies[0].Worker)
	value, err = results.Of(b.cluster).Value(b.ctx, put, b.row(put).Result)
	require.NoError(t, err)
	require.Equal(t, "put", string(value))
	require.NoError(t, second.Leave(b.ctx), "nobody takes it")
}

// putWith puts a value with a manual worker.
func (b *bed) putWith(s *seam.Worker, value string) layout.ID {
	b.t.Helper()
	ids, err := b.cluster.DrawIDs(1)
	require.NoError(b.t, err)
	object, holder, err := s.Keep(b.ctx, ids[0], []byte(value))
	require.NoError(b.t, err)
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{
		ID: ids[0], Object: object, Size: int64(len(value)), Holder: layout.WorkerID(holder),
	})
	require.NoError(b.t, err)
	return ids[0]
}

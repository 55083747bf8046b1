package workers

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
)

// TestTwoWorkersThatLostAnObject has each of two workers be one that should have an
// object, and not have it. What must be near it goes from one to the other, until it
// is made again; then it runs where that is.
func TestTwoWorkersThatLostAnObject(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var made atomic.Int64
	functions := map[string]Function{"make": func(_ context.Context, _ []byte) ([]byte, error) {
		made.Add(1)
		return make([]byte, 10_000), nil
	}, "echo": echo}
	options := Options{Slots: 1, Objects: ObjectOptions{Memory: 1 << 20}}
	first := b.start(options, functions)
	id := b.one("go:make", func(s *fdbmodel.Submission) { s.Spec.AsObject, s.Spec.AllowReconstruction = true, true })
	b.awaitOver(id)
	second := b.start(options, functions)
	row := b.row(id)
	require.Equal(t, first.ID(), row.Result.Worker)
	hash, err := objects.ParseHash(row.Result.Object)
	require.NoError(t, err)
	there, err := first.membership.kept.store.Delete(hash)
	require.NoError(t, err)
	require.True(t, there)
	require.NoError(t, results.Of(b.cluster).AddCopy(b.ctx, second.membership.reg.ID(), id, row.Result.Token, false))

	use := b.one("go:echo", func(s *fdbmodel.Submission) { s.Spec.Near, s.Spec.MustBeNear = id, true })
	b.awaitOver(use)
	require.Equal(t, int64(2), made.Load())
	again, used := b.row(id), b.row(use)
	require.Equal(t, layout.Realized, used.State())
	require.Equal(t, again.Result.Worker, used.Result.Worker)
	require.Equal(t, 1, again.Attempts.Rebuilt)
	require.Zero(t, used.Attempts.Failed)
}

// TestWorkersWithoutAClientReadObjects that others have: a function gets one as its input, and the worker that has it
// hands it over when it stops.
func TestWorkersWithoutAClientReadObjects(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	first := b.start(Options{Slots: 1, Objects: ObjectOptions{Memory: 1 << 20}}, map[string]Function{
		"make": func(context.Context, []byte) ([]byte, error) { return make([]byte, 10_000), nil },
	})
	id := b.one("go:make", func(s *fdbmodel.Submission) { s.Spec.AsObject = true })
	b.awaitOver(id)
	require.NotEmpty(t, b.row(id).Result.Object)
	second := b.start(Options{Slots: 1, Objects: ObjectOptions{Memory: 1 << 20}}, map[string]Function{"echo": echo})
	use := func() layout.ID {
		return b.one("go:echo", func(s *fdbmodel.Submission) {
			s.Inputs, s.Spec.Codec = []layout.ID{id}, layout.CodecInputs
		})
	}
	used := use()
	b.awaitOver(used)
	require.EqualValues(t, 10_000, b.row(used).Result.Size)
	require.Zero(t, second.Stats().Rejected)
	first.end()
	used = use()
	b.awaitOver(used)
	require.EqualValues(t, 10_000, b.row(used).Result.Size)
}

package results_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestPutsBeforeTheirFuture has values written ahead whose future is not there yet, or
// never comes: a sweep leaves them for an hour.
func TestPutsBeforeTheirFuture(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	value := bytes.Repeat([]byte("v"), 2*layout.ChunkSize)
	sweep := func() (removed int) {
		for shard := range s.C.Config().Shards {
			for cursor := []byte(nil); ; {
				next, n, err := maintenance.Of(s.C).SweepChunks(s.Ctx, shard, cursor)
				require.NoError(t, err)
				if removed += n; next == nil {
					break
				}
				cursor = next
			}
		}
		return removed
	}
	_, err = results.Of(s.C).Store(s.Ctx, ids[0], layout.Token{Sequence: 1}, value)
	require.NoError(t, err)
	require.Zero(t, sweep())
	existed, err := results.Of(s.C).Put(s.Ctx, results.Value{ID: ids[0], Bytes: value})
	require.NoError(t, err)
	require.False(t, existed)
	require.Equal(t, 1, sweep(), "those of another put")
	row, err := s.C.Get(s.Ctx, ids[0])
	require.NoError(t, err)
	got, err := results.Of(s.C).Value(s.Ctx, row.ID, row.Result)
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, got))
	other, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	_, err = results.Of(s.C).Store(s.Ctx, other[0], layout.Token{Sequence: 1}, value)
	require.NoError(t, err)
	s.Clock.Advance(2 * time.Hour)
	require.Equal(t, 1, sweep())
	s.RequireSound()
}

// TestAPutEndsThoughItsPiecesVanish has them gone each time before the future refers to them.
func TestAPutEndsThoughItsPiecesVanish(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	c, times := s.Vanishing("futura-put")
	_, err := results.Of(c).Put(s.Ctx, results.Value{Key: "k", Bytes: make([]byte, 200_000)})
	require.ErrorContains(t, err, "its value of 200000 bytes was stored 8 times")
	require.Equal(t, 8, *times)
	_, err = results.Of(s.C).Put(s.Ctx, results.Value{Key: "k", Bytes: make([]byte, 200_000)})
	require.NoError(t, err, "nothing of the first one is left")
	s.RequireSound()
}

// TestPutsWithTags are found by them until they are removed.
func TestPutsWithTags(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	value := results.Value{ID: ids[0], Bytes: []byte("v"), Tags: []string{"b", "a", "b"}}
	for range 2 {
		_, err = results.Of(s.C).Put(s.Ctx, value)
		require.NoError(t, err)
	}
	row, err := s.C.Get(s.Ctx, ids[0])
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, row.Spec.Tags)
	s.RequireSound()
	_, err = s.C.DiscardMany(s.Ctx, ids)
	require.NoError(t, err)
	s.RequireSound()
	value.Tags = []string{"no tag"}
	_, err = results.Of(s.C).Put(s.Ctx, value)
	require.ErrorIs(t, err, layout.ErrBadName)
	value.Tags = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}
	_, err = results.Of(s.C).Put(s.Ctx, value)
	require.ErrorIs(t, err, layout.ErrBadSpec)
}

// TestPutsThatAreLate name a worker that is gone, or come too late.
func TestPutsThatAreLate(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put := func(before time.Time, holder layout.WorkerID) error {
		ids, err := s.C.DrawIDs(1)
		require.NoError(t, err)
		_, err = results.Of(s.C).Put(s.Ctx, results.Value{ID: ids[0], Object: "o", Size: 1, Holder: holder, Before: before})
		return err
	}
	require.NoError(t, put(s.C.Now(), s.Worker.ID()))
	require.ErrorIs(t, put(s.C.Now().Add(-1), s.Worker.ID()), results.ErrHolderGone)
	require.ErrorIs(t, put(time.Time{}, "0123456789abcdef"), results.ErrHolderGone)
	require.ErrorIs(t, put(time.Time{}, ""), layout.ErrBadSpec)
	require.NoError(t, results.Of(s.C).StopHolding(s.Ctx, s.Worker.ID()))
	require.ErrorIs(t, put(s.C.Now(), s.Worker.ID()), results.ErrHolderGone, "it stops")
	s.RequireSound()
}

package results_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// piecesOf is the size of a number of pieces.
func piecesOf(n int) int { return n * layout.ChunkSize }

// leave has a claim write the beginning of a value, all of it where it ends, and end
// without a result.
func leave(s *modeltest.Stage, value []byte, ends bool) {
	f := s.Claim(s.Worker)[0]
	u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
	_, err := u.Write(value)
	require.NoError(s.T, err)
	if ends {
		_, err = u.End()
		require.NoError(s.T, err)
	}
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true})
}

// conclude writes what an upload lacks of a value, which is then the result, sweeps what no
// record refers to, and requires that only the result is left.
func conclude(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, u *results.Upload, value []byte) {
	_, err := u.Write(value[u.Written():])
	require.NoError(s.T, err)
	ref, err := u.End()
	require.NoError(s.T, err)
	s.Faults.Flush() // late commits are made now
	s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{ValueRef: &ref, Size: ref.Size}})
	row, err := s.C.Get(s.Ctx, f.ID)
	require.NoError(s.T, err)
	got, err := results.Of(s.C).Value(s.Ctx, f.ID, row.Result)
	require.NoError(s.T, err)
	require.True(s.T, bytes.Equal(value, got))
	sweep(s, f.ID)
	modeltest.RequireSound(s.T, s.C)
}

// sweep sweeps the shard of a future, and returns how many values went.
func sweep(s *modeltest.Stage, id layout.ID) (removed int) {
	for cursor := []byte(nil); ; {
		next, n, err := maintenance.Of(s.C).SweepChunks(s.Ctx, id.Shard(s.C.Config().Shards), cursor)
		require.NoError(s.T, err)
		removed += n
		if cursor = next; next == nil {
			return removed
		}
	}
}

// TestUploadsGoOn has claims leave what they stored to the next one.
func TestUploadsGoOn(t *testing.T) {
	t.Parallel()
	type left struct {
		size int
		ends bool
	}
	size := piecesOf(32) + 7
	for name, c := range map[string]struct {
		left []left
		goes int // how much of it the next claim has
	}{
		"nothing":                 {nil, 0},
		"less than a transaction": {[]left{{piecesOf(9), false}}, 0},
		"some":                    {[]left{{piecesOf(25), false}}, piecesOf(20)},
		"all":                     {[]left{{size, true}}, size},
		"all but the last piece":  {[]left{{piecesOf(32), true}}, piecesOf(32)},
		"a shorter value":         {[]left{{size - 1, true}}, 0},
		"a longer value":          {[]left{{size + 1, true}}, 0},
		"more pieces":             {[]left{{piecesOf(33), true}}, 0},
		"the longest": {[]left{{piecesOf(11), false}, {piecesOf(25), false}, {piecesOf(2), true}},
			piecesOf(20)},
		"the longest beside a longer": {[]left{{piecesOf(12), true}, {piecesOf(40), true}}, piecesOf(12)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			s.Submit()
			value := noise(piecesOf(40))
			for _, l := range c.left {
				leave(s, value[:l.size], l.ends)
			}
			f := s.Claim(s.Worker)[0]
			u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
			n, err := u.Resume(s.Ctx, int64(size))
			require.NoError(t, err)
			require.EqualValues(t, c.goes, n)
			require.EqualValues(t, c.goes, u.Written())
			conclude(s, &f, u, value[:size])
			require.Zero(t, sweep(s, f.ID))
			require.NoError(t, s.Faults.Close())
		})
	}
}

// TestUploadsBeginAnew has what was left be of another value, which the caller finds out.
func TestUploadsBeginAnew(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	leave(s, noise(piecesOf(30)), true)
	f := s.Claim(s.Worker)[0]
	u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
	n, err := u.Resume(s.Ctx, int64(piecesOf(30)))
	require.NoError(t, err)
	require.EqualValues(t, piecesOf(30), n)
	_, err = u.Resume(s.Ctx, int64(piecesOf(30)))
	require.ErrorContains(t, err, "before the first Write")
	u.Rewind()
	require.Zero(t, u.Written())
	conclude(s, &f, u, bytes.Repeat([]byte("other value "), piecesOf(30)/12))
	require.NoError(t, s.Faults.Close())
}

// TestUploadsGoOnWhileAnEarlierHolderWrites has the holder of an earlier claim, which does
// not know that it has ended, write on. What it stored is swept once a later claim has as
// much, so that its rest has no beginning.
func TestUploadsGoOnWhileAnEarlierHolderWrites(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	value := noise(piecesOf(70))
	write := func(u *results.Upload, to int) {
		_, err := u.Write(value[u.Written():piecesOf(to)])
		require.NoError(t, err)
	}
	claim := func() (*fdbmodel.ClaimedFuture, *results.Upload) {
		f := s.Claim(s.Worker)[0]
		return &f, results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
	}
	first, early := claim()
	write(early, 25)
	s.Finish(s.Worker, fdbmodel.Completion{Future: first, Relinquish: true})
	require.Zero(t, sweep(s, id), "the next claim may need it")
	second, later := claim()
	write(later, 15)
	require.Zero(t, sweep(s, id))
	write(later, 35)
	require.Equal(t, 1, sweep(s, id))
	write(early, 65)
	s.Finish(s.Worker, fdbmodel.Completion{Future: second, Relinquish: true})
	third, last := claim()
	n, err := last.Resume(s.Ctx, int64(len(value)))
	require.NoError(t, err)
	require.EqualValues(t, piecesOf(30), n)
	write(early, 70)
	require.Equal(t, 1, sweep(s, id), "what has no beginning")
	conclude(s, third, last, value)
	_, err = early.End()
	require.NoError(t, err)
	require.Equal(t, 1, sweep(s, id))
	require.NoError(t, s.Faults.Close())
}

// TestUnknownResultsOfUploadsThatGoOn is TestUnknownResults for values that go on.
func TestUnknownResultsOfUploadsThatGoOn(t *testing.T) {
	t.Parallel()
	value := noise(piecesOf(30))
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-chunk that is left": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			strike()
			leave(s, value[:piecesOf(25)], false)
			f := s.Claim(s.Worker)[0]
			u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
			_, err := u.Resume(s.Ctx, int64(len(value)))
			require.NoError(s.T, err)
			conclude(s, &f, u, value)
		},
		"futura-chunk that is copied": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			leave(s, value[:piecesOf(25)], false)
			f := s.Claim(s.Worker)[0]
			strike()
			u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
			n, err := u.Resume(s.Ctx, int64(len(value)))
			require.NoError(s.T, err)
			require.EqualValues(s.T, piecesOf(20), n)
			conclude(s, &f, u, value)
		},
	})
}

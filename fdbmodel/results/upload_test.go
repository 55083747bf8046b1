package results_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
)

// uploadSizes are about pieces and transactions.
var uploadSizes = []int{0, 1, layout.ChunkSize, 10 * layout.ChunkSize, 10*layout.ChunkSize + 1, 25*layout.ChunkSize - 1}

func noise(n int) []byte {
	random := rand.NewChaCha8([32]byte{byte(n)})
	value := make([]byte, n)
	_, _ = random.Read(value) // never fails
	return value
}

// TestUploads has results of all sizes be written in parts of all sizes, and be replaced by
// smaller ones.
func TestUploads(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	f := s.Claim(s.Worker)[0]
	for i := range uploadSizes {
		value := noise(uploadSizes[len(uploadSizes)-1-i])
		u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
		for rest := value; len(rest) > 0; {
			n := min(1+rand.IntN(200_000), len(rest))
			written, err := u.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
			if rand.IntN(4) == 0 {
				got, err := io.ReadAll(u.Reader(s.Ctx))
				require.NoError(t, err)
				require.True(t, bytes.Equal(value[:len(value)-len(rest)], got))
			}
		}
		require.EqualValues(t, len(value), u.Written())
		ref, err := u.End()
		require.NoError(t, err)
		require.EqualValues(t, len(value), ref.Size)
		got, err := results.Of(s.C).Value(s.Ctx, f.ID, &layout.Result{ValueRef: &ref})
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, got))
	}
}

// TestUploadsAreBounded writes more than a result may have.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	f := s.Claim(s.Worker)[0]
	u := results.Of(s.C).Upload(s.Ctx, f.ID, f.Token)
	_, err := u.Write(make([]byte, 3))
	require.NoError(t, err)
	_, err = u.Write(make([]byte, layout.MaxPut-2))
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	require.EqualValues(t, 3, u.Written())
}

// TestUploadsOfModules stores modules by their ids, and none by the id of another one.
func TestUploadsOfModules(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, size := range uploadSizes[1:] {
		module := noise(size)
		cid, err := modules.CID(module)
		require.NoError(t, err)
		u := modules.Of(s.C).Upload(s.Ctx, cid)
		_, err = u.Write(module)
		require.NoError(t, err)
		info, err := u.End()
		require.NoError(t, err)
		require.Equal(t, cid, info.CID)
		got, err := modules.Of(s.C).Get(s.Ctx, cid)
		require.NoError(t, err)
		require.True(t, bytes.Equal(module, got))
		r, err := modules.Of(s.C).Open(s.Ctx, cid)
		require.NoError(t, err)
		seeker := results.NewSeeker(s.Ctx, r)
		at := rand.Int64N(int64(size))
		_, err = seeker.Seek(at, io.SeekStart)
		require.NoError(t, err)
		got, err = io.ReadAll(seeker)
		require.NoError(t, err)
		require.True(t, bytes.Equal(module[at:], got))
	}
	other, err := modules.CID([]byte("other"))
	require.NoError(t, err)
	u := modules.Of(s.C).Upload(s.Ctx, other)
	_, err = u.Write([]byte("module"))
	require.NoError(t, err)
	_, err = u.End()
	require.ErrorIs(t, err, layout.ErrBadRecord)
	_, err = modules.Of(s.C).Open(s.Ctx, other)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestUnknownResultsOfUploads is TestUnknownResults for values that are stored as they come.
func TestUnknownResultsOfUploads(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-chunk of an upload that is replaced": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			for _, n := range []int{25 * layout.ChunkSize, 12*layout.ChunkSize - 1} {
				u := results.Of(s.C).Upload(s.Ctx, id, f[0].Token)
				_, err := u.Write(noise(n))
				require.NoError(s.T, err)
				ref, err := u.End()
				require.NoError(s.T, err)
				if n > 20*layout.ChunkSize {
					continue
				}
				s.Faults.Flush() // late commits are made now
				s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{ValueRef: &ref, Size: ref.Size}})
				row, err := s.C.Get(s.Ctx, id)
				require.NoError(s.T, err)
				got, err := results.Of(s.C).Value(s.Ctx, id, row.Result)
				require.NoError(s.T, err)
				require.True(s.T, bytes.Equal(noise(n), got))
			}
		},
	})
}

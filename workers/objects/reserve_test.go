package objects

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// releases is a stream whose second read releases a reservation, and fails.
type releases struct {
	of    *Reservation
	reads int
}

var errReader = errors.New("the stream was cut off")

func (r *releases) Read(p []byte) (int, error) {
	if r.reads++; r.reads > 1 {
		r.of.Release()
		return 0, errReader
	}
	return len(p), nil
}

// TestARoomThatAPutDidNotUseIsGivenBack has reservations that were released meanwhile, or are too small.
func TestARoomThatAPutDidNotUseIsGivenBack(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Memory: 8 << 20})
	require.NoError(t, err)
	r, err := s.Reserve(t.Context(), 4<<20)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), &releases{of: r}, PutOptions{Reservation: r})
	require.ErrorIs(t, err, errReader)
	require.Zero(t, s.Stats().MemoryUsed, "released meanwhile")
	require.Zero(t, r.Left())

	r, err = s.Reserve(t.Context(), 1<<20)
	require.NoError(t, err)
	kept := s.Stats().MemoryUsed
	_, err = s.PutBytes(t.Context(), bytes.Repeat([]byte("x"), 9<<20), PutOptions{Reservation: r})
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, kept, s.Stats().MemoryUsed)
	r.Release()
	require.Zero(t, s.Stats().MemoryUsed, "too small")
	require.NoError(t, s.Close())
}

// TestARoomInMemoryIsNoRoomOnDisk has an object outgrow memory, and with it its reservation there.
func TestARoomInMemoryIsNoRoomOnDisk(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Memory: 4 * PieceSize, Dir: t.TempDir(), Disk: 64 << 20})
	r, err := s.Reserve(t.Context(), 2*PieceSize)
	require.NoError(t, err)
	kept := r.Left()
	content := someBytes(10*PieceSize, 1)
	ref, err := s.Put(t.Context(), iotest.HalfReader(bytes.NewReader(content)), PutOptions{Reservation: r})
	require.NoError(t, err)
	require.Equal(t, kept, r.Left(), "it is free again")
	require.Equal(t, charge(ref.Size, onDisk), s.Stats().DiskUsed)
	r.Release()
	_, err = s.Delete(ref.Hash)
	require.NoError(t, err)
	stats := s.Stats()
	require.Zero(t, stats.MemoryUsed)
	require.Zero(t, stats.DiskUsed)
}

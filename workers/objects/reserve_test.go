package objects

import (
	"bytes"
	"errors"
	"testing"

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

package objects

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// piecesOf is a content's name and the hashes of its pieces.
func piecesOf(b []byte) (Ref, []Hash) {
	var pieces []Hash
	for rest := b; len(rest) > 0; rest = rest[min(len(rest), PieceSize):] {
		pieces = append(pieces, HashPiece(rest[:min(len(rest), PieceSize)]))
	}
	return RefOf(int64(len(b)), pieces), pieces
}

func pieceOf(b []byte, piece int) []byte {
	return b[piece*PieceSize : min(len(b), (piece+1)*PieceSize)]
}

// TestArrival writes pieces in random order from several goroutines, some of them
// twice and some of them wrong.
func TestArrival(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, options := range tierOptions(t) {
		s := open(t, options)
		for _, size := range []int{0, 5, PieceSize, 4*PieceSize + 9} {
			want := someBytes(size, 3)
			ref, pieces := piecesOf(want)
			a, err := s.Arrive(ctx, ref, pieces, PutOptions{})
			require.NoError(t, err)
			var all sync.WaitGroup
			for range 2 {
				for _, piece := range rand.Perm(len(pieces)) {
					all.Go(func() {
						wrong := append([]byte(nil), pieceOf(want, piece)...)
						wrong[len(wrong)-1] ^= 1
						for _, content := range [][]byte{wrong, wrong[1:], nil} {
							if err := a.Write(piece, content); err == nil {
								t.Error("wrong content is taken")
							}
						}
						if err := a.Write(piece, pieceOf(want, piece)); err != nil {
							t.Error(err)
						}
					})
				}
			}
			all.Wait()
			require.ErrorIs(t, a.Write(len(pieces), []byte("more")), ErrDamaged)
			require.ErrorIs(t, a.Write(-1, []byte("more")), ErrDamaged)
			require.NoError(t, a.Commit(), name)
			require.ErrorIs(t, a.Commit(), ErrClosed)
			require.NoError(t, a.Abandon())
			requireContent(t, s, ref, want)
		}
	}
}

// TestArrivalEnds ends arrivals that are not complete, and refuses others.
func TestArrivalEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const size = 3 * PieceSize
	s := open(t, Options{Memory: charge(size, inMemory)})
	want := someBytes(size, 1)
	ref, pieces := piecesOf(want)
	for _, end := range []func(*Arrival) error{
		(*Arrival).Abandon,
		func(a *Arrival) error {
			require.ErrorContains(t, a.Commit(), "2 pieces of "+ref.String()+" are missing")
			return nil
		},
	} {
		a, err := s.Arrive(ctx, ref, pieces, PutOptions{})
		require.NoError(t, err)
		require.NoError(t, a.Write(1, pieceOf(want, 1)))
		_, err = s.Arrive(ctx, ref, pieces, PutOptions{})
		require.ErrorIs(t, err, ErrFull)
		require.NoError(t, end(a))
		require.ErrorIs(t, a.Write(0, pieceOf(want, 0)), ErrClosed)
		require.Zero(t, s.Stats().MemoryUsed)
		require.False(t, s.Has(ref.Hash))
	}
	_, err := s.Arrive(ctx, ref, pieces[:2], PutOptions{})
	require.ErrorIs(t, err, ErrDamaged)
	kept, err := s.Reserve(ctx, size)
	require.NoError(t, err)
	a, err := s.Arrive(ctx, ref, pieces, PutOptions{Reservation: kept})
	require.NoError(t, err)
	require.NoError(t, a.Abandon())
	require.Equal(t, charge(size, inMemory), kept.Left())
	kept.Release()
}

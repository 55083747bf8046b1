package objects

import (
	"context"
	"fmt"
	"sync"
)

// Arrival is an object that comes into the store piece by piece, in any order. Each
// piece is verified. It has to be ended by Commit or Abandon.
type Arrival struct {
	stage  stage
	ref    Ref
	pieces []Hash
	writes sync.WaitGroup

	mu    sync.Mutex
	has   []bool
	left  int
	ended bool
}

// Arrive takes room for an object. It returns ErrDamaged if pieces are not the
// hashes of its pieces, and ErrFull if there is no room.
func (s *Store) Arrive(ctx context.Context, ref Ref, pieces []Hash, o PutOptions) (*Arrival, error) {
	if err := ref.Verify(pieces); err != nil {
		return nil, err
	}
	a := &Arrival{ref: ref, pieces: pieces, has: make([]bool, len(pieces)), left: len(pieces)}
	a.stage = stage{store: s, reservation: o.Reservation, kept: o.Kept}
	if err := a.stage.begin(ctx, ref.Size, ref.Size); err != nil {
		return nil, err
	}
	return a, nil
}

// Write adds a piece. It returns ErrDamaged for other content than the piece's.
// A piece that is there is not written again. It may be called from many
// goroutines.
func (a *Arrival) Write(piece int, content []byte) error {
	if err := a.ref.VerifyPiece(a.pieces, piece, content); err != nil {
		return err
	}
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return ErrClosed
	}
	if a.has[piece] {
		a.mu.Unlock()
		return nil
	}
	a.has[piece] = true
	a.writes.Add(1)
	a.mu.Unlock()
	defer a.writes.Done()
	err := a.stage.writeFailed(a.stage.content.write(piece, content))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.has[piece] = err == nil; err == nil {
		a.left--
	}
	return err
}

// Commit makes the object one of the store's. It returns an error if pieces are
// missing, and keeps nothing then.
func (a *Arrival) Commit() error {
	left, ended := a.end()
	switch {
	case ended:
		return ErrClosed
	case left > 0:
		err := fmt.Errorf("objects: %d pieces of %s are missing", left, a.ref)
		if failed := a.stage.abandon(); failed != nil {
			err = fmt.Errorf("%w; %w", err, failed)
		}
		return err
	default:
		return a.stage.commit(a.ref, a.pieces)
	}
}

// Abandon drops what has arrived, unless the arrival has ended.
func (a *Arrival) Abandon() error {
	if _, ended := a.end(); ended {
		return nil
	}
	return a.stage.abandon()
}

// end lets no more pieces in, and reports how many are missing and whether the
// arrival had ended before.
func (a *Arrival) end() (left int, ended bool) {
	a.mu.Lock()
	ended = a.ended
	a.ended = true
	a.mu.Unlock()
	a.writes.Wait()
	return a.left, ended
}

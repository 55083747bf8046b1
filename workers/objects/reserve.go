package objects

import (
	"context"
	"errors"
	"fmt"
)

// Reservation is room that is kept for objects.
type Reservation struct {
	store *Store
	tier  tier
	// The store's lock guards what follows.
	left     int64
	released bool
}

// Reserve keeps room for one object of at most n bytes, so that it can be put
// later whatever else is put until then. It returns ErrFull if there is no room. A
// reservation has to be released.
func (s *Store) Reserve(ctx context.Context, n int64) (*Reservation, error) {
	if n < 0 || n > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes: an object has from 0 to %d", ErrFull, n, int64(MaxSize))
	}
	t, taken, err := s.takeAny(ctx, n)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved += taken
	return &Reservation{store: s, tier: t, left: taken}, nil
}

// takeAny takes room for an object of n bytes, in memory if that has it or can be
// given it.
func (s *Store) takeAny(ctx context.Context, n int64) (t tier, taken int64, err error) {
	var failed error
	for t := range tiers {
		needed := charge(n, t)
		took, err := s.take(ctx, t, needed)
		if took {
			return t, needed, nil
		}
		if errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return 0, 0, errors.Join(err, ctx.Err())
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return 0, 0, failed
	}
	return 0, 0, s.full(charge(n, inMemory))
}

// Left is how many bytes are still kept.
func (r *Reservation) Left() int64 {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.left
}

// Release gives back what is still kept. It may be called more than once. Objects
// that were put into the room stay.
func (r *Reservation) Release() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.released = true
	r.store.rooms[r.tier].used -= r.left
	r.store.reserved -= r.left
	r.left = 0
}

// draw takes up to n bytes of a tier out of what is kept.
func (r *Reservation) draw(t tier, n int64) int64 {
	if r == nil || r.tier != t {
		return 0
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	n = min(n, r.left)
	r.left -= n
	r.store.reserved -= n
	return n
}

// restore puts back what was drawn and is free again. It returns false if the
// reservation has been released.
func (r *Reservation) restore(n int64) bool {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.released {
		return false
	}
	r.left += n
	r.store.reserved += n
	return true
}

package objects

import (
	"context"
	"errors"
)

// stage is content that is not yet complete, and the room that is taken for it.
type stage struct {
	store       *Store
	reservation *Reservation
	kept        func(Ref)
	tier        tier
	content     content
	file        bool // it takes a descriptor of its own
	taken       int64
	drawn       int64 // part of taken, of the reservation
}

// begin takes room for about so many bytes, and makes the place for them; exact is
// the size where it is known, else less than 0.
func (g *stage) begin(ctx context.Context, about, exact int64) error {
	if about > MaxSize {
		return g.store.full(about)
	}
	if g.reservation != nil {
		g.tier = g.reservation.tier
		enough, err := g.extend(ctx, about)
		if enough {
			return g.place(about, exact)
		}
		g.giveBack(g.taken)
		if err != nil {
			return err
		}
	}
	t, taken, err := g.store.takeAny(ctx, about)
	if err != nil {
		return err
	}
	g.tier, g.taken = t, taken
	return g.place(about, exact)
}

// place makes the place in the tier that room was taken in.
func (g *stage) place(about, exact int64) error {
	if g.tier == inMemory {
		g.content, g.file = g.store.placeInMemory(about)
		return nil
	}
	on, err := g.store.disk.place(exact)
	if err != nil {
		g.giveBack(g.taken)
		return g.store.diskFailed(err)
	}
	g.content = on
	return nil
}

// placeInMemory makes a place in memory, and reports whether it takes a
// descriptor.
func (s *Store) placeInMemory(about int64) (content, bool) {
	if about <= heapSize || s.takeFile() != nil {
		return &heap{}, false
	}
	f, err := createMemory()
	if err != nil {
		s.giveFile()
		return &heap{}, false
	}
	return &memoryFile{file: f}, true
}

// extend takes what is missing for size bytes in the same tier, and reports
// whether there was enough.
func (g *stage) extend(ctx context.Context, size int64) (bool, error) {
	missing := charge(size, g.tier) - g.taken
	if missing <= 0 {
		return true, nil
	}
	drawn := g.reservation.draw(g.tier, missing)
	g.taken += drawn
	g.drawn += drawn
	if missing -= drawn; missing == 0 {
		return true, nil
	}
	enough, err := g.store.take(ctx, g.tier, missing)
	if enough {
		g.taken += missing
	}
	if g.tier == inMemory && ctx.Err() == nil && errors.Is(err, ErrFull) {
		err = nil // the disk may still take this object
	}
	return enough, err
}

// toDisk moves what was written of an object from memory to disk, where there is
// room for size bytes.
func (g *stage) toDisk(ctx context.Context, written Ref, size int64) error {
	if g.tier == onDisk {
		return g.store.full(charge(size, onDisk))
	}
	needed := charge(size, onDisk)
	took, err := g.store.take(ctx, onDisk, needed)
	if err != nil || !took {
		return errors.Join(err, g.store.full(needed))
	}
	to, err := g.store.disk.place(-1)
	if err != nil {
		g.store.give(onDisk, needed)
		return g.store.diskFailed(err)
	}
	if err := copyPieces(ctx, to, g.content, written); err != nil {
		g.store.give(onDisk, needed)
		return errors.Join(g.store.diskFailed(err), to.drop())
	}
	err = g.abandon()
	g.tier, g.content, g.taken, g.file = onDisk, to, needed, false
	return err
}

// giveBack gives back a part of what was taken, to the reservation first.
func (g *stage) giveBack(n int64) {
	g.taken -= n
	if back := min(n, g.drawn); back > 0 {
		g.drawn -= back
		if g.reservation.restore(back) {
			n -= back
		}
	}
	g.store.give(g.tier, n)
}

// abandon drops the content.
func (g *stage) abandon() error {
	err := g.content.drop()
	if g.file {
		g.store.giveFile()
	}
	g.giveBack(g.taken)
	return err
}

// writeFailed is the error of a write.
func (g *stage) writeFailed(err error) error {
	if err == nil || g.tier == inMemory {
		return err
	}
	return g.store.diskFailed(err)
}

// commit makes the content an object of the store.
func (g *stage) commit(ref Ref, pieces []Hash) error {
	if err := g.content.seal(); err != nil {
		return errors.Join(err, g.abandon())
	}
	if surplus := g.taken - charge(ref.Size, g.tier); surplus > 0 {
		g.giveBack(surplus)
	}
	return g.store.add(ref, pieces, &body{content: g.content, tier: g.tier, charge: g.taken, file: g.file}, g.kept)
}

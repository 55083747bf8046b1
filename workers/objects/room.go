package objects

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// tier is where content is.
type tier int

const (
	inMemory tier = iota
	onDisk
	tiers
)

// room is what a tier has for objects, in bytes.
type room struct{ budget, used int64 }

func (r room) free() int64 { return max(0, r.budget-r.used) }

const (
	// heapSize is the size of the largest object that is kept on the heap where
	// files in memory can be made: a descriptor for each is too much for them.
	heapSize = 128 << 10
	// entrySize is about what the store's own records of an object take.
	entrySize = 512
)

// charge is what an object takes, with the store's records of it.
func charge(size int64, t tier) int64 {
	if size > heapSize || t == onDisk {
		size = pages(size)
	}
	return size + entrySize
}

// Fits returns how many objects of a size the store has room for now.
func (s *Store) Fits(size int64) int {
	limit := s.diskLimit()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(0)
	for t := range tiers {
		n += s.freeIn(t, limit) / charge(size, t)
	}
	return int(min(n, math.MaxInt32))
}

// Largest returns the size of the largest object that the store could hold if it
// were empty.
func (s *Store) Largest() int64 {
	return max(0, max(s.options.Memory, s.options.Disk)-charge(0, onDisk)-pages(1))
}

// take takes n bytes of a tier, and reports whether it has them. For memory,
// objects that are not being read go to disk. An error is one of the disk.
func (s *Store) take(ctx context.Context, t tier, n int64) (bool, error) {
	limit := int64(0)
	if t == onDisk {
		limit = s.diskLimit()
	}
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return false, ErrClosed
		case s.freeIn(t, limit) >= n:
			s.rooms[t].used += n
			s.mu.Unlock()
			return true, nil
		case t == onDisk || n > s.rooms[t].budget || s.idle.Len() == 0:
			s.mu.Unlock()
			return false, nil
		}
		b := s.idle.Remove(s.idle.Front()).(*body)
		b.place = nil
		b.moving = true
		s.mu.Unlock()
		moved, err := s.spill(ctx, b)
		if err != nil || !moved {
			return false, err
		}
	}
}

func (s *Store) give(t tier, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms[t].used -= n
}

// spill copies a body to disk, and drops it from memory. It reports false if the
// disk has no room.
func (s *Store) spill(ctx context.Context, b *body) (moved bool, err error) {
	e := b.entry
	on := &body{entry: e, tier: onDisk, charge: charge(e.ref.Size, onDisk)}
	took, err := s.take(ctx, onDisk, on.charge)
	if took {
		if on.content, err = s.copyToDisk(ctx, e, b.content); err != nil {
			s.give(onDisk, on.charge)
		}
	}
	s.mu.Lock()
	b.moving = false
	var gone []*body
	switch moved = took && err == nil; {
	case moved && !b.dead:
		e.body = on
		s.settle(on)
		gone = append(gone, s.condemn(b))
	case moved:
		gone = append(gone, on, s.condemn(b))
	case b.dead:
		gone = append(gone, s.condemn(b))
	default:
		s.rest(b)
	}
	s.mu.Unlock()
	return moved, errors.Join(err, s.dropAll(gone))
}

func (s *Store) copyToDisk(ctx context.Context, e *entry, from content) (content, error) {
	to, err := s.disk.place(e.ref.Size)
	if err != nil {
		return nil, s.diskFailed(err)
	}
	if err := copyPieces(ctx, to, from, e.ref); err != nil {
		return nil, errors.Join(s.diskFailed(err), to.drop())
	}
	return to, nil
}

func copyPieces(ctx context.Context, to, from content, ref Ref) error {
	buffer := getBuffer()
	defer putBuffer(buffer)
	for piece := range ref.Pieces() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := (*buffer)[:ref.PieceLength(piece)]
		if err := from.read(p, int64(piece)*PieceSize); err != nil {
			return err
		}
		if err := to.write(piece, p); err != nil {
			return err
		}
	}
	return nil
}

// full says what a store has no room for.
func (s *Store) full(n int64) error {
	limit := s.diskLimit()
	s.mu.Lock()
	defer s.mu.Unlock()
	memory, where := s.rooms[inMemory], s.diskText(limit)
	return fmt.Errorf("%w: %d bytes are needed; memory has %d of %d left (Options.Memory), %s; reservations hold %d",
		ErrFull, n, memory.free(), memory.budget, where, s.reserved)
}

// diskFailed makes an error of the disk one of the store: what the disk can't take,
// the store has no room for.
func (s *Store) diskFailed(err error) error {
	if errors.Is(err, ErrFull) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.pauseDisk(err)
	return fmt.Errorf("%w: the disk of %s fails: %w", ErrFull, s.options.Dir, err)
}

// takeFile takes a descriptor.
func (s *Store) takeFile() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files >= s.options.MaxFiles {
		return fmt.Errorf("%w: %d files are open, at most %d (Options.MaxFiles)", ErrFull, s.files, s.options.MaxFiles)
	}
	s.files++
	return nil
}

func (s *Store) giveFile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files--
}

// keep counts bytes of a file that are of no use. It ends with less than 0.
func (s *Store) keep(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms[onDisk].used += n
	s.written += n
}

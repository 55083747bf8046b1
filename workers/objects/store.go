package objects

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Store keeps objects. Its methods may be called from many goroutines.
type Store struct {
	options Options
	disk    disk

	mu       sync.Mutex
	closed   bool
	entries  map[Hash]*entry
	idle     *list.List // of *body in memory without pins, the longest unused first
	rooms    [tiers]room
	written  int64 // part of what is used on disk that its file system counts
	reserved int64 // held by reservations
	files    int   // open descriptors
	pinned   int   // bodies that are read

	pausedUntil time.Time // nothing goes to disk before
	paused      error     // why
}

// entry is an object of the store.
type entry struct {
	ref    Ref
	pieces []Hash
	body   *body
}

// body is one place of an object's content, and what it takes there. The store's
// lock guards what changes.
type body struct {
	content content
	entry   *entry
	tier    tier
	charge  int64
	pins    int           // those who read it
	place   *list.Element // in idle, or nil
	moving  bool          // it is copied to disk
	dead    bool          // it goes with the last pin
	file    bool          // it takes a descriptor of its own
	settled bool          // it counts as written
}

// Open returns an empty store. What crashed processes left in its directory is
// removed.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.Dir != "" {
		if err := prepareDir(o.Dir); err != nil {
			return nil, err
		}
	}
	s := &Store{options: o, entries: map[Hash]*entry{}, idle: list.New()}
	s.disk.store = s
	s.rooms[inMemory].budget, s.rooms[onDisk].budget = o.Memory, o.Disk
	return s, nil
}

// Close drops all objects. The content of those that are open goes when they are
// closed.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	var gone []*body
	for hash, e := range s.entries {
		delete(s.entries, hash)
		gone = append(gone, s.condemn(e.body))
	}
	s.mu.Unlock()
	return s.dropAll(gone)
}

// Stats counts what a store has. All but the first two are bytes.
type Stats struct {
	// Objects is the number of objects, Pinned how many are open, deleted ones
	// included.
	Objects, Pinned int
	// MemoryUsed and DiskUsed are what objects take: those under way, those that
	// were deleted and are still open, and reservations included. Reserved is the
	// part of both that reservations keep.
	MemoryUsed, MemoryBudget int64
	DiskUsed, DiskBudget     int64
	Reserved                 int64
	// Free is what is left of both budgets, and of the disk no more than its file system
	// has, or nothing while it fails.
	Free int64
}

// Stats returns the counts of the moment.
func (s *Store) Stats() Stats {
	limit := s.diskLimit()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Objects: len(s.entries), Pinned: s.pinned,
		MemoryUsed: s.rooms[inMemory].used, MemoryBudget: s.rooms[inMemory].budget,
		DiskUsed: s.rooms[onDisk].used, DiskBudget: s.rooms[onDisk].budget,
		Reserved: s.reserved,
		Free:     s.rooms[inMemory].free() + s.freeOnDisk(limit),
	}
	return stats
}

// Has reports whether the store has an object.
func (s *Store) Has(hash Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.entries[hash]
	return found
}

// Delete drops an object, however often it was put, and reports whether it was
// there. Those who have it open can read on; its room is free when the last of
// them has closed it.
func (s *Store) Delete(hash Hash) (bool, error) {
	return s.DeleteIf(hash, func() bool { return true })
}

// DeleteIf is Delete if may, which must not use the store, returns true: no other puts
// the object in between, see PutOptions.Kept.
func (s *Store) DeleteIf(hash Hash, may func() bool) (bool, error) {
	s.mu.Lock()
	e, found := s.entries[hash]
	if !may() || !found {
		s.mu.Unlock()
		return false, nil
	}
	delete(s.entries, hash)
	gone := s.condemn(e.body)
	s.mu.Unlock()
	return true, s.dropAll([]*body{gone})
}

// Open returns an object for reading. It has to be closed. The errors are
// ErrNotFound and ErrClosed.
func (s *Store) Open(hash Hash) (*Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	e, found := s.entries[hash]
	if !found {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, hash)
	}
	b := e.body
	s.pin(b)
	o := &Object{ref: e.ref, pieces: e.pieces, content: b.content, onDisk: b.tier == onDisk}
	o.release = func() error { return s.unpin(b) }
	return o, nil
}

func (s *Store) pin(b *body) {
	if b.pins++; b.pins == 1 {
		s.pinned++
	}
	if b.place != nil {
		s.idle.Remove(b.place)
		b.place = nil
	}
}

func (s *Store) unpin(b *body) error {
	s.mu.Lock()
	if b.pins--; b.pins == 0 {
		s.pinned--
	}
	s.rest(b)
	var gone *body
	if b.dead {
		gone = s.condemn(b)
	}
	s.mu.Unlock()
	return s.dropAll([]*body{gone})
}

// rest puts a body that is not being read among those that may go to disk, as the one
// that was used last.
func (s *Store) rest(b *body) {
	if b.pins == 0 && !b.dead && !b.moving && b.tier == inMemory && b.place == nil {
		b.place = s.idle.PushBack(b)
	}
}

// settle counts a body that is complete as written, if it is on disk.
func (s *Store) settle(b *body) {
	if b.tier == onDisk {
		b.settled = true
		s.written += b.charge
	}
}

// condemn ends a body, and returns it if it is not being read, else nil. It is called
// again when one that read it is done.
func (s *Store) condemn(b *body) *body {
	b.dead = true
	if b.place != nil {
		s.idle.Remove(b.place)
		b.place = nil
	}
	if b.pins > 0 || b.moving {
		return nil
	}
	return b
}

// dropAll drops the contents of bodies that are not nil, and gives back what they
// took.
func (s *Store) dropAll(gone []*body) (err error) {
	for _, b := range gone {
		if b != nil {
			err = errors.Join(err, b.content.drop())
			s.mu.Lock()
			s.rooms[b.tier].used -= b.charge
			if b.settled {
				s.written -= b.charge
			}
			if b.file {
				s.files--
			}
			s.mu.Unlock()
		}
	}
	return err
}

// add makes a body an object of the store, unless it has that object already: then
// the body is dropped.
func (s *Store) add(ref Ref, pieces []Hash, b *body, kept func(Ref)) error {
	s.mu.Lock()
	_, found := s.entries[ref.Hash]
	if kept != nil && !s.closed {
		kept(ref)
	}
	if !found && !s.closed {
		e := &entry{ref: ref, pieces: pieces, body: b}
		b.entry = e
		s.entries[ref.Hash] = e
		s.settle(b)
		s.rest(b)
		s.mu.Unlock()
		return nil
	}
	closed := s.closed
	s.mu.Unlock()
	err := s.dropAll([]*body{b})
	if closed {
		return errors.Join(ErrClosed, err)
	}
	return err
}

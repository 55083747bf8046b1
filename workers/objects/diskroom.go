package objects

import (
	"fmt"
	"math"
	"time"
)

const (
	// diskPause is how long nothing more goes to a disk that has failed.
	diskPause = 5 * time.Second
	// diskMargin is what is left of a file system to others, at most, and
	// marginShare which part of a small one.
	diskMargin  = 64 << 20
	marginShare = 16
)

// noLimit is what a file system has of which nothing is known.
const noLimit = math.MaxInt64

// diskLimit is how many bytes the file system of the directory has for objects. It
// asks the system, so the store must not be locked.
func (s *Store) diskLimit() int64 {
	if s.options.Dir == "" || s.options.Disk == 0 {
		return 0
	}
	available, total, known := s.options.available(s.options.Dir)
	if !known {
		return noLimit
	}
	return max(0, available-min(diskMargin, total/marginShare))
}

// freeOnDisk is what the disk has for more objects, of what its file system was found
// to have: what is taken and not yet written is none of it. Nothing goes to a disk that
// has failed of late. The store is locked.
func (s *Store) freeOnDisk(limit int64) int64 {
	if s.options.now().Before(s.pausedUntil) {
		return 0
	}
	r := s.rooms[onDisk]
	free := r.free()
	if limit != noLimit {
		free = min(free, max(0, limit-(r.used-s.written)))
	}
	return free
}

// freeIn is freeOnDisk, or what memory has.
func (s *Store) freeIn(t tier, limit int64) int64 {
	if t == onDisk {
		return s.freeOnDisk(limit)
	}
	return s.rooms[t].free()
}

// pauseDisk has nothing go to the disk for a while.
func (s *Store) pauseDisk(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pausedUntil, s.paused = s.options.now().Add(diskPause), err
}

// diskText says what the disk has.
func (s *Store) diskText(limit int64) string {
	free, budget, dir := s.rooms[onDisk].free(), s.rooms[onDisk].budget, s.options.Dir
	switch now := s.freeOnDisk(limit); {
	case dir == "":
		return "there is no directory for the disk (Options.Dir)"
	case s.options.now().Before(s.pausedUntil):
		return fmt.Sprintf("the disk of %s has failed, and is tried again within %v (%v)", dir, diskPause, s.paused)
	case now < free:
		return fmt.Sprintf("the file system of %s has %d left for objects (%d would be allowed, Options.Disk)",
			dir, now, free)
	default:
		return fmt.Sprintf("the disk has %d of %d (Options.Disk) in %s", free, budget, dir)
	}
}

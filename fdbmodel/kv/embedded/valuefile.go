package embedded

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// valueFile is a file of the log that values are read from. It stays open while a row or
// a reader needs it, also when the file has been removed.
type valueFile struct {
	dir  directory
	file uint64
	log  vfs.File
	// users are the readers, and one more for the index.
	users atomic.Int64
}

// release closes the file after its last user.
func (f *valueFile) release() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.log.Close()
}

// fileValue is where a value lies, nowhere if it is zero. It is read once.
type fileValue struct {
	// log is the file of the log, tables the set of tables if it is none.
	log    *valueFile
	tables *tableSet
	size   int
	// below says that it is what the tables have of a key, if anything.
	below bool
	// place and sum are where in the log it lies and its checksum, version is that of the
	// row in a table.
	place   int64
	sum     uint32
	version kv.Version
}

func (v fileValue) exists() bool { return v.log != nil || v.tables != nil }

// read returns the value, which is that of key, in memory of its own or that of to. It is
// nil if there is none.
func (v fileValue) read(key, to []byte) (value []byte, err error) {
	to = slices.Grow(to[:0], v.size)
	if v.log != nil {
		value, err = v.log.readLog(to[:v.size], v.place, v.sum)
		return value, errors.Join(err, v.log.release())
	}
	if v.below {
		value, err = v.tables.find(key, to)
	} else {
		value, err = v.tables.read(key, v.version, to)
	}
	return value, errors.Join(err, v.tables.release())
}

// release gives up a value that is not read.
func (v fileValue) release() {
	// Nothing was written to the file, and what was read was checked.
	if v.log != nil {
		_ = v.log.release()
	} else if v.tables != nil {
		_ = v.tables.release()
	}
}

// locate returns where a spilled value lies, for read. The caller holds the
// index's lock.
func (x *index) locate(e revision) (v fileValue, err error) {
	v.size = e.size()
	if !e.logged() {
		v.tables, v.version = x.base.hold(), e.born()
		return v, nil
	}
	f := x.valueFiles[e.file()]
	if f == nil {
		return v, kv.ErrClosed
	}
	f.users.Add(1)
	v.log = f
	v.place, v.sum = e.place()
	return v, nil
}

// below returns where what a reader at v sees of a row lies that memory does not know, which
// is nowhere if it was cleared there. The caller holds the index's lock.
func (x *index) below(key []byte, v kv.Version) (s fileValue) {
	if !x.cold.holes.contain(key, v) {
		s = fileValue{tables: x.base.hold(), below: true}
	}
	return s
}

// elsewhere returns where the newest value of a key lies if that is not memory. Only the
// sequencer may call it.
func (x *index) elsewhere(key []byte) (s fileValue, err error) {
	r := x.tree.getNear(key)
	switch {
	case r == 0 && x.isCold(key):
		return x.below(key, math.MaxInt64), nil
	case r == 0 || x.at(r).absent() || !x.at(r).spilled():
		return s, nil
	}
	return x.locate(x.at(r))
}

// largeRow is a row that a checkpoint wrote, whose value can be left to it.
type largeRow struct {
	key      []byte
	revision ref
	// version tells the revision from another that its block was reused for.
	version kv.Version
}

// spillToTable leaves large values to the table that has them. Files of the log that they
// lay in before are closed once nothing can read there.
func (s *Store) spillToTable(large []largeRow) {
	x := &s.index
	for first := true; first || len(large) > 0; first = false {
		s.commitLock.Lock()
		x.mu.Lock()
		n := min(len(large), lockedRows)
		for _, l := range large[:n] {
			x.spillRowToTable(l)
		}
		if large = large[n:]; len(large) == 0 {
			for i := range x.retired {
				if x.retired[i].version == 0 {
					x.retired[i].version = s.sequencer.last
				}
			}
		}
		x.mu.Unlock()
		s.commitLock.Unlock()
	}
}

// spillRowToTable leaves a row's value to a table, unless its revision is gone. The
// caller holds the locks of commits and of the index.
func (x *index) spillRowToTable(l largeRow) {
	head := x.tree.get(l.key)
	r := head
	for r != 0 && r != l.revision {
		r = x.at(r).older()
	}
	if r == 0 || x.at(r).born() != l.version {
		return
	}
	counts := r == head && !x.at(r).absent()
	if counts {
		x.countLarge(x.at(r), -1)
	}
	if e := x.at(r); !e.spilled() || e.logged() {
		x.arena.resize(r, revisionHeader+e.keySize())
	}
	x.at(r).spill()
	if counts {
		x.countLarge(x.at(r), 1)
	}
}

// retiredFile is a file of the log in which no row of version or later lies.
type retiredFile struct {
	file    uint64
	version kv.Version
}

// retireFiles retires the files of the log before firstLog. The caller holds the lock.
func (x *index) retireFiles(firstLog uint64) {
	for file := range x.valueFiles {
		if x.firstLog <= file && file < firstLog {
			x.retired = append(x.retired, retiredFile{file: file})
		}
	}
	x.firstLog = firstLog
}

// closeFiles closes the files that no reader at floor or later needs.
func (x *index) closeFiles(floor kv.Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kept := x.retired[:0]
	for _, r := range x.retired {
		if r.version == 0 || r.version > floor {
			kept = append(kept, r)
			continue
		}
		// Nothing was written to it, and what was read was checked.
		_ = x.valueFiles[r.file].release()
		delete(x.valueFiles, r.file)
	}
	x.retired = kept
}

// closeAllFiles is called when nothing is read any more.
func (x *index) closeAllFiles() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	for _, f := range x.valueFiles {
		err = errors.Join(err, f.release())
	}
	clear(x.valueFiles)
	x.retired = nil
	err = errors.Join(err, x.base.release())
	x.base = newTableSet()
	x.base.closed = true
	return err
}

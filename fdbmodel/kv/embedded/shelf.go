package embedded

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// shelf is a checkpoint, or a file of the log, that values are read from. It stays
// open while a row or a reader needs it, also when its file has been removed.
type shelf struct {
	dir  directory
	file uint64
	// table is that of a checkpoint, log that of a file of the log.
	table *sstable.Reader
	log   vfs.File
	// users are the readers, and one more for the index.
	users atomic.Int64
}

func openShelf(d directory, file uint64) (*shelf, error) {
	f, err := d.fs.Open(d.file(rowsName(file)), vfs.RandomReadsOption)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	table, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	s := &shelf{dir: d, file: file, table: table}
	s.users.Store(1)
	return s, nil
}

// leave closes the file after its last user.
func (s *shelf) leave() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	if s.log != nil {
		return s.log.Close()
	}
	return s.table.Close()
}

// read appends the value of a key of a checkpoint to to.
func (s *shelf) read(key, to []byte) (value []byte, err error) {
	it, err := s.table.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, s.damaged(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	entry := it.SeekGE(key, 0)
	if entry == nil || !bytes.Equal(entry.K.UserKey, key) {
		return nil, s.damaged(errors.Join(errors.New("a key is missing"), it.Error()))
	}
	found, _, err := entry.Value(nil)
	if err != nil {
		return nil, s.damaged(err)
	}
	return append(to, found...), nil
}

func (s *shelf) damaged(err error) error { return s.dir.corrupt(rowsName(s.file), "%v", err) }

// shelvedValue is where a value lies, nowhere if shelf is nil. It is read once.
type shelvedValue struct {
	shelf *shelf
	place int64
	size  int
	sum   uint32
}

// read returns the value, which is that of key, in memory of its own or that of to.
func (v shelvedValue) read(key, to []byte) (value []byte, err error) {
	to = slices.Grow(to[:0], v.size)
	if v.shelf.log != nil {
		value, err = v.shelf.readLog(to[:v.size], v.place, v.sum)
	} else {
		value, err = v.shelf.read(key, to)
	}
	return value, errors.Join(err, v.shelf.leave())
}

// visitShelf returns where a shelved value lies, for read. The caller holds the
// index's lock.
func (x *index) visitShelf(e revision) (v shelvedValue, err error) {
	s := x.shelves[e.file()]
	if s == nil {
		return v, kv.ErrClosed
	}
	s.users.Add(1)
	v = shelvedValue{shelf: s, size: e.size()}
	if e.logged() {
		v.place, v.sum = e.place()
	}
	return v, nil
}

// unshelve brings the newest value of a key back into memory. Only the
// sequencer may call it.
func (x *index) unshelve(key []byte) error {
	r := x.tree.getNear(key)
	if r == 0 || x.at(r).absent() || !x.at(r).shelved() {
		return nil
	}
	s, err := x.visitShelf(x.at(r))
	if err != nil {
		return err
	}
	value, err := s.read(key, nil)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.countLarge(x.at(r), -1)
	x.arena.resize(r, revisionHeader+len(key)+len(value))
	e := x.at(r)
	e.unflag(flagShelved | flagLogged)
	copy(e.value(), value)
	x.countLarge(e, 1)
	return nil
}

// largeRow is a row of a checkpoint whose value can be shelved.
type largeRow struct {
	key      []byte
	revision ref
	// version tells the revision from another that its block was reused for.
	version kv.Version
}

// shelveRows leaves large values to a checkpoint that is installed. Files that
// they lay in before, which are those of the log before firstLog as well, are closed
// once nothing can read there.
func (s *Store) shelveRows(c rowsFile, large []largeRow, firstLog uint64) error {
	var fresh *shelf
	if len(large) > 0 {
		var err error
		if fresh, err = openShelf(s.disk.journal.dir, c.File); err != nil {
			return err
		}
	}
	x := &s.index
	for first := true; first || len(large) > 0; first = false {
		s.commitLock.Lock()
		x.mu.Lock()
		if first {
			x.retireShelves(firstLog)
			if x.newestShelf = c.File; fresh != nil {
				x.shelves[c.File] = fresh
			}
		}
		n := min(len(large), lockedRows)
		for _, l := range large[:n] {
			x.shelveRow(l, c.File)
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
	return nil
}

// shelveRow leaves a row's value to a file, unless its revision is gone. The
// caller holds the locks of commits and of the index.
func (x *index) shelveRow(l largeRow, file uint64) {
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
	if e := x.at(r); !e.shelved() || e.logged() {
		x.arena.resize(r, revisionHeader+e.keySize()+shelvedSize)
	}
	x.at(r).shelve(file)
	if counts {
		x.countLarge(x.at(r), 1)
	}
}

// retiredShelf is a file in which no row of version or later lies.
type retiredShelf struct {
	file    uint64
	version kv.Version
}

// retireShelves retires the newest checkpoint, and the files of the log before
// firstLog. The caller holds the lock.
func (x *index) retireShelves(firstLog uint64) {
	for file, s := range x.shelves {
		old := file == x.newestShelf || s.log != nil && x.firstLog <= file && file < firstLog
		if old {
			x.retired = append(x.retired, retiredShelf{file: file})
		}
	}
	x.firstLog = firstLog
}

// closeShelves closes the files that no reader at floor or later needs.
func (x *index) closeShelves(floor kv.Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kept := x.retired[:0]
	for _, r := range x.retired {
		if r.version == 0 || r.version > floor {
			kept = append(kept, r)
			continue
		}
		// Nothing was written to it, and what was read was checked.
		_ = x.shelves[r.file].leave()
		delete(x.shelves, r.file)
	}
	x.retired = kept
}

// closeAllShelves is called when nothing is read any more.
func (x *index) closeAllShelves() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	for _, s := range x.shelves {
		err = errors.Join(err, s.leave())
	}
	clear(x.shelves)
	x.retired = nil
	return err
}

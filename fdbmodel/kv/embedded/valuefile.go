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

// valueFile is a checkpoint's table, or a file of the log, that values are read from.
// It stays open while a row or a reader needs it, also when the file has been removed.
type valueFile struct {
	dir  directory
	file uint64
	// table is that of a checkpoint, log that of a file of the log.
	table *sstable.Reader
	log   vfs.File
	// users are the readers, and one more for the index.
	users atomic.Int64
}

func openTable(d directory, file uint64) (*valueFile, error) {
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
	v := &valueFile{dir: d, file: file, table: table}
	v.users.Store(1)
	return v, nil
}

// leave closes the file after its last user.
func (f *valueFile) release() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	if f.log != nil {
		return f.log.Close()
	}
	return f.table.Close()
}

// read appends the value of a key of a checkpoint to to.
func (f *valueFile) read(key, to []byte) (value []byte, err error) {
	it, err := f.table.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, f.damaged(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	entry := it.SeekGE(key, 0)
	if entry == nil || !bytes.Equal(entry.K.UserKey, key) {
		return nil, f.damaged(errors.Join(errors.New("a key is missing"), it.Error()))
	}
	found, _, err := entry.Value(nil)
	if err != nil {
		return nil, f.damaged(err)
	}
	return append(to, found...), nil
}

func (f *valueFile) damaged(err error) error { return f.dir.corrupt(rowsName(f.file), "%v", err) }

// fileValue is where a value lies, nowhere if file is nil. It is read once.
type fileValue struct {
	file  *valueFile
	place int64
	size  int
	sum   uint32
}

// read returns the value, which is that of key, in memory of its own or that of to.
func (v fileValue) read(key, to []byte) (value []byte, err error) {
	to = slices.Grow(to[:0], v.size)
	if v.file.log != nil {
		value, err = v.file.readLog(to[:v.size], v.place, v.sum)
	} else {
		value, err = v.file.read(key, to)
	}
	return value, errors.Join(err, v.file.release())
}

// locate returns where a spilled value lies, for read. The caller holds the
// index's lock.
func (x *index) locate(e revision) (v fileValue, err error) {
	f := x.valueFiles[e.file()]
	if f == nil {
		return v, kv.ErrClosed
	}
	f.users.Add(1)
	v = fileValue{file: f, size: e.size()}
	if e.logged() {
		v.place, v.sum = e.place()
	}
	return v, nil
}

// unspill brings the newest value of a key back into memory. Only the
// sequencer may call it.
func (x *index) unspill(key []byte) error {
	r := x.tree.getNear(key)
	if r == 0 || x.at(r).absent() || !x.at(r).spilled() {
		return nil
	}
	s, err := x.locate(x.at(r))
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
	e.unflag(flagSpilled | flagLogged)
	copy(e.value(), value)
	x.countLarge(e, 1)
	return nil
}

// largeRow is a row of a checkpoint whose value can be spilled.
type largeRow struct {
	key      []byte
	revision ref
	// version tells the revision from another that its block was reused for.
	version kv.Version
}

// spillToCheckpoint leaves large values to a checkpoint that is installed. Files that
// they lay in before, which are those of the log before firstLog as well, are closed
// once nothing can read there.
func (s *Store) spillToCheckpoint(c rowsFile, large []largeRow, firstLog uint64) error {
	var fresh *valueFile
	if len(large) > 0 {
		var err error
		if fresh, err = openTable(s.disk.journal.dir, c.File); err != nil {
			return err
		}
	}
	x := &s.index
	for first := true; first || len(large) > 0; first = false {
		s.commitLock.Lock()
		x.mu.Lock()
		if first {
			x.retireFiles(firstLog)
			if x.newestTable = c.File; fresh != nil {
				x.valueFiles[c.File] = fresh
			}
		}
		n := min(len(large), lockedRows)
		for _, l := range large[:n] {
			x.spillRowToCheckpoint(l, c.File)
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

// spillRowToCheckpoint leaves a row's value to a file, unless its revision is gone. The
// caller holds the locks of commits and of the index.
func (x *index) spillRowToCheckpoint(l largeRow, file uint64) {
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
		x.arena.resize(r, revisionHeader+e.keySize()+spilledSize)
	}
	x.at(r).spill(file)
	if counts {
		x.countLarge(x.at(r), 1)
	}
}

// retiredFile is a file in which no row of version or later lies.
type retiredFile struct {
	file    uint64
	version kv.Version
}

// retireFiles retires the newest checkpoint, and the files of the log before
// firstLog. The caller holds the lock.
func (x *index) retireFiles(firstLog uint64) {
	for file, f := range x.valueFiles {
		old := file == x.newestTable || f.log != nil && x.firstLog <= file && file < firstLog
		if old {
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
	return err
}

package embedded

import (
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// recordBlock is the size of the blocks that the log's files consist of, and
	// recordHead that of what begins each block, and each record.
	recordBlock = 32 << 10
	recordHead  = 7
)

// spillFraction is the part of Options.CheckpointBytes that large values may take in
// memory once the log has them.
const spillFraction = 128

// loggedValue is a large value of a batch.
type loggedValue struct {
	revision ref
	// version tells the revision from another that its block was reused for.
	version kv.Version
	// at is where the value begins in the batch's body.
	at, size int
}

// spilledValue is a large value that the log has, durably.
type spilledValue struct {
	loggedValue
	file  uint64
	place int64
}

// spill is the large values that lie in memory although the log has them, the
// oldest first. Some of them may be gone.
type spill struct {
	mu     sync.Mutex
	values queue[spilledValue]
	bytes  atomic.Int64
	// most is how many bytes of them may stay.
	most int64
}

// add takes the large values of batches that are durable.
func (s *spill) add(batches ...*commitBatch) {
	for _, b := range batches {
		if len(b.large) == 0 {
			continue
		}
		s.mu.Lock()
		for _, v := range b.large {
			s.values.push(spilledValue{loggedValue: v, file: b.file, place: recordPlace(b.place, headerSize+v.at)})
			s.bytes.Add(int64(v.size))
		}
		s.mu.Unlock()
	}
}

// next returns a value that is too much to stay.
func (s *spill) next() (v spilledValue, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes.Load() <= s.most || s.values.empty() {
		return v, false
	}
	v = s.values.pop()
	s.bytes.Add(-int64(v.size))
	return v, true
}

// spillToLog leaves large values to the log, the oldest first, until few enough
// lie in memory. The caller holds the lock of commits.
func (s *Store) spillToLog() {
	if s.spill.bytes.Load() <= s.spill.most {
		return
	}
	x := &s.index
	for v, ok := s.spill.next(); ok; v, ok = s.spill.next() {
		if v.file < x.firstLog || !x.has(v.loggedValue) {
			continue
		}
		if x.valueFiles[v.file] == nil {
			opened, err := openLog(s.disk.journal.dir, v.file)
			if err != nil {
				continue // it stays in memory until a checkpoint has it
			}
			x.mu.Lock()
			x.valueFiles[v.file] = opened
			x.mu.Unlock()
		}
		sum := crc32.Checksum(x.at(v.revision).value(), castagnoli)
		x.mu.Lock()
		x.spillRowToLog(v, sum)
		x.mu.Unlock()
	}
}

// has reports whether a value still lies in memory. Only the sequencer may call it.
func (x *index) has(v loggedValue) bool {
	c := &x.arena.chunks[v.revision>>refOffsetBits]
	if c.data == nil || c.class != 0 {
		return false
	}
	e := revision(c.data)
	return e.born() == v.version && !e.spilled()
}

// spillRowToLog leaves a row's value to the log. The caller holds the lock.
func (x *index) spillRowToLog(v spilledValue, sum uint32) {
	e := x.at(v.revision)
	counts := !e.replaced() && !e.absent()
	if counts {
		x.countLarge(e, -1)
	}
	x.arena.resize(v.revision, revisionHeader+e.keySize()+loggedSize)
	e = x.at(v.revision)
	e.log(v.file, v.place, sum)
	if counts {
		x.countLarge(e, 1)
	}
}

// recordPlace returns where in a file of the log byte i of the record lies that
// begins at record.
func recordPlace(record int64, i int) int64 {
	n := int64(i)
	if first := recordBlock - record%recordBlock - recordHead; n >= first {
		n -= first
		const room = recordBlock - recordHead
		return (record/recordBlock+1+n/room)*recordBlock + recordHead + n%room
	}
	return record + recordHead + n
}

// openLog opens a file of the log to read values from it.
func openLog(d directory, file uint64) (*valueFile, error) {
	f, err := d.fs.Open(d.file(segmentName(file)), vfs.RandomReadsOption)
	if err != nil {
		return nil, err
	}
	v := &valueFile{dir: d, file: file, log: f}
	v.users.Store(1)
	return v, nil
}

// readLog fills value from a place. Its sum is known.
func (f *valueFile) readLog(value []byte, place int64, sum uint32) ([]byte, error) {
	at := place
	for rest := value; len(rest) > 0; {
		part := rest[:min(int64(len(rest)), recordBlock-at%recordBlock)]
		if n, err := f.log.ReadAt(part, at); n < len(part) {
			return nil, f.dir.damaged(segmentName(f.file), fmt.Errorf("the value at %d can't be read: %w", place, err))
		}
		rest, at = rest[len(part):], at+int64(len(part))+recordHead
	}
	if crc32.Checksum(value, castagnoli) != sum {
		return nil, f.dir.corrupt(segmentName(f.file), "the value at %d is damaged", place)
	}
	return value, nil
}

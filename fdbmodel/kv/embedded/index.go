package embedded

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// lockedRows is how many rows are visited or changed under one hold of the
// index's lock, so that readers and the sequencer wait for each other briefly.
const lockedRows = 256

// revision is one value of a row: a block of the arena that stays where it is.
//
//	 0  8 bytes  the version from which on it is the row's value
//	 8  8 bytes  the version from which on the row is absent, zero for none
//	16  6 bytes  the ref of the revision before, zero for none
//	22  2 bytes  the length of the key
//	24  4 bytes  the length of the value, and the flags
//	28           the key, then the value unless it is spilled, or, if the log
//	             has it, the number of the file there, the offset in it and
//	             the value's checksum, in 20 bytes
//
// Numbers are little-endian. The slice reaches to the end of the block's chunk.
type revision []byte

const (
	revisionHeader = 28
	// flagSpilled says that the value lies in a table, or with flagLogged in the log,
	// flagReplaced that the row has a newer revision, flagBased that a table may have
	// the row, flagOpen that only tables know what was before the revision.
	flagSpilled  = 1 << 31
	flagReplaced = 1 << 30
	flagLogged   = 1 << 29
	flagBased    = 1 << 28
	flagOpen     = 1 << 27
	lengthMask   = flagOpen - 1
	// loggedSize is what is left of a value that lies in the log.
	loggedSize = 8 + 8 + 4
)

// newRevision makes a revision. Values of at least alone bytes, if that is not
// zero, share no chunk, so that they can be spilled.
func newRevision(a *arena, key, value []byte, alone int) ref {
	size := revisionHeader + len(key) + len(value)
	var r ref
	if alone > 0 && len(value) >= alone {
		r = a.allocAlone(size)
	} else {
		r = a.alloc(size)
	}
	e := revision(a.at(r))
	e.begin(key, len(value))
	copy(e[revisionHeader+len(key):], value)
	return r
}

// newSpilled makes a revision of a loaded row whose value lies in a table.
func newSpilled(a *arena, key []byte, size int) ref {
	r := a.allocAlone(revisionHeader + len(key))
	e := revision(a.at(r))
	e.begin(key, size)
	e.spill()
	return r
}

func (e revision) begin(key []byte, size int) {
	clear(e[:16])
	binary.LittleEndian.PutUint64(e[16:], uint64(len(key))<<refBits)
	binary.LittleEndian.PutUint32(e[24:], uint32(size))
	copy(e[revisionHeader:], key)
}

func (e revision) born() kv.Version { return kv.Version(binary.LittleEndian.Uint64(e)) }
func (e revision) died() kv.Version { return kv.Version(binary.LittleEndian.Uint64(e[8:])) }
func (e revision) older() ref       { return ref(binary.LittleEndian.Uint64(e[16:]) & (1<<refBits - 1)) }
func (e revision) keySize() int     { return int(binary.LittleEndian.Uint16(e[22:])) }
func (e revision) flags() uint32    { return binary.LittleEndian.Uint32(e[24:]) }

// size is that of the value, wherever it lies.
func (e revision) size() int      { return int(e.flags() & lengthMask) }
func (e revision) spilled() bool  { return e.flags()&flagSpilled != 0 }
func (e revision) logged() bool   { return e.flags()&flagLogged != 0 }
func (e revision) replaced() bool { return e.flags()&flagReplaced != 0 }
func (e revision) based() bool    { return e.flags()&flagBased != 0 }
func (e revision) open() bool     { return e.flags()&flagOpen != 0 }

// absent reports whether the row is absent once this revision has ended.
func (e revision) absent() bool { return e.died() != 0 }

// version is that of the last change.
func (e revision) version() kv.Version { return max(e.born(), e.died()) }

// key and value are valid while the index is locked.
func (e revision) key() []byte {
	end := revisionHeader + e.keySize()
	return e[revisionHeader:end:end]
}

func (e revision) value() []byte {
	begin := revisionHeader + e.keySize()
	end := begin + e.size()
	return e[begin:end:end]
}

// file is the file of the log where the value lies if it is logged.
func (e revision) file() uint64 {
	return binary.LittleEndian.Uint64(e[revisionHeader+e.keySize():])
}

// place is where in its file the value begins if it is logged, and its checksum.
func (e revision) place() (offset int64, sum uint32) {
	at := e[revisionHeader+e.keySize()+8:]
	return int64(binary.LittleEndian.Uint64(at)), binary.LittleEndian.Uint32(at[8:])
}

func (e revision) setBorn(v kv.Version) { binary.LittleEndian.PutUint64(e, uint64(v)) }
func (e revision) setDied(v kv.Version) { binary.LittleEndian.PutUint64(e[8:], uint64(v)) }

func (e revision) setOlder(r ref) {
	binary.LittleEndian.PutUint64(e[16:], uint64(e.keySize())<<refBits|uint64(r))
}

func (e revision) flag(f uint32)   { binary.LittleEndian.PutUint32(e[24:], e.flags()|f) }
func (e revision) unflag(f uint32) { binary.LittleEndian.PutUint32(e[24:], e.flags()&^f) }

func (e revision) spill() {
	e.unflag(flagLogged)
	e.flag(flagSpilled)
}

func (e revision) log(file uint64, offset int64, sum uint32) {
	e.flag(flagSpilled | flagLogged)
	at := e[revisionHeader+e.keySize():]
	binary.LittleEndian.PutUint64(at, file)
	binary.LittleEndian.PutUint64(at[8:], uint64(offset))
	binary.LittleEndian.PutUint32(at[16:], sum)
}

// garbage is what no reader can see once all are at version or later:
// everything older than the revision, and, if the row ended with it then and was
// not written again, the revision and the row.
type garbage struct {
	version  kv.Version
	revision ref
	ended    bool
}

// index is the rows in key order, each with the revisions that may still be
// read. Only the sequencer changes it, and takes the lock to do so; all
// else takes the lock to read, and keeps nothing of what it points into.
//
// The tree has the newest revision of each row, which is the head of a list
// that goes back in time. Three things hold:
//
//   - Versions never rise along a list. A commit that writes a row twice leaves two
//     revisions of one version, the later one first.
//   - Each revision that replaced another, and each that ended with its row, has
//     a piece of garbage, in the order of versions. A row that ended in a cold range stays
//     in the tree after that, until the tables don't show it any more.
//   - A revision is freed when the garbage of the one that replaced it is swept,
//     or that of its end if nothing replaced it. Its own garbage comes before
//     both, so garbage never refers to a block that is free.
//
// The garbage collector finds no pointer per row: it sees the nodes of the tree
// and the chunks of the arena.
type index struct {
	mu    sync.RWMutex
	arena arena
	tree  tree

	garbage queue[garbage]

	// touched collects the keys that a commit wrote, if watched. They are valid
	// until the next commit.
	touched [][]byte
	watched bool

	liveKeys, liveBytes int64

	// base is the tables that checkpoints wrote. deleted are the rows that are gone since
	// the last one.
	base    *tableSet
	deleted deletions
	cold    cold
	// most is how much memory rows may take, over says that they take more by an eighth, and
	// coldRead is called after tables were read from a key on. They are not used by a store in
	// memory.
	most     int64
	over     atomic.Bool
	coldRead func(key []byte)
	// hand is the key where the search for rows that memory can do without goes on.
	hand []byte

	// largeValue is the size from which on values are spilled. valueFiles are the files of
	// the log that values lie in, by their numbers, and retired those of them that only
	// older revisions need. Files of the log before firstLog are gone. tableBytes is what
	// lies in tables of the rows, loggedBytes what lies only in the log.
	largeValue              int
	valueFiles              map[uint64]*valueFile
	firstLog                uint64
	retired                 []retiredFile
	tableBytes, loggedBytes int64
	// largeBytes is the size of values that the next checkpoint spills.
	largeBytes atomic.Int64
}

func (x *index) init(largeValue, heap int) {
	x.arena.init(heap)
	x.tree.init(&x.arena)
	x.largeValue = largeValue
	x.valueFiles = map[uint64]*valueFile{}
	x.base = newTableSet()
}

func (x *index) at(r ref) revision { return x.arena.at(r) }

// allBytes returns the size of the rows, with those that tables alone have. The caller holds the lock.
func (x *index) allBytes() int64 { return x.liveBytes + x.cold.bytes }

// bytes returns the size of the rows.
func (x *index) bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.liveBytes
}

// rows returns how many rows the tree has.
func (x *index) rows() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return int64(x.tree.size)
}

// visible returns the revision of a row that a reader at v sees, given its
// newest one. It returns zero where the row is absent or, if it is below, only
// tables know.
func (x *index) visible(r ref, v kv.Version) (seen ref, below bool) {
	for r != 0 {
		e := x.at(r)
		if e.born() > v {
			r, below = e.older(), e.open()
			continue
		}
		if e.absent() && e.died() <= v {
			return 0, false
		}
		return r, false
	}
	return 0, below
}

// set writes a value, and returns its revision. The caller holds the lock.
func (x *index) set(key, value []byte, v kv.Version) ref {
	r := newRevision(&x.arena, key, value, x.largeValue)
	e := x.at(r)
	e.setBorn(v)
	x.gain(e)
	if replaced := x.tree.put(key, r, v); replaced != 0 {
		old := x.at(replaced)
		if !old.absent() {
			x.lose(old)
		}
		e.flag(old.flags() & (flagBased | flagOpen))
		old.flag(flagReplaced)
		e.setOlder(replaced)
		x.garbage.push(garbage{version: v, revision: r})
	} else if x.isCold(key) {
		e.flag(flagBased | flagOpen)
	}
	if x.watched {
		x.touched = append(x.touched, e.key())
	}
	return r
}

// clear deletes a row and reports whether it was there, or may have been. The caller
// holds the lock.
func (x *index) clear(key []byte, v kv.Version) bool {
	leaf := x.tree.near(key)
	r := x.tree.find(leaf, key)
	if r == 0 {
		return x.bury(key, v)
	}
	if !x.remove(r, v) {
		return false
	}
	leaf.change(v)
	return true
}

// clearRange deletes the rows of a range and returns how many of them memory knew, and
// whether tables may have others. The caller holds the lock.
func (x *index) clearRange(begin, end []byte, v kv.Version) (removed int, below bool) {
	for s := x.tree.seekNear(begin); !s.end(); s.next() {
		r := s.ref()
		if bytes.Compare(x.at(r).key(), end) >= 0 {
			break
		}
		if x.remove(r, v) {
			s.leaf.change(v)
			removed++
		}
	}
	return removed, x.clearCold(begin, end, v)
}

// remove makes a row absent from v on, and reports whether it was present.
func (x *index) remove(r ref, v kv.Version) bool {
	e := x.at(r)
	if e.absent() {
		return false
	}
	x.lose(e)
	if e.based() {
		x.deleted.add(e.key(), v, e.open())
	}
	e.setDied(v)
	x.garbage.push(garbage{version: v, revision: r, ended: true})
	if x.watched {
		x.touched = append(x.touched, e.key())
	}
	return true
}

// gain counts a row more.
func (x *index) gain(e revision) {
	x.liveKeys++
	x.liveBytes += int64(e.keySize() + e.size())
	x.countLarge(e, 1)
}

// lose counts a row less.
func (x *index) lose(e revision) {
	x.liveKeys--
	x.liveBytes -= int64(e.keySize() + e.size())
	x.countLarge(e, -1)
}

// countLarge counts a row's value, if it is large, once more or less.
func (x *index) countLarge(e revision, times int64) {
	size := int64(e.size())
	switch {
	case e.logged():
		x.loggedBytes += times * size
		x.largeBytes.Add(times * size)
	case e.spilled():
		x.tableBytes += times * size
	case size >= int64(x.largeValue):
		x.largeBytes.Add(times * size)
	}
}

// changedKey returns the version of a row's last change if that was after since, or zero, also if nothing is
// known of the row. Only the sequencer may call it.
func (x *index) changedKey(key []byte, since kv.Version) kv.Version {
	leaf := x.tree.near(key)
	if leaf.changed <= since {
		return 0
	}
	if r := x.tree.find(leaf, key); r != 0 {
		if v := x.at(r).version(); v > since {
			return v
		}
	}
	return 0
}

// changed returns the version of a change after since to a row of a range, or
// zero. Only the sequencer may call it.
func (x *index) changed(begin, end []byte, since kv.Version) kv.Version {
	leaf := x.tree.near(begin)
	if leaf.changed <= since && x.tree.nearEnds(end) {
		return 0
	}
	for s := x.tree.spot(leaf, begin); !s.end(); {
		e := x.at(s.ref())
		if bytes.Compare(e.key(), end) >= 0 {
			return 0
		}
		if v := e.version(); v > since {
			return v
		}
		if s.leaf.changed <= since {
			s.leave(false)
		} else {
			s.next()
		}
	}
	return 0
}

// kept returns how many rows and revisions are garbage.
func (x *index) kept() int { return x.garbage.len() }

// newer returns how much of the garbage readers at floor may see.
func (x *index) newer(floor kv.Version) int {
	all := x.garbage.items[x.garbage.head:]
	return len(all) - sort.Search(len(all), func(i int) bool { return all[i].version > floor })
}

// collect removes what readers at floor and later can't see.
func (x *index) collect(floor kv.Version) {
	for !x.garbage.empty() && x.garbage.front().version <= floor {
		x.mu.Lock()
		for i := 0; i < lockedRows && !x.garbage.empty() && x.garbage.front().version <= floor; i++ {
			x.sweep(x.garbage.pop())
		}
		x.mu.Unlock()
	}
}

// sweep frees what was garbage.
func (x *index) sweep(g garbage) {
	e := x.at(g.revision)
	for old := e.older(); old != 0; {
		next := x.at(old).older()
		x.arena.free(old)
		old = next
	}
	e.setOlder(0)
	if g.ended && !e.replaced() && !x.linger(g.revision) {
		x.tree.delete(e.key())
		x.arena.free(g.revision)
	}
}

// queue is first in, first out.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }
func (q *queue[T]) len() int    { return len(q.items) - q.head }
func (q *queue[T]) empty() bool { return q.head == len(q.items) }
func (q *queue[T]) front() *T   { return &q.items[q.head] }
func (q *queue[T]) back() *T    { return &q.items[len(q.items)-1] }

func (q *queue[T]) pop() T {
	var zero T
	item := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head >= 64 && q.head*2 >= len(q.items) {
		rest := copy(q.items, q.items[q.head:])
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	return item
}

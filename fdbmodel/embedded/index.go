package embedded

import (
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// inlineValue is the longest value that shares an allocation with its key. A
// longer one would be pinned by the key after it was overwritten.
const inlineValue = 256

// lockedRows is how many rows are visited or changed under one hold of the
// index's lock, so that readers and the sequencer wait for each other briefly.
const lockedRows = 256

// revision is one value of a row, or its absence, from a version on.
type revision struct {
	// value is the value, or where it lies if it is shelved.
	value string
	state uint64 // the version, times four, and the flags
	older *revision
}

const (
	stateAbsent  = 1 // the row is not there
	stateShelved = 2 // the value lies in a checkpoint
)

func present(v kv.Version) uint64 { return uint64(v) << 2 }
func absent(v kv.Version) uint64  { return uint64(v)<<2 | stateAbsent }

func (r *revision) version() kv.Version { return kv.Version(r.state >> 2) }
func (r *revision) absent() bool        { return r.state&stateAbsent != 0 }
func (r *revision) shelved() bool       { return r.state&stateShelved != 0 }

// at returns the revision that a reader at v sees, nil where the row is absent.
func (r *revision) at(v kv.Version) *revision {
	for ; r != nil; r = r.older {
		if r.version() <= v {
			if r.absent() {
				return nil
			}
			return r
		}
	}
	return nil
}

// row is an entry of the tree. It is in there as long as someone may see one
// of its revisions.
type row struct {
	key  string
	head *revision
}

// deadAt tells whether nobody at floor or later can see the row.
func (r row) deadAt(floor kv.Version) bool { return r.head.absent() && r.head.version() <= floor }

func byKey(a, b row) bool { return a.key < b.key }

// garbage is what nobody can see once all readers are at version or later:
// what is older than newest, or the absent rows from first to last.
type garbage struct {
	version     kv.Version
	newest      *revision
	first, last string
	// before is how many rows and revisions all garbage before had.
	before int64
}

// index is the rows in key order. Only the sequencer changes it, and takes the
// lock to do so; everyone else takes the lock to read.
type index struct {
	mu   sync.RWMutex
	tree *btree.BTreeG[row]

	hint    btree.PathHint
	scratch []byte
	garbage queue[garbage]
	// discarded is how many rows and revisions ever became garbage.
	discarded int64

	// changed collects the keys that were written, where it is not nil.
	changed []string
	watched bool

	liveKeys, liveBytes int64

	// largeValue is the size from which on values are shelved. shelves are the
	// checkpoints that values lie in, by file, retired those of
	// them that only older revisions lie in, and shelvedBytes what lies there of
	// the rows.
	largeValue   int
	shelves      map[uint64]*shelf
	newestShelf  uint64
	retired      []retiredShelf
	shelvedBytes int64
	// largeBytes is the size of values that the next checkpoint shelves.
	largeBytes atomic.Int64
}

func (x *index) init() {
	x.tree = btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
	x.shelves = map[uint64]*shelf{}
}

// view makes a string of b without a copy. It must not outlive the call that
// it is made for.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytes returns the size of the rows.
func (x *index) bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.liveBytes
}

// newRow copies key and value into memory of their own, by way of scratch,
// which it returns.
func newRow(scratch, key, value []byte) (row, []byte) {
	if len(value) > inlineValue {
		return row{key: string(key), head: &revision{value: string(value)}}, scratch
	}
	scratch = append(append(scratch[:0], key...), value...)
	both := string(scratch)
	return row{key: both[:len(key)], head: &revision{value: both[len(key):]}}, scratch
}

// set writes a value. The caller holds the lock.
func (x *index) set(key, value []byte, v kv.Version) {
	var entry row
	entry, x.scratch = newRow(x.scratch, key, value)
	x.put(entry, v)
}

// put writes a value that was made into a row. The caller holds the lock.
func (x *index) put(entry row, v kv.Version) {
	entry.head.state = present(v)
	previous, replaced := x.tree.SetHint(entry, &x.hint)
	x.liveKeys++
	x.liveBytes += int64(len(entry.key) + len(entry.head.value))
	x.countLarge(len(entry.head.value))
	if replaced {
		old := previous.head
		if !old.absent() {
			x.lose(entry.key, old)
		}
		if old.version() == v {
			old = old.older
		}
		entry.head.older = old
		x.discard(garbage{version: v, newest: entry.head}, 1)
	}
	if x.watched {
		x.changed = append(x.changed, entry.key)
	}
}

// clear deletes a row and tells whether it was there. The caller holds the
// lock.
func (x *index) clear(key []byte, v kv.Version) bool {
	entry, found := x.tree.GetHint(row{key: view(key)}, &x.hint)
	if !found || entry.head.absent() {
		return false
	}
	x.bury(entry, v)
	x.discard(garbage{version: v, first: entry.key, last: entry.key}, 1)
	return true
}

// clearRange deletes the rows of a range and returns how many there were. The
// caller holds the lock.
func (x *index) clearRange(begin, end []byte, v kv.Version) int {
	buried, dead := 0, garbage{version: v}
	limit := view(end)
	x.tree.AscendHint(row{key: view(begin)}, func(entry row) bool {
		if entry.key >= limit {
			return false
		}
		if !entry.head.absent() {
			x.bury(entry, v)
			if buried == 0 {
				dead.first = entry.key
			}
			dead.last = entry.key
			buried++
		}
		return true
	}, &x.hint)
	if buried > 0 {
		x.discard(dead, buried)
	}
	return buried
}

// bury makes a present row absent from v on.
func (x *index) bury(entry row, v kv.Version) {
	head := entry.head
	x.lose(entry.key, head)
	if head.version() != v {
		head.older = &revision{value: head.value, state: head.state, older: head.older}
	}
	head.value, head.state = "", absent(v)
	if x.watched {
		x.changed = append(x.changed, entry.key)
	}
}

// lose counts a row less.
func (x *index) lose(key string, r *revision) {
	size := int64(r.size())
	x.liveKeys--
	x.liveBytes -= int64(len(key)) + size
	switch {
	case r.shelved():
		x.shelvedBytes -= size
	case size >= int64(x.largeValue):
		x.largeBytes.Add(-size)
	}
}

// newest returns the row's last value, published or not. Only the sequencer
// may call it, after unshelve.
func (x *index) newest(key []byte) (string, bool) {
	entry, found := x.tree.GetHint(row{key: view(key)}, &x.hint)
	if !found || entry.head.absent() {
		return "", false
	}
	return entry.head.value, true
}

// discard remembers garbage of so many rows or revisions.
func (x *index) discard(g garbage, n int) {
	g.before = x.discarded
	x.discarded += int64(n)
	x.garbage.push(g)
}

// kept returns how many rows and revisions are garbage.
func (x *index) kept() int {
	if x.garbage.empty() {
		return 0
	}
	return int(x.discarded - x.garbage.front().before)
}

// newer returns how much of the garbage readers at floor may see.
func (x *index) newer(floor kv.Version) int {
	all := x.garbage.items[x.garbage.head:]
	i := sort.Search(len(all), func(i int) bool { return all[i].version > floor })
	if i == len(all) {
		return 0
	}
	return int(x.discarded - all[i].before)
}

// collect removes what readers at floor and later can't see.
func (x *index) collect(floor kv.Version) {
	for !x.garbage.empty() && x.garbage.front().version <= floor {
		x.mu.Lock()
		for i := 0; i < lockedRows && !x.garbage.empty() && x.garbage.front().version <= floor; i++ {
			x.sweep(x.garbage.pop(), floor)
		}
		x.mu.Unlock()
	}
}

func (x *index) sweep(g garbage, floor kv.Version) {
	if g.newest != nil {
		// A later deletion may have pushed the revision down its own chain.
		r := g.newest
		for r != nil && r.version() > g.version {
			r = r.older
		}
		if r != nil && r.version() == g.version {
			r.older = nil
		}
		return
	}
	if g.first == g.last {
		if entry, found := x.tree.GetHint(row{key: g.first}, &x.hint); found && entry.deadAt(floor) {
			x.tree.DeleteHint(entry, &x.hint)
		}
		return
	}
	x.sweepRange(g, floor)
}

// fewRows is how many rows are deleted one by one rather than in a walk that
// deletes, which costs more to begin.
const fewRows = 8

func (x *index) sweepRange(g garbage, floor kv.Version) {
	var found [fewRows]row
	n, passed := 0, 0
	x.tree.AscendHint(row{key: g.first}, func(entry row) bool {
		if entry.key > g.last {
			return false
		}
		if passed++; passed > fewRows {
			return false
		}
		if entry.deadAt(floor) {
			found[n] = entry
			n++
		}
		return true
	}, &x.hint)
	if passed <= fewRows {
		for _, entry := range found[:n] {
			x.tree.DeleteHint(entry, &x.hint)
		}
		return
	}
	x.tree.DeleteAscend(row{key: g.first}, func(entry row) btree.Action {
		switch {
		case entry.key > g.last:
			return btree.Stop
		case entry.deadAt(floor):
			return btree.Delete
		}
		return btree.Keep
	})
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

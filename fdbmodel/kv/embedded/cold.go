package embedded

import (
	"bytes"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// coldMost is how many cold ranges there are at most, besides those that join others.
const coldMost = 16 << 10

// cold is the ranges of keys whose rows need not be in memory: what memory does not know
// there, the tables have. Everywhere else memory knows all rows. The sequencer's lock and
// that of the index guard it like the tree.
type cold struct {
	rangeSet
	// holes are the parts of the ranges that were cleared since the last checkpoint.
	holes holes
	// keys and bytes are the rows that only tables have. As long as it is not known whether a
	// row that was written or cleared was there before, it counts twice or still.
	keys, bytes int64
	// epoch counts the checkpoints that the tables have.
	epoch uint64
}

// count counts rows that only tables have.
func (c *cold) count(keys, size int64) {
	c.keys, c.bytes = max(c.keys+keys, 0), max(c.bytes+size, 0)
	if len(c.ranges) == 0 {
		c.keys, c.bytes = 0, 0
	}
}

// isCold reports whether the tables may have a row that memory does not know.
func (x *index) isCold(key []byte) bool { return len(x.cold.ranges) > 0 && x.cold.contains(key) }

// hole is a range in which nothing of the tables can be seen from a version on.
type hole struct {
	begin, end []byte
	version    kv.Version
}

// holesMost is how many holes there may be before a checkpoint is due.
const holesMost = 16 << 10

// holes are disjoint, in the order of keys. What was cleared twice has the first version.
type holes struct {
	all []hole
	// many says that a checkpoint is due.
	many atomic.Bool
}

// from returns the position of the first hole that ends behind key.
func (h *holes) from(key []byte) int {
	return sort.Search(len(h.all), func(i int) bool { return bytes.Compare(h.all[i].end, key) > 0 })
}

// contain reports whether a reader at v sees nothing of the tables at key.
func (h *holes) contain(key []byte, v kv.Version) bool {
	i := h.from(key)
	return i < len(h.all) && bytes.Compare(h.all[i].begin, key) <= 0 && h.all[i].version <= v
}

// overlapping returns the holes that share keys with a range.
func (h *holes) overlapping(begin, end []byte) []hole {
	i := h.from(begin)
	n := i
	for n < len(h.all) && bytes.Compare(h.all[n].begin, end) < 0 {
		n++
	}
	return h.all[i:n]
}

// add clears a range from v on, which is not less than the versions before.
func (h *holes) add(begin, end []byte, v kv.Version) {
	var fresh []hole
	at := h.from(begin)
	hit := h.overlapping(begin, end)
	for _, o := range hit {
		if bytes.Compare(begin, o.begin) < 0 {
			fresh = append(fresh, hole{begin: begin, end: o.begin, version: v})
		}
		fresh, begin = append(fresh, o), o.end
	}
	if bytes.Compare(begin, end) < 0 {
		fresh = append(fresh, hole{begin: begin, end: end, version: v})
	}
	h.all = slices.Replace(h.all, at, at+len(hit), fresh...)
	h.many.Store(len(h.all) > holesMost)
}

// through returns the holes up to a version.
func (h *holes) through(v kv.Version) []hole {
	return slices.DeleteFunc(slices.Clone(h.all), func(o hole) bool { return o.version > v })
}

// forget drops the holes up to a version, which the tables have.
func (h *holes) forget(v kv.Version) {
	h.all = slices.DeleteFunc(h.all, func(o hole) bool { return o.version <= v })
	h.many.Store(len(h.all) > holesMost)
}

// clearCold clears what only tables have of a range, and reports whether they may have
// something. The caller holds the lock.
func (x *index) clearCold(begin, end []byte, v kv.Version) bool {
	parts := x.cold.overlapping(begin, end)
	for _, r := range parts {
		from, to := maxKey(begin, r.Begin), minKey(end, r.End)
		x.cold.holes.add(bytes.Clone(from), bytes.Clone(to), v)
	}
	return len(parts) > 0
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func minKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

// bury makes a row absent from v on that memory does not know, and reports whether the
// tables may have it. The caller holds the lock.
func (x *index) bury(key []byte, v kv.Version) bool {
	if !x.isCold(key) || x.cold.holes.contain(key, v) {
		return false
	}
	r := newRevision(&x.arena, key, nil, 0)
	e := x.at(r)
	e.setBorn(v)
	e.setDied(v)
	e.flag(flagBased | flagOpen)
	x.tree.put(key, r, v)
	x.deleted.add(key, v, true)
	x.garbage.push(garbage{version: v, revision: r, ended: true})
	if x.watched {
		x.touched = append(x.touched, e.key())
	}
	return true
}

// linger leaves a deleted row in the tree, as the tables would show it otherwise, and reports
// whether it did. The checkpoint that deletes it there takes it away.
func (x *index) linger(r ref) bool {
	e := x.at(r)
	if !e.based() || !x.isCold(e.key()) {
		return false
	}
	if e.size() == 0 && !e.spilled() {
		return true
	}
	small := newRevision(&x.arena, e.key(), nil, 0)
	s := x.at(small)
	e = x.at(r)
	s.setBorn(e.died())
	s.setDied(e.died())
	s.flag(e.flags() & (flagBased | flagOpen))
	x.tree.put(s.key(), small, 0)
	x.arena.free(r)
	return true
}

// unlinger takes rows out of the tree that the tables don't show any more. The caller holds
// the locks of commits and of the index.
func (x *index) unlinger(key []byte, through kv.Version) {
	r := x.tree.getNear(key)
	if r == 0 {
		return
	}
	if e := x.at(r); e.absent() && e.died() <= through {
		x.tree.delete(e.key())
		x.arena.free(r)
	}
}

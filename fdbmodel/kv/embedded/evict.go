package embedded

import (
	"bytes"
	"sort"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// resident estimates the memory that rows take.
func (x *index) resident() int64 {
	return x.liveBytes - x.tableBytes - x.loggedBytes + int64(x.tree.size+x.garbage.len())*rowOverhead +
		x.deleted.size.Load()
}

// memory is resident for those who hold no lock.
func (s *Store) memory() int64 {
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	return s.index.resident()
}

// evictLeaves is how many leaves are looked at under one hold of the locks.
const evictLeaves = 8

// evict leaves rows to the tables until memory is within Options.rowMemory by an eighth, or until
// nothing more can go: rows that were read or written since the walk last came by stay for one
// round. The caller holds checkpointLock.
func (s *Store) evict() {
	most := s.options.rowMemory()
	if s.memory() <= most {
		return
	}
	x, evicted, enough := &s.index, 0, false
	for rounds := 0; rounds < 2 && !enough && s.Err() == nil; {
		s.commitLock.Lock()
		x.mu.Lock()
		for i := 0; i < evictLeaves && !enough; i++ {
			var n int
			n, x.hand = x.evictLeaf(x.hand, s.through)
			if evicted += n; x.hand == nil {
				rounds++
			}
			enough = x.resident() <= most-most/8
		}
		x.mu.Unlock()
		s.commitLock.Unlock()
	}
	if evicted > 0 {
		s.options.Logger.Info("rows left to the tables", "rows", evicted, "memory", s.memory())
	}
}

// evictLeaf leaves the rows of the leaf of a key to the tables, if they have all of them up to
// the version through. It returns how many, and where the next leaf begins, nil after the last.
// The caller holds the locks of commits and of the index.
func (x *index) evictLeaf(key []byte, through kv.Version) (evicted int, next []byte) {
	leaf := x.tree.near(key)
	low, high := x.tree.low, x.tree.high
	if high != 0 {
		next = bytes.Clone(x.tree.key(high))
	}
	if leaf.touched.Swap(false) || leaf.count == 0 || leaf.changed > through || !x.evictable(leaf) {
		return 0, next
	}
	begin := []byte{}
	if low != 0 {
		begin = x.joined(bytes.Clone(x.tree.key(low)), through)
	}
	// What comes behind the last row, as at the end of a queue, is not cold.
	end := kv.After(x.tree.key(leaf.entries[leaf.count-1].ref()))
	if !x.mayCool(begin, end) {
		return 0, next
	}
	x.cold.add(begin, end)
	cells := append([]cell(nil), leaf.entries[:leaf.count]...)
	for _, c := range cells {
		r := c.ref()
		e := x.at(r)
		x.lose(e)
		x.cold.count(1, int64(e.keySize()+e.size()))
		x.tree.delete(e.key())
		x.arena.free(r)
	}
	return len(cells), next
}

// evictable reports whether the tables have all that is known of the rows of a leaf.
func (x *index) evictable(leaf *node) bool {
	for _, c := range leaf.entries[:leaf.count] {
		if e := x.at(c.ref()); e.older() != 0 || e.absent() || !e.based() || e.open() || e.logged() {
			return false
		}
	}
	return true
}

// joined returns where a cold range can begin instead that is to begin at begin, where a leaf does: at
// the end of the one before, if memory has no row between them and the tables have none that is deleted
// there.
func (x *index) joined(begin []byte, through kv.Version) []byte {
	i := sort.Search(len(x.cold.ranges), func(i int) bool { return bytes.Compare(x.cold.ranges[i].End, begin) > 0 }) - 1
	if i < 0 {
		return begin
	}
	end := x.cold.ranges[i].End
	if s := x.tree.seek(end); !s.end() && bytes.Compare(x.at(s.ref()).key(), begin) < 0 {
		return begin
	}
	for leaf, last := x.tree.leaf(end), x.tree.leaf(begin); leaf != last; leaf = leaf.next {
		if leaf.changed > through {
			return begin
		}
	}
	return end
}

// mayCool reports whether a range may become cold: there are few, or it joins others.
func (x *index) mayCool(begin, end []byte) bool {
	if len(x.cold.ranges) < coldMost {
		return true
	}
	i := x.cold.from(begin)
	return i > 0 && bytes.Equal(x.cold.ranges[i-1].End, begin) ||
		i < len(x.cold.ranges) && bytes.Compare(x.cold.ranges[i].Begin, end) <= 0
}

package embedded

import (
	"bytes"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// nodeSize is how many entries a node has at most: a leaf then takes 512 bytes.
const nodeSize = 57

const (
	// nodeSmall is the number of entries below which a node is merged with a
	// neighbour, if the two then have nodeMerged at most.
	nodeSmall  = nodeSize / 4
	nodeMerged = nodeSize * 3 / 4
)

// node is a leaf, whose entries are revisions in the order of their keys, or an
// inner node, whose entries separate its children: child i has the keys from
// entry i-1 on and before entry i.
type node struct {
	count   int
	entries [nodeSize]cell
	// skip is how many bytes all keys have in common that belong to the node, as far as its bounds tell.
	skip int
	// children is nil in a leaf. There is one more than entries.
	children *[nodeSize + 1]*node
	// previous and next are the neighbours of a leaf.
	previous, next *node
	// changed is not less than the version of any change to the rows of a leaf.
	changed kv.Version
	// touched is set when a leaf is read or written, and reset when it is passed by who
	// looks for rows that memory can do without.
	touched atomic.Bool
	// gone says that the newest revisions of all rows of a leaf are absent.
	gone atomic.Bool
}

func (n *node) change(v kv.Version) {
	n.changed = max(n.changed, v)
	n.gone.Store(false)
	n.touch()
}

func (n *node) touch() {
	if !n.touched.Load() {
		n.touched.Store(true)
	}
}

// tree is a B+ tree of the newest revisions by key. Separators are blocks of
// its own, so that entries can come and go without touching them. One goroutine
// may change it, and use it by finger; others may read meanwhile only under the
// lock of the index.
type tree struct {
	arena *arena
	root  *node
	size  int
	// finger is the leaf that was last found for the writer, and the separators
	// around it, zero for none.
	finger    *node
	low, high ref
}

// cell is an entry as a node holds it: its ref, and above that the head of its key, which is the first two
// bytes behind those that the keys of the node have in common. Most steps of a search then touch the node
// alone, and no key.
type cell uint64

func (c cell) ref() ref { return ref(c & (1<<refBits - 1)) }

func (c cell) head() uint16 { return uint16(c >> refBits) }

func newCell(r ref, head uint16) cell { return cell(head)<<refBits | cell(r) }

// headOf returns the head of a key in a node that skips so many bytes. Heads are in the order of the keys.
func headOf(key []byte, skip int) uint16 {
	switch {
	case len(key) >= skip+2:
		return uint16(key[skip])<<8 | uint16(key[skip+1])
	case len(key) == skip+1:
		return uint16(key[skip]) << 8
	}
	return 0
}

func (t *tree) init(a *arena) { *t = tree{arena: a, root: &node{}} }

// spot is a position in the tree.
type spot struct {
	leaf *node
	at   int
}

// end reports whether the walk is over.
func (s *spot) end() bool { return s.leaf == nil }

// ref returns the entry there.
func (s *spot) ref() ref { return s.leaf.entries[s.at].ref() }

// next goes to the next entry.
func (s *spot) next() {
	s.at++
	s.settle()
}

// settle goes on to the next leaf if this one is at its end.
func (s *spot) settle() {
	for s.leaf != nil && s.at >= s.leaf.count {
		s.leaf, s.at = s.leaf.next, 0
	}
}

// previous goes to the entry before.
func (s *spot) previous() {
	s.at--
	for s.leaf != nil && s.at < 0 {
		if s.leaf = s.leaf.previous; s.leaf != nil {
			s.at = s.leaf.count - 1
		}
	}
}

// move goes to the neighbour of the entry.
func (s *spot) move(reverse bool) {
	if reverse {
		s.previous()
		return
	}
	s.next()
}

// last reports whether the next move leaves the leaf.
func (s *spot) last(reverse bool) bool {
	if reverse {
		return s.at == 0
	}
	return s.at == s.leaf.count-1
}

// leave goes to the neighbour of the leaf.
func (s *spot) leave(reverse bool) {
	if reverse {
		s.at = 0
		s.previous()
		return
	}
	s.at = s.leaf.count
	s.settle()
}

func (t *tree) key(r ref) []byte { return revision(t.arena.at(r)).key() }

// search returns the position of the first entry of n that is not less than
// key, which belongs to n, and whether it equals key.
func (t *tree) search(n *node, key []byte) (int, bool) {
	low, high, head := 0, n.count, headOf(key, n.skip)
	for low < high {
		middle := int(uint(low+high) / 2)
		c := n.entries[middle]
		order := int(c.head()) - int(head)
		if order == 0 {
			order = bytes.Compare(t.key(c.ref())[n.skip:], key[n.skip:])
		}
		switch {
		case order == 0:
			return middle, true
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// child returns the position of the child of n that key belongs to.
func (t *tree) child(n *node, key []byte) int {
	i, equal := t.search(n, key)
	if equal {
		i++
	}
	return i
}

// leaf returns the leaf that key belongs to.
func (t *tree) leaf(key []byte) *node {
	n := t.root
	for n.children != nil {
		n = n.children[t.child(n, key)]
	}
	return n
}

// near is leaf for the writer, who often comes back to the same one.
func (t *tree) near(key []byte) *node {
	if t.finger != nil && (t.low == 0 || bytes.Compare(t.key(t.low), key) <= 0) &&
		(t.high == 0 || bytes.Compare(key, t.key(t.high)) < 0) {
		return t.finger
	}
	n := t.root
	t.low, t.high = 0, 0
	for n.children != nil {
		i := t.child(n, key)
		t.low, t.high = n.bounds(i, t.low, t.high)
		n = n.children[i]
	}
	t.finger = n
	return n
}

// nearEnds reports whether no key before end lies behind the leaf that near has returned.
func (t *tree) nearEnds(end []byte) bool {
	return t.high == 0 || bytes.Compare(end, t.key(t.high)) <= 0
}

// bounds returns the separators around child i of n, given those around n, zero for none.
func (n *node) bounds(i int, low, high ref) (ref, ref) {
	if i > 0 {
		low = n.entries[i-1].ref()
	}
	if i < n.count {
		high = n.entries[i].ref()
	}
	return low, high
}

// bind tells a node the separators around it.
func (t *tree) bind(n *node, low, high ref) {
	skip := 0
	if low != 0 && high != 0 {
		skip = common(t.key(low), t.key(high))
	}
	if skip != n.skip {
		n.skip = skip
		t.setHeads(n.entries[:n.count], skip)
	}
}

// setHeads sets the heads of entries of a node that skips so many bytes.
func (t *tree) setHeads(entries []cell, skip int) {
	for i, c := range entries {
		entries[i] = newCell(c.ref(), headOf(t.key(c.ref()), skip))
	}
}

// common returns how many bytes two keys have in common at their beginning.
func common(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// get returns the entry of key, zero if there is none.
func (t *tree) get(key []byte) ref { return t.find(t.leaf(key), key) }

// getNear is get for the writer.
func (t *tree) getNear(key []byte) ref { return t.find(t.near(key), key) }

func (t *tree) find(leaf *node, key []byte) ref {
	if i, found := t.search(leaf, key); found {
		return leaf.entries[i].ref()
	}
	return 0
}

// seek returns the spot of the first entry that is not less than key.
func (t *tree) seek(key []byte) spot { return t.spot(t.leaf(key), key) }

// seekNear is seek for the writer.
func (t *tree) seekNear(key []byte) spot { return t.spot(t.near(key), key) }

func (t *tree) spot(leaf *node, key []byte) spot {
	at, _ := t.search(leaf, key)
	s := spot{leaf: leaf, at: at}
	s.settle()
	return s
}

// before returns the spot of the last entry less than key.
func (t *tree) before(key []byte) spot {
	leaf := t.leaf(key)
	at, _ := t.search(leaf, key)
	s := spot{leaf: leaf, at: at}
	s.previous()
	return s
}

// put makes r the entry of key at a version, and returns the one it replaces, or zero.
func (t *tree) put(key []byte, r ref, v kv.Version) (replaced ref) {
	leaf := t.near(key)
	leaf.change(v)
	i, found := t.search(leaf, key)
	if found {
		replaced = leaf.entries[i].ref()
		leaf.entries[i] = newCell(r, leaf.entries[i].head())
		return replaced
	}
	if leaf.count == nodeSize {
		leaf = t.makeRoom(key)
		i, _ = t.search(leaf, key)
	}
	leaf.insert(i, newCell(r, headOf(key, leaf.skip)))
	t.size++
	return 0
}

func (n *node) insert(i int, c cell) {
	copy(n.entries[i+1:n.count+1], n.entries[i:n.count])
	n.entries[i] = c
	n.count++
}

func (n *node) remove(i int) {
	copy(n.entries[i:], n.entries[i+1:n.count])
	n.count--
}

// makeRoom splits what is full on the way to the leaf of key, and returns that.
func (t *tree) makeRoom(key []byte) *node {
	t.finger = nil
	if t.root.count == nodeSize {
		t.root = &node{children: &[nodeSize + 1]*node{t.root}}
	}
	n := t.root
	var low, high ref
	for n.children != nil {
		i := t.child(n, key)
		if n.children[i].count == nodeSize {
			t.split(n, i, key)
			for j := i; j <= i+1; j++ {
				below, above := n.bounds(j, low, high)
				t.bind(n.children[j], below, above)
			}
			i = t.child(n, key)
		}
		low, high = n.bounds(i, low, high)
		n = n.children[i]
	}
	return n
}

// split divides a child of n in two, for key to come in between. Keys often
// come in order: then the left half keeps everything. The bounds of both halves are to be told to them.
func (t *tree) split(n *node, i int, key []byte) {
	left := n.children[i]
	right := &node{skip: left.skip}
	at := left.count / 2
	var separator ref
	if left.children == nil {
		first := key
		if bytes.Compare(t.key(left.entries[left.count-1].ref()), key) < 0 {
			at = left.count
		} else {
			first = t.key(left.entries[at].ref())
		}
		separator = t.separate(t.key(left.entries[at-1].ref()), first)
		right.count = copy(right.entries[:], left.entries[at:left.count])
		right.previous, right.next = left, left.next
		right.changed = left.changed
		if right.next != nil {
			right.next.previous = right
		}
		left.next = right
	} else {
		if bytes.Compare(t.key(left.entries[left.count-1].ref()), key) < 0 {
			at = left.count - nodeSmall
		}
		separator = left.entries[at].ref()
		right.count = copy(right.entries[:], left.entries[at+1:left.count])
		right.children = &[nodeSize + 1]*node{}
		copy(right.children[:], left.children[at+1:left.count+1])
		clear(left.children[at+1 : left.count+1])
	}
	left.count = at
	copy(n.children[i+2:n.count+2], n.children[i+1:n.count+1])
	n.children[i+1] = right
	n.insert(i, newCell(separator, headOf(t.key(separator), n.skip)))
}

// separate makes a separator: the shortest key that is greater than left and
// not greater than right.
func (t *tree) separate(left, right []byte) ref {
	return newRevision(t.arena, right[:common(left, right)+1], nil, 0)
}

// delete removes the entry of key, which is there.
func (t *tree) delete(key []byte) {
	leaf := t.near(key)
	i, _ := t.search(leaf, key)
	leaf.remove(i)
	t.size--
	if leaf.count < nodeSmall && leaf != t.root {
		t.shrink(key)
	}
}

// shrink merges what has become small on the way to the leaf of key.
func (t *tree) shrink(key []byte) {
	t.finger = nil
	var low, high ref
	for n := t.root; n.children != nil; {
		i, joined := t.join(n, t.child(n, key))
		low, high = n.bounds(i, low, high)
		n = n.children[i]
		if joined {
			t.bind(n, low, high)
		}
	}
	for t.root.children != nil && t.root.count == 0 {
		t.root = t.root.children[0]
	}
}

// join merges child i of n with a neighbour if it is small and that fits. It
// returns the position of the result, and whether that has new bounds, which are to be told to it.
// An empty leaf stays if its parent has no other child.
func (t *tree) join(n *node, i int) (at int, joined bool) {
	if n.children[i].count >= nodeSmall {
		return i, false
	}
	for _, left := range [...]int{i, i - 1} {
		if left < 0 || left == n.count {
			continue
		}
		a, b := n.children[left], n.children[left+1]
		together := a.count + b.count
		if together <= nodeMerged || together < nodeSize && min(a.count, b.count) == 0 {
			t.merge(n, left)
			return left, true
		}
	}
	return i, false
}

// merge moves everything of child i+1 of n into child i.
func (t *tree) merge(n *node, i int) {
	left, right := n.children[i], n.children[i+1]
	separator := n.entries[i].ref()
	if left.children == nil {
		t.arena.free(separator)
		left.changed = max(left.changed, right.changed)
		left.gone.Store(false)
		if right.touched.Load() {
			left.touch()
		}
		left.next = right.next
		if left.next != nil {
			left.next.previous = left
		}
	} else {
		left.entries[left.count] = newCell(separator, 0)
		left.count++
		copy(left.children[left.count:], right.children[:right.count+1])
	}
	left.count += copy(left.entries[left.count:], right.entries[:right.count])
	left.skip = -1 // until it is told its bounds
	n.remove(i)
	copy(n.children[i+1:], n.children[i+2:n.count+2])
	n.children[n.count+1] = nil
}

package embedded

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// lookup returns the value of key at v, nil where it is absent. line tells
// under the index's lock from which version on it can be read.
func (x *index) lookup(key []byte, v kv.Version, line *timeline) ([]byte, error) {
	value, s, err := x.copyAt(key, v, line)
	if !s.exists() {
		return value, err
	}
	if value, err = s.read(key, nil); s.below && x.coldRead != nil {
		x.coldRead(key)
	}
	return value, err
}

// copyAt returns a copy of the value, or where it lies.
func (x *index) copyAt(key []byte, v kv.Version, line *timeline) (value []byte, s fileValue, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if v < line.lowest() {
		return nil, s, kv.ErrTooOld
	}
	_, r, below := x.find(key, v)
	if below {
		return nil, x.below(key, v), nil
	}
	if r == 0 {
		return nil, s, nil
	}
	e := x.at(r)
	if e.spilled() {
		s, err = x.locate(e)
		return nil, s, err
	}
	return append([]byte{}, e.value()...), s, nil
}

// find returns the newest revision of a key, zero if memory has none, and the one that a
// reader at v sees, or true if only the tables know. The caller holds the lock.
func (x *index) find(key []byte, v kv.Version) (head, seen ref, below bool) {
	leaf := x.tree.leaf(key)
	leaf.touch()
	if head = x.tree.find(leaf, key); head == 0 {
		return 0, 0, x.isCold(key)
	}
	seen, below = x.visible(head, v)
	return head, seen, below
}

// differs reports whether the value of key at v differs from seen, which is
// nil for none, and returns the version of the row's last change.
func (x *index) differs(key []byte, v kv.Version, seen []byte) (bool, kv.Version) {
	differs, s, newest := x.compare(key, v, seen)
	if s.exists() {
		// What can't be read differs from what was seen.
		value, err := s.read(key, nil)
		differs = err != nil || (value == nil) != (seen == nil) || !bytes.Equal(value, seen)
	}
	return differs, newest
}

// compare is differs, or says where the value lies.
func (x *index) compare(key []byte, v kv.Version, seen []byte) (differs bool, s fileValue, newest kv.Version) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	head, r, below := x.find(key, v)
	if head != 0 {
		newest = x.at(head).version()
	}
	if below {
		s = x.below(key, v)
		return seen != nil, s, newest
	}
	if r == 0 || seen == nil {
		return (r == 0) != (seen == nil), s, newest
	}
	e := x.at(r)
	if e.spilled() {
		s, err := x.locate(e)
		return err != nil, s, newest
	}
	return !bytes.Equal(e.value(), seen), s, newest
}

// cursor walks over the rows of a range at one version.
type cursor struct {
	index   *index
	version kv.Version
	// line says which versions can be read. It is nil where that does not matter.
	line    *timeline
	reverse bool
	// begin and end bound what is left of the range.
	begin, end []byte
	done       bool
	// hides has the walk come to rows that are gone as well, all of them: they hide those of tables.
	hides bool
	// mark is the memory of the bound that moves.
	mark []byte
}

// next hands rows that memory knows to visit until that returns false, the range ends, or
// many rows were passed, with the rest of their leaf. Those that are absent have no revision, as do those which are
// below. It returns false when nothing is left. The caller holds the lock.
func (c *cursor) next(visit func(key []byte, r ref, below bool) bool) bool {
	x := c.index
	s := c.start()
	var leaf, touched *node
	gone := false
	for passed := 1; ; passed++ {
		if s.leaf != leaf {
			gone = c.enter(&s)
			leaf = s.leaf
		}
		if s.end() {
			return false
		}
		key := x.at(s.ref()).key()
		if c.outside(key) {
			return false
		}
		if leaf != touched {
			touched = leaf
			touched.touch()
		}
		r, below := x.visible(s.ref(), c.version)
		gone = gone && r == 0 && !below
		last := s.last(c.reverse)
		if gone && last {
			leaf.gone.Store(true)
		}
		if !visit(key, r, below) || passed >= lockedRows && last {
			c.passed(key)
			return true
		}
		s.move(c.reverse)
	}
}

// enter goes on to a leaf that may have rows, past those whose rows are gone: a queue from which
// much was taken begins with many of these as long as a transaction may read at a version from
// before. It reports whether the walk will find out that the rows of that leaf are gone too.
func (c *cursor) enter(s *spot) (whole bool) {
	for !c.hides && !s.end() && s.leaf.gone.Load() && s.leaf.changed <= c.version {
		s.leave(c.reverse)
	}
	if s.end() {
		return false
	}
	first := 0
	if c.reverse {
		first = s.leaf.count - 1
	}
	return s.at == first && s.leaf.changed <= c.version
}

// fetch copies rows into b until it has as many rows or bytes as wanted; what
// isn't positive is no bound. It returns false when nothing is left. After an error b is empty.
func (c *cursor) fetch(b *rowBuffer, rows, size int) (more bool, err error) {
	below, more, err := c.fetchKnown(b, rows, size)
	if err == nil && below != nil {
		more, err = c.fetchBelow(below, b, rows, size)
	}
	if err != nil {
		b.discard()
	}
	return more, err
}

// fetchKnown is fetch where memory knows all rows. Where it does not, it returns what it
// knows.
func (c *cursor) fetchKnown(b *rowBuffer, rows, size int) (below *belowPart, more bool, err error) {
	x := c.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c.line != nil && c.version < c.line.lowest() {
		return nil, false, kv.ErrTooOld
	}
	if len(x.cold.ranges) == 0 {
		more, err = c.copy(b, rows, size)
		c.done = !more
		return nil, more, err
	}
	part, isCold := c.part()
	if isCold {
		below, err = part.known()
		return below, true, err
	}
	more, err = part.copy(b, rows, size)
	return nil, c.advance(&part, more), err
}

// copy copies rows that memory knows.
func (c *cursor) copy(b *rowBuffer, rows, size int) (more bool, err error) {
	more = c.next(func(key []byte, r ref, below bool) bool {
		switch {
		case below:
			b.addBelow(c.index, key, c.version)
		case r == 0:
			return true
		default:
			err = b.add(c.index, c.index.at(r))
		}
		return err == nil && len(b.sizes) != rows && (size <= 0 || b.size < size)
	})
	return more, err
}

func (c *cursor) start() spot {
	t := &c.index.tree
	if c.reverse {
		return t.before(c.end)
	}
	return t.seek(c.begin)
}

// outside reports whether the walk has left the range.
func (c *cursor) outside(key []byte) bool {
	if c.reverse {
		return bytes.Compare(key, c.begin) < 0
	}
	return bytes.Compare(key, c.end) >= 0
}

// passed remembers that everything up to key, inclusive, was walked over.
func (c *cursor) passed(key []byte) {
	c.mark = append(c.mark[:0], key...)
	if c.reverse {
		c.end = c.mark
		return
	}
	c.mark = append(c.mark, 0)
	c.begin = c.mark
}

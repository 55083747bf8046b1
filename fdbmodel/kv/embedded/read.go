package embedded

import (
	"bytes"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// lookup returns the value of key at v, nil where it is absent. line tells
// under the index's lock from which version on it can be read.
func (x *index) lookup(key []byte, v kv.Version, line *timeline) ([]byte, error) {
	value, s, err := x.copyAt(key, v, line)
	if s.exists() {
		return s.read(key, nil)
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
	r := x.visible(x.tree.get(key), v)
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

// differs reports whether the value of key at v differs from seen, which is
// nil for none, and returns the version of the row's last change.
func (x *index) differs(key []byte, v kv.Version, seen []byte) (bool, kv.Version) {
	differs, s, newest := x.compare(key, v, seen)
	if s.exists() {
		// What can't be read differs from what was seen.
		value, err := s.read(key, nil)
		differs = err != nil || !bytes.Equal(value, seen)
	}
	return differs, newest
}

// compare is differs, or says where the value lies.
func (x *index) compare(key []byte, v kv.Version, seen []byte) (differs bool, s fileValue, newest kv.Version) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.tree.get(key)
	if r != 0 {
		newest = x.at(r).version()
	}
	r = x.visible(r, v)
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
	// mark is the memory of the bound that moves.
	mark []byte
}

// next hands rows to visit until that returns false, the range ends, or many
// rows were passed under the lock. It returns false when nothing is left.
func (c *cursor) next(visit func(r ref, e revision) bool) (bool, error) {
	x := c.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c.line != nil && c.version < c.line.lowest() {
		return false, kv.ErrTooOld
	}
	s := c.start()
	for passed := 1; ; passed++ {
		if s.end() {
			c.done = true
			return false, nil
		}
		key := x.at(s.ref()).key()
		if c.outside(key) {
			c.done = true
			return false, nil
		}
		r := x.visible(s.ref(), c.version)
		if r != 0 && !visit(r, x.at(r)) || passed == lockedRows {
			c.passed(key)
			return true, nil
		}
		if c.reverse {
			s.previous()
		} else {
			s.next()
		}
	}
}

// fetch copies rows into b until it has as many rows or bytes as wanted; what
// isn't positive is no bound. It returns false when nothing is left.
func (c *cursor) fetch(b *rowBuffer, rows, size int) (more bool, err error) {
	var failed error
	more, err = c.next(func(_ ref, e revision) bool {
		failed = b.add(c.index, e)
		return failed == nil && len(b.sizes) != rows && (size <= 0 || b.size < size)
	})
	if err == nil && failed != nil {
		err = errors.Join(failed, b.drain(func(_, _ []byte, _ kv.Version, _ bool) error { return nil }))
	}
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

// rowBuffer holds rows that were copied out of the index under its lock.
type rowBuffer struct {
	// bytes are keys and values, one behind the other, sizes their lengths.
	bytes []byte
	sizes []rowSize
	// size is how many bytes the rows have, with those that were not copied.
	size int
	// spilled are where values lie that were not copied.
	spilled []fileValue
	// reuses says that spilled values are valid only until the next one is read, in
	// scratch.
	reuses  bool
	scratch []byte
}

type rowSize struct {
	key, value int32
	spilled    bool
	version    kv.Version
}

// maxPiece is the size of the memory that rows share, for those that hold on
// to one of them.
const maxPiece = 64 << 10

// add copies a row, while the caller holds the lock.
func (b *rowBuffer) add(x *index, e revision) error {
	size := rowSize{key: int32(e.keySize()), version: e.born()}
	b.size += e.keySize() + e.size()
	if e.spilled() {
		s, err := x.locate(e)
		if err != nil {
			return err
		}
		b.spilled, size.spilled = append(b.spilled, s), true
	} else {
		size.value = int32(e.size())
	}
	// A value that is not spilled lies behind its key.
	begin := revisionHeader
	b.bytes = append(b.bytes, e[begin:begin+int(size.key+size.value)]...)
	b.sizes = append(b.sizes, size)
	return nil
}

// drain hands the rows to visit, and forgets them. A value that was spilled is
// owned by visit, unless the buffer reuses it; the rest is valid until rows are added
// again.
func (b *rowBuffer) drain(visit func(key, value []byte, version kv.Version, owned bool) error) error {
	at, spilled := 0, b.spilled
	var err error
	for _, size := range b.sizes {
		end := at + int(size.key)
		key, value := b.bytes[at:end:end], b.bytes[end:end+int(size.value)]
		at = end + len(value)
		if size.spilled {
			var failed error
			// Reading a value releases its file.
			if value, failed = spilled[0].read(key, b.scratch); failed != nil {
				err = errors.Join(err, failed)
			}
			spilled = spilled[1:]
			if b.reuses {
				b.scratch = value[:0]
			}
		}
		if err == nil {
			err = visit(key, value, size.version, size.spilled)
		}
	}
	clear(b.spilled)
	b.bytes, b.sizes, b.spilled, b.size = b.bytes[:0], b.sizes[:0], b.spilled[:0], 0
	return err
}

// appendTo drains the rows into items, in memory of their own.
func (b *rowBuffer) appendTo(items []kv.KeyValue) ([]kv.KeyValue, error) {
	items = slices.Grow(items, len(b.sizes))
	rest := len(b.bytes)
	var memory []byte
	own := func(s []byte) []byte {
		n := copy(memory, s)
		mine := memory[:n:n]
		memory, rest = memory[n:], rest-n
		return mine
	}
	err := b.drain(func(key, value []byte, _ kv.Version, owned bool) error {
		size := len(key)
		if !owned {
			size += len(value)
		}
		if len(memory) < size {
			memory = make([]byte, max(size, min(rest, maxPiece)))
		}
		item := kv.KeyValue{Key: own(key), Value: value}
		if !owned {
			item.Value = own(value)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}

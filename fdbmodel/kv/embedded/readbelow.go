package embedded

import (
	"bytes"
	"errors"
	"slices"
	"sort"
)

// part returns the first part of what is left of a walk that is cold as a whole, or not at
// all. The caller holds the lock.
func (c *cursor) part() (p cursor, isCold bool) {
	p = *c
	all := c.index.cold.ranges
	if c.reverse {
		i := sort.Search(len(all), func(i int) bool { return bytes.Compare(all[i].Begin, c.end) >= 0 }) - 1
		switch {
		case i < 0:
		case bytes.Compare(all[i].End, c.end) >= 0:
			p.begin, isCold = maxKey(c.begin, all[i].Begin), true
		default:
			p.begin = maxKey(c.begin, all[i].End)
		}
		return p, isCold
	}
	i := c.index.cold.from(c.begin)
	switch {
	case i == len(all):
	case bytes.Compare(all[i].Begin, c.begin) <= 0:
		p.end, isCold = minKey(c.end, all[i].End), true
	default:
		p.end = minKey(c.end, all[i].Begin)
	}
	return p, isCold
}

// advance goes on behind a part, or where a walk through it has come to, and returns false
// when nothing is left.
func (c *cursor) advance(p *cursor, more bool) bool {
	c.mark = p.mark
	switch {
	case c.reverse && more:
		c.end = p.end
	case c.reverse:
		c.end = p.begin
	case more:
		c.begin = p.begin
	default:
		c.begin = p.end
	}
	c.done = bytes.Compare(c.begin, c.end) >= 0
	return !c.done
}

// belowPart is a cold part of a walk, and what was known there under the lock, all of which
// is as of one time.
type belowPart struct {
	walk cursor
	// known are the rows that memory has there, with those that it knows are gone, in the
	// order of the walk.
	known  rowBuffer
	tables *tableSet
	// holes are where the walk sees nothing of the tables.
	holes []hole
	// at and spilled are where the next of the known rows has its bytes and its value, if it
	// is spilled, and row its number.
	row, at, spilled int
}

// known returns what memory knows of a part, which it makes smaller if that is much. The
// caller holds the lock.
func (c *cursor) known() (*belowPart, error) {
	p := &belowPart{walk: *c}
	// The walk through memory uses the memory of the bounds again.
	p.walk.begin, p.walk.end, p.walk.mark = bytes.Clone(c.begin), bytes.Clone(c.end), nil
	var err error
	c.hides = true
	more := c.next(func(key []byte, r ref, below bool) bool {
		switch {
		case below:
		case r == 0:
			p.known.addGone(key)
		default:
			err = p.known.add(c.index, c.index.at(r))
		}
		return err == nil && p.known.size < pageBytes
	})
	if err != nil {
		p.known.discard()
		return nil, err
	}
	if more && c.reverse {
		p.walk.begin = bytes.Clone(c.end)
	} else if more {
		p.walk.end = bytes.Clone(c.begin)
	}
	x := c.index
	p.tables = x.base.hold()
	p.holes = slices.DeleteFunc(slices.Clone(x.cold.holes.overlapping(p.walk.begin, p.walk.end)),
		func(h hole) bool { return h.version > c.version })
	return p, nil
}

const (
	// belowRows and belowBytes bound what is read from tables at a time.
	belowRows  = 1024
	belowBytes = 1 << 20
)

// fetchBelow is fetch for a part that is cold.
func (c *cursor) fetchBelow(p *belowPart, b *rowBuffer, rows, size int) (more bool, err error) {
	begin := p.walk.begin
	if more, err = c.mergeBelow(p, b, rows, size); err == nil && c.index.coldRead != nil {
		if c.reverse {
			begin = c.end
		}
		c.index.coldRead(begin)
	}
	return more, err
}

func (c *cursor) mergeBelow(p *belowPart, b *rowBuffer, rows, size int) (more bool, err error) {
	defer p.release()
	w, err := p.tables.walk()
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return false, err
	}
	if c.reverse {
		err = w.seekBefore(p.walk.end)
	} else {
		err = w.seek(p.walk.begin)
	}
	first := len(b.sizes)
	for err == nil {
		key, found := p.take(w, b)
		if !found {
			return c.advance(&p.walk, false), nil
		}
		full := rows > 0 && len(b.sizes) >= rows || size > 0 && b.size >= size
		if full || len(b.sizes)-first >= belowRows || b.size >= belowBytes {
			p.walk.passed(key)
			return c.advance(&p.walk, true), nil
		}
		err = p.next(w, key)
	}
	return false, err
}

// take adds the nearest row of the part, and returns its key, or that of one that is gone,
// and false at the end.
func (p *belowPart) take(w *mergedWalk, b *rowBuffer) (key []byte, found bool) {
	below := w.valid && !p.walk.outside(w.entry.key)
	order := -1
	if p.row < len(p.known.sizes) {
		order = 1
		if key = p.key(); below {
			order = bytes.Compare(w.entry.key, key)
			if p.walk.reverse {
				order = -order
			}
		}
	}
	switch {
	case order < 0 && !below:
		return nil, false
	case order < 0:
		if !w.entry.deleted && !p.hidden(w.entry.key) {
			b.addEntry(w.entry)
		}
		return w.entry.key, true
	}
	p.move(b)
	return key, true
}

// next goes on behind a key.
func (p *belowPart) next(w *mergedWalk, key []byte) error {
	if w.valid && bytes.Equal(w.entry.key, key) {
		return w.next()
	}
	return nil
}

func (p *belowPart) key() []byte {
	end := p.at + int(p.known.sizes[p.row].key)
	return p.known.bytes[p.at:end:end]
}

// move moves the next of the known rows.
func (p *belowPart) move(b *rowBuffer) {
	size := p.known.sizes[p.row]
	end := p.at + int(size.key+size.value)
	if !size.gone {
		b.bytes, b.sizes = append(b.bytes, p.known.bytes[p.at:end]...), append(b.sizes, size)
		b.size += end - p.at
		if size.spilled {
			s := p.known.spilled[p.spilled]
			b.spilled, b.size = append(b.spilled, s), b.size+s.size
			p.spilled++
		}
	}
	p.row, p.at = p.row+1, end
}

// hidden reports whether a row of the tables was cleared.
func (p *belowPart) hidden(key []byte) bool {
	h := holes{all: p.holes}
	return h.contain(key, p.walk.version)
}

// release gives up what was not read.
func (p *belowPart) release() {
	for _, s := range p.known.spilled[p.spilled:] {
		s.release()
	}
	_ = p.tables.release()
}

package embedded

import (
	"github.com/futura-run/futura/fdbmodel/kv"
)

// lookup returns the value of key at v, nil where it is absent. floor tells
// under the index's lock from which version on it can be read.
func (x *index) lookup(key []byte, v kv.Version, floor func() kv.Version) ([]byte, error) {
	value, s, err := x.find(key, v, floor)
	if s != nil {
		return s.read(key)
	}
	return value, err
}

// find returns the value, or the shelf where it lies.
func (x *index) find(key []byte, v kv.Version, floor func() kv.Version) ([]byte, *shelf, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if v < floor() {
		return nil, nil, kv.ErrTooOld
	}
	entry, found := x.tree.Get(row{key: view(key)})
	if !found {
		return nil, nil, nil
	}
	r := entry.head.at(v)
	switch {
	case r == nil:
		return nil, nil, nil
	case r.shelved():
		s, err := x.visitShelf(r)
		return nil, s, err
	}
	return []byte(r.value), nil, nil
}

// cursor walks over the rows of a range at one version.
type cursor struct {
	index   *index
	version kv.Version
	floor   func() kv.Version
	reverse bool
	// begin and end bound what is left of the range.
	begin, end string
	// skipFirst says that the row at begin was walked over already.
	skipFirst bool
	done      bool
}

// next hands rows to visit until that returns false, the range ends, or many
// rows were passed under the lock. It returns false when nothing is left.
func (c *cursor) next(visit func(key string, r *revision) bool) (bool, error) {
	x := c.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c.version < c.floor() {
		return false, kv.ErrTooOld
	}
	passed, stopped := 0, false
	step := func(entry row) bool {
		if r := entry.head.at(c.version); r != nil && !visit(entry.key, r) {
			stopped = true
		}
		passed++
		if stopped || passed >= lockedRows {
			c.passed(entry.key)
			return false
		}
		return true
	}
	if c.reverse {
		c.descend(step)
	} else {
		c.ascend(step)
	}
	if !stopped && passed < lockedRows {
		c.done = true
	}
	return !c.done, nil
}

func (c *cursor) ascend(step func(row) bool) {
	c.index.tree.Ascend(row{key: c.begin}, func(entry row) bool {
		if c.skipFirst && entry.key == c.begin {
			return true
		}
		if entry.key >= c.end {
			return false
		}
		return step(entry)
	})
}

func (c *cursor) descend(step func(row) bool) {
	c.index.tree.Descend(row{key: c.end}, func(entry row) bool {
		if entry.key == c.end {
			return true
		}
		if entry.key < c.begin {
			return false
		}
		return step(entry)
	})
}

// passed remembers that everything up to key, inclusive, was walked over.
func (c *cursor) passed(key string) {
	if c.reverse {
		c.end = key
		return
	}
	c.begin, c.skipFirst = key, true
}

// pageBuilder copies rows into memory that the caller of a read will own.
type pageBuilder struct {
	items []kv.KeyValue
	size  int // of the keys and values
	chunk []byte
	// shelved are the items whose values are still to be read, from the shelves.
	shelved []int
	shelves []*shelf
	err     error
}

// addRow adds a row of the index, whose lock the caller holds. fill completes
// it.
func (p *pageBuilder) addRow(x *index, key string, r *revision) {
	if !r.shelved() {
		p.add(key, r.value)
		return
	}
	s, err := x.visitShelf(r)
	if err != nil {
		p.err = err
		return
	}
	p.shelved, p.shelves = append(p.shelved, len(p.items)), append(p.shelves, s)
	p.items = append(p.items, kv.KeyValue{Key: p.copy(key)})
	p.size += len(key) + r.size()
}

// isFull tells whether the rows have come to a bound of o.
func (p *pageBuilder) isFull(o kv.RangeOptions) bool {
	return o.Limit > 0 && len(p.items) >= o.Limit || o.Bytes > 0 && p.size >= o.Bytes
}

// fill reads the values that are shelved, without the lock.
func (p *pageBuilder) fill() error {
	for i, at := range p.shelved {
		value, err := p.shelves[i].read(p.items[at].Key)
		if err != nil && p.err == nil {
			p.err = err
		}
		p.items[at].Value = value
	}
	p.shelved, p.shelves = p.shelved[:0], p.shelves[:0]
	return p.err
}

func (p *pageBuilder) add(key, value string) {
	k := p.copy(key)
	p.items = append(p.items, kv.KeyValue{Key: k, Value: p.copy(value)})
	p.size += len(key) + len(value)
}

func (p *pageBuilder) copy(s string) []byte {
	if cap(p.chunk)-len(p.chunk) < len(s) || p.chunk == nil {
		size := min(max(2*cap(p.chunk), 512), 64<<10)
		p.chunk = make([]byte, 0, max(size, len(s)))
	}
	from := len(p.chunk)
	p.chunk = append(p.chunk, s...)
	return p.chunk[from:len(p.chunk):len(p.chunk)]
}

// peek returns the value of key at v without a copy, and the version of its
// newest revision.
func (x *index) peek(key string, v kv.Version) (value string, present bool, newest kv.Version) {
	value, s, present, newest := x.glance(key, v)
	if s != nil {
		// What can't be read differs from what was seen.
		b, _ := s.read([]byte(key))
		value = view(b)
	}
	return value, present, newest
}

// glance is peek, or the shelf where the value lies.
func (x *index) glance(key string, v kv.Version) (value string, s *shelf, present bool, newest kv.Version) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	entry, found := x.tree.Get(row{key: key})
	if !found {
		return "", nil, false, 0
	}
	r, newest := entry.head.at(v), entry.head.version()
	switch {
	case r == nil:
		return "", nil, false, newest
	case r.shelved():
		s, _ = x.visitShelf(r)
		return "", s, true, newest
	}
	return r.value, nil, true, newest
}

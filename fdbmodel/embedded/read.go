package embedded

import (
	"github.com/futura-run/futura/fdbmodel/kv"
)

// lookup returns the value of key at v, nil where it is absent. floor tells
// under the index's lock from which version on it can be read.
func (x *index) lookup(key []byte, v kv.Version, floor func() kv.Version) ([]byte, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if v < floor() {
		return nil, kv.ErrTooOld
	}
	entry, found := x.tree.Get(row{key: view(key)})
	if !found {
		return nil, nil
	}
	r := entry.head.at(v)
	if r == nil {
		return nil, nil
	}
	return []byte(r.value), nil
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
func (c *cursor) next(visit func(key, value string) bool) (bool, error) {
	x := c.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c.version < c.floor() {
		return false, kv.ErrTooOld
	}
	passed, stopped := 0, false
	step := func(entry row) bool {
		if r := entry.head.at(c.version); r != nil && !visit(entry.key, r.value) {
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
	chunk []byte
}

func (p *pageBuilder) add(key, value string) {
	k := p.copy(key)
	p.items = append(p.items, kv.KeyValue{Key: k, Value: p.copy(value)})
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
	x.mu.RLock()
	defer x.mu.RUnlock()
	entry, found := x.tree.Get(row{key: key})
	if !found {
		return "", false, 0
	}
	if r := entry.head.at(v); r != nil {
		return r.value, true, entry.head.version()
	}
	return "", false, entry.head.version()
}

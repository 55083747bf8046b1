package embedded

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"github.com/futura-run/futura/fdbmodel/kv"
)

type pointKind uint8

const (
	// untouched rows are as the store has them.
	untouched pointKind = iota
	// written rows have a value that the transaction knows.
	written
	// cleared rows are absent.
	cleared
	// chained rows have pending atomic operations on the store's value.
	chained
	// unreadable rows were written with an incomplete stamp.
	unreadable
)

// point is what a transaction did to one row.
type point struct {
	key   []byte
	kind  pointKind
	value []byte
	chain []op
	// owned says that the row does not depend on what the store has, although
	// the transaction can't read it.
	owned bool
}

// resolve returns the row's value, given the store's own, and false where the
// row is absent.
func (p *point) resolve(base []byte, present bool) ([]byte, bool) {
	switch p.kind {
	case written:
		return p.value, true
	case cleared:
		return nil, false
	}
	for _, o := range p.chain {
		base, present = applyAtomic(o.atomic, base, present, o.value, nil)
	}
	return base, present
}

// overlay is the writes of a transaction as its own reads see them. It is
// built when a transaction reads after it wrote, which most never do.
type overlay struct {
	built      int
	points     *btree.BTreeG[*point]
	cleared    rangeSet
	unreadable rangeSet
}

func (o *overlay) reset() {
	if o.built > 0 {
		*o = overlay{}
	}
}

// catchUp takes in the mutations that came since it was last called.
func (o *overlay) catchUp(ops []op) {
	if o.points == nil {
		o.points = btree.NewBTreeGOptions(func(a, b *point) bool { return bytes.Compare(a.key, b.key) < 0 },
			btree.Options{NoLocks: true})
	}
	for ; o.built < len(ops); o.built++ {
		o.take(ops[o.built])
	}
}

func (o *overlay) take(m op) {
	switch m.kind {
	case opClear:
		o.unreadable.remove(m.key, kv.After(m.key))
		o.points.Set(&point{key: m.key, kind: cleared})
	case opClearRange:
		o.dropPoints(m.key, m.value)
		o.unreadable.remove(m.key, m.value)
		o.cleared.add(m.key, m.value)
	case opStampKey:
		begin, end := stampBounds(m)
		o.dropPoints(begin, end)
		o.cleared.remove(begin, end)
		o.unreadable.add(begin, end)
	case opStampValue:
		o.points.Set(&point{key: m.key, kind: unreadable, owned: true})
	default:
		o.takeValue(m)
	}
}

// takeValue takes in a set or an atomic operation. What is unreadable stays
// so until it is cleared.
func (o *overlay) takeValue(m op) {
	p, found := o.points.Get(&point{key: m.key})
	if found && p.kind == unreadable {
		p.owned = p.owned || m.kind == opSet
		return
	}
	if !found {
		p = &point{key: m.key}
		switch {
		case o.unreadable.contains(m.key):
			p.kind, p.owned = unreadable, m.kind == opSet || o.cleared.contains(m.key)
		case o.cleared.contains(m.key):
			p.kind = cleared
		}
		o.points.Set(p)
		if p.kind == unreadable {
			return
		}
	}
	switch {
	case m.kind == opSet:
		p.kind, p.value, p.chain = written, m.value, nil
	case p.kind == untouched || p.kind == chained:
		p.kind, p.chain = chained, append(p.chain, m)
	default:
		value, present := applyAtomic(m.atomic, p.value, p.kind == written, m.value, nil)
		p.kind, p.value = cleared, nil
		if present {
			p.kind, p.value = written, value
		}
	}
}

func (o *overlay) dropPoints(begin, end []byte) {
	for _, p := range o.between(begin, end, false) {
		o.points.Delete(p)
	}
}

// stampBounds returns the range that a key may fall into once it is stamped.
func stampBounds(m op) (begin, end []byte) {
	begin = bytes.Clone(m.key)
	stamp := begin[m.offset : m.offset+kv.StampSize]
	clear(stamp)
	binary.BigEndian.PutUint64(stamp, uint64(m.seen))
	end = kv.After(m.key)
	for i := range kv.StampSize {
		end[int(m.offset)+i] = 0xff
	}
	return begin, end
}

// find returns what the transaction did to key.
func (o *overlay) find(key []byte) *point {
	if p, found := o.points.Get(&point{key: key}); found {
		return p
	}
	switch {
	case o.unreadable.contains(key):
		return &point{key: key, kind: unreadable}
	case o.cleared.contains(key):
		return &point{key: key, kind: cleared}
	}
	return nil
}

// between returns the points of a range in order.
func (o *overlay) between(begin, end []byte, reverse bool) []*point {
	var points []*point
	o.points.Ascend(&point{key: begin}, func(p *point) bool {
		if bytes.Compare(p.key, end) >= 0 {
			return false
		}
		points = append(points, p)
		return true
	})
	if reverse {
		slices.Reverse(points)
	}
	return points
}

// touches reports whether the transaction wrote in a range.
func (o *overlay) touches(begin, end []byte) bool {
	if len(o.cleared.overlapping(begin, end)) > 0 || len(o.unreadable.overlapping(begin, end)) > 0 {
		return true
	}
	found := false
	o.points.Ascend(&point{key: begin}, func(p *point) bool {
		found = bytes.Compare(p.key, end) < 0
		return false
	})
	return found
}

// foreign hands the parts of a range to visit whose rows the transaction did
// not set or clear itself.
func (o *overlay) foreign(begin, end []byte, visit func(begin, end []byte)) {
	own := rangeSet{}
	for _, r := range o.cleared.overlapping(begin, end) {
		own.add(r.Begin, r.End)
	}
	for _, p := range o.between(begin, end, false) {
		if p.kind == written || p.kind == cleared || p.owned {
			own.add(p.key, kv.After(p.key))
		}
	}
	for _, r := range own.ranges {
		if bytes.Compare(begin, r.Begin) < 0 {
			visit(begin, r.Begin)
		}
		begin = r.End
	}
	if bytes.Compare(begin, end) < 0 {
		visit(begin, end)
	}
}

// rangeSet is a set of keys, as disjoint ranges in order.
type rangeSet struct{ ranges []kv.Range }

// from returns the position of the first range that ends behind key.
func (s *rangeSet) from(key []byte) int {
	return sort.Search(len(s.ranges), func(i int) bool { return bytes.Compare(s.ranges[i].End, key) > 0 })
}

func (s *rangeSet) contains(key []byte) bool {
	i := s.from(key)
	return i < len(s.ranges) && s.ranges[i].Contains(key)
}

// overlapping returns the ranges that share keys with the one given.
func (s *rangeSet) overlapping(begin, end []byte) []kv.Range {
	i := s.from(begin)
	n := i
	for n < len(s.ranges) && bytes.Compare(s.ranges[n].Begin, end) < 0 {
		n++
	}
	return s.ranges[i:n]
}

func (s *rangeSet) add(begin, end []byte) {
	if bytes.Compare(begin, end) >= 0 {
		return
	}
	i := sort.Search(len(s.ranges), func(i int) bool { return bytes.Compare(s.ranges[i].End, begin) >= 0 })
	n := i
	for n < len(s.ranges) && bytes.Compare(s.ranges[n].Begin, end) <= 0 {
		n++
	}
	joined := kv.Range{Begin: begin, End: end}
	if i < n {
		if bytes.Compare(s.ranges[i].Begin, begin) < 0 {
			joined.Begin = s.ranges[i].Begin
		}
		if bytes.Compare(s.ranges[n-1].End, end) > 0 {
			joined.End = s.ranges[n-1].End
		}
	}
	s.ranges = slices.Replace(s.ranges, i, n, joined)
}

func (s *rangeSet) remove(begin, end []byte) {
	hit := s.overlapping(begin, end)
	if len(hit) == 0 || bytes.Compare(begin, end) >= 0 {
		return
	}
	i := s.from(begin)
	var rest []kv.Range
	if first := hit[0]; bytes.Compare(first.Begin, begin) < 0 {
		rest = append(rest, kv.Range{Begin: first.Begin, End: begin})
	}
	if last := hit[len(hit)-1]; bytes.Compare(end, last.End) < 0 {
		rest = append(rest, kv.Range{Begin: end, End: last.End})
	}
	s.ranges = slices.Replace(s.ranges, i, i+len(hit), rest...)
}

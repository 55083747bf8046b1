package reference

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// everything is the range of all legal keys.
var everything = kv.Range{Begin: []byte{}, End: []byte{0xff}}

type kind uint8

const (
	set kind = iota
	clearRange
	atomic
	stampKey
	stampValue
)

// mutation is one write of a transaction. A clear has its range in key and end,
// an incomplete stamp lies at offset.
type mutation struct {
	kind   kind
	op     kv.AtomicOp
	key    []byte
	end    []byte
	value  []byte
	offset int
}

// stamped returns m with its incomplete stamp filled in.
func (m mutation) stamped(s kv.Stamp) mutation {
	switch m.kind {
	case stampKey:
		m.key = withStamp(m.key, m.offset, s)
	case stampValue:
		m.value = withStamp(m.value, m.offset, s)
	default:
		return m
	}
	m.kind = set
	return m
}

// writes returns the keys that m writes once it is stamped.
func (m mutation) writes() kv.Range {
	if m.kind == clearRange {
		return kv.Range{Begin: m.key, End: m.end}
	}
	return kv.Single(m.key)
}

func withStamp(b []byte, offset int, s kv.Stamp) []byte {
	b = bytes.Clone(b)
	copy(b[offset:], s[:])
	return b
}

// view is the rows of scope, changed by a transaction's own mutations in their
// order.
type view struct {
	scope kv.Range
	rows  map[string][]byte
}

// load adds a row of the store, unless value says that it is absent.
func (v view) load(key, value []byte) {
	if value != nil && v.scope.Contains(key) {
		v.rows[string(key)] = value
	}
}

// apply changes the view by m. A stamped key is nowhere before its commit.
func (v view) apply(m mutation) {
	switch m.kind {
	case clearRange:
		for key := range v.rows {
			if m.writes().Contains([]byte(key)) {
				delete(v.rows, key)
			}
		}
	case set, stampValue:
		v.load(m.key, m.value)
	case atomic:
		old := v.rows[string(m.key)]
		delete(v.rows, string(m.key))
		v.load(m.key, atomically(m.op, old, m.value))
	}
}

// sorted returns the rows in order.
func (v view) sorted() []kv.KeyValue {
	rows := make([]kv.KeyValue, 0, len(v.rows))
	for key, value := range v.rows {
		rows = append(rows, kv.KeyValue{Key: []byte(key), Value: value})
	}
	slices.SortFunc(rows, func(a, b kv.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return rows
}

// overlap reports whether two ranges share a key.
func overlap(a, b kv.Range) bool { return !intersection(a, b).Empty() }

func intersection(a, b kv.Range) kv.Range {
	if bytes.Compare(a.Begin, b.Begin) < 0 {
		a.Begin = b.Begin
	}
	if bytes.Compare(a.End, b.End) > 0 {
		a.End = b.End
	}
	return a
}

// without returns what of ranges lies outside of hole.
func without(ranges []kv.Range, hole kv.Range) []kv.Range {
	if hole.Empty() {
		return ranges
	}
	var rest []kv.Range
	for _, r := range ranges {
		left := intersection(r, kv.Range{Begin: r.Begin, End: hole.Begin})
		right := intersection(r, kv.Range{Begin: hole.End, End: r.End})
		for _, part := range []kv.Range{left, right} {
			if !part.Empty() {
				rest = append(rest, part)
			}
		}
	}
	return rest
}

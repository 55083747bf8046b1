package kv

import "bytes"

// Range is the keys from Begin, inclusive, to End, exclusive.
type Range struct {
	Begin, End []byte
}

// Empty reports whether no key lies in the range.
func (r Range) Empty() bool { return bytes.Compare(r.Begin, r.End) >= 0 }

// Contains reports whether key lies in the range.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(r.Begin, key) <= 0 && bytes.Compare(key, r.End) < 0
}

// Single returns the range that contains only key.
func Single(key []byte) Range { return Range{Begin: key, End: After(key)} }

// After returns the first key after key.
func After(key []byte) []byte {
	next := make([]byte, len(key)+1)
	copy(next, key)
	return next
}

// Prefix returns the range of all keys that begin with prefix, which must hold
// a byte other than 0xff.
func Prefix(prefix []byte) Range { return Range{Begin: prefix, End: AfterPrefix(prefix)} }

// AfterPrefix returns the first key that is greater than every key with prefix.
// It panics if prefix is empty or consists of 0xff bytes, because no such key
// exists.
func AfterPrefix(prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		panic("kv: no key follows this prefix")
	}
	end := append([]byte(nil), prefix[:n]...)
	end[n-1]++
	return end
}

package reference

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// atomically returns what op makes of old, nil standing for an absent key in
// both.
func atomically(op kv.AtomicOp, old, param []byte) []byte {
	if op == kv.CompareAndClear {
		if old == nil || bytes.Equal(old, param) {
			return nil
		}
		return old
	}
	if old == nil {
		return param
	}
	switch op {
	case kv.Add:
		return add(resize(old, len(param)), param)
	case kv.Max:
		return larger(compareNumbers, resize(old, len(param)), param)
	case kv.Min:
		return smaller(compareNumbers, resize(old, len(param)), param)
	case kv.ByteMax:
		return larger(bytes.Compare, old, param)
	case kv.ByteMin:
		return smaller(bytes.Compare, old, param)
	}
	return old
}

func add(a, b []byte) []byte {
	sum := make([]byte, len(a))
	carry := 0
	for i := range a {
		carry += int(a[i]) + int(b[i])
		sum[i] = byte(carry)
		carry >>= 8
	}
	return sum
}

// resize cuts or zero-extends a little-endian number.
func resize(number []byte, size int) []byte {
	out := make([]byte, size)
	copy(out, number)
	return out
}

// compareNumbers compares little-endian numbers of one length.
func compareNumbers(a, b []byte) int {
	a, b = bytes.Clone(a), bytes.Clone(b)
	slices.Reverse(a)
	slices.Reverse(b)
	return bytes.Compare(a, b)
}

func larger(compare func(a, b []byte) int, a, b []byte) []byte {
	if compare(a, b) > 0 {
		return a
	}
	return b
}

func smaller(compare func(a, b []byte) int, a, b []byte) []byte {
	if compare(a, b) < 0 {
		return a
	}
	return b
}

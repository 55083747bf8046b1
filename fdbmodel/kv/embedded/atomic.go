package embedded

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// applyAtomic returns what op with param makes of value, and false where it
// clears the key. The result may share memory with value and param, or be made
// in scratch.
func applyAtomic(op kv.AtomicOp, value []byte, present bool, param, scratch []byte) ([]byte, bool) {
	switch op {
	case kv.CompareAndClear:
		if !present || bytes.Equal(value, param) {
			return nil, false
		}
		return value, true
	case kv.Add:
		return addLittleEndian(value, param, scratch), true
	}
	if !present {
		return param, true
	}
	switch op {
	case kv.Max:
		if compareLittleEndian(value, param) > 0 {
			return resize(value, len(param), scratch), true
		}
	case kv.Min:
		if compareLittleEndian(value, param) < 0 {
			return resize(value, len(param), scratch), true
		}
	case kv.ByteMax:
		if bytes.Compare(value, param) > 0 {
			return value, true
		}
	case kv.ByteMin:
		if bytes.Compare(value, param) < 0 {
			return value, true
		}
	}
	return param, true
}

// addLittleEndian adds as numbers of param's length.
func addLittleEndian(value, param, scratch []byte) []byte {
	sum := resize(value, len(param), scratch)
	carry := 0
	for i := range sum {
		carry += int(sum[i]) + int(param[i])
		sum[i] = byte(carry)
		carry >>= 8
	}
	return sum
}

// compareLittleEndian compares as numbers of param's length.
func compareLittleEndian(value, param []byte) int {
	for i := len(param) - 1; i >= 0; i-- {
		digit := byte(0)
		if i < len(value) {
			digit = value[i]
		}
		if digit != param[i] {
			return int(digit) - int(param[i])
		}
	}
	return 0
}

// resize returns a copy of value, cut or extended with zeros to n bytes, in
// scratch if that is large enough.
func resize(value []byte, n int, scratch []byte) []byte {
	sized := slices.Grow(scratch[:0], n)[:n]
	clear(sized[copy(sized, value):])
	return sized
}

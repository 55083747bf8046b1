package embedded

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// applyAtomic returns what op with param makes of value, and false where it
// clears the key. The result may share memory with value and param.
func applyAtomic(op kv.AtomicOp, value []byte, present bool, param []byte) ([]byte, bool) {
	switch op {
	case kv.CompareAndClear:
		if !present || bytes.Equal(value, param) {
			return nil, false
		}
		return value, true
	case kv.Add:
		return addLittleEndian(value, param), true
	}
	if !present {
		return param, true
	}
	switch op {
	case kv.Max:
		if compareLittleEndian(value, param) > 0 {
			return resize(value, len(param)), true
		}
	case kv.Min:
		if compareLittleEndian(value, param) < 0 {
			return resize(value, len(param)), true
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
func addLittleEndian(value, param []byte) []byte {
	sum := resize(value, len(param))
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

// resize returns a copy of value, cut or extended with zeros to n bytes.
func resize(value []byte, n int) []byte {
	sized := make([]byte, n)
	copy(sized, value)
	return sized
}

package tuple

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// AppendNil appends nil. Inside of a nested tuple, use AppendNestedNil.
func AppendNil(dst []byte) []byte { return append(dst, codeNil) }

// AppendBytes appends a byte string.
func AppendBytes(dst, value []byte) []byte {
	dst = append(dst, codeBytes)
	for {
		i := bytes.IndexByte(value, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, value[:i+1]...), escape)
		value = value[i+1:]
	}
	return append(append(dst, value...), 0)
}

// AppendString appends text.
func AppendString(dst []byte, value string) []byte {
	dst = append(dst, codeString)
	for {
		i := strings.IndexByte(value, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, value[:i+1]...), escape)
		value = value[i+1:]
	}
	return append(append(dst, value...), 0)
}

// AppendInt appends an integer.
func AppendInt(dst []byte, value int64) []byte {
	if value >= 0 {
		return AppendUint(dst, uint64(value))
	}
	magnitude := uint64(-value)
	n := byteLength(magnitude)
	return appendBigEndian(append(dst, byte(codeIntZero-n)), ^magnitude, n)
}

// AppendUint appends an integer.
func AppendUint(dst []byte, value uint64) []byte {
	n := byteLength(value)
	return appendBigEndian(append(dst, byte(codeIntZero+n)), value, n)
}

// AppendBig appends an integer. It returns ErrIntegerTooLarge for one of more
// than 255 bytes.
func AppendBig(dst []byte, value *big.Int) ([]byte, error) {
	n := (value.BitLen() + 7) / 8
	if n > maxInteger {
		return dst, ErrIntegerTooLarge
	}
	negative := value.Sign() < 0
	switch {
	case n <= maxSmallInteger && negative:
		dst = append(dst, byte(codeIntZero-n))
	case n <= maxSmallInteger:
		dst = append(dst, byte(codeIntZero+n))
	case negative:
		dst = append(dst, codeIntNegBig, ^byte(n))
	default:
		dst = append(dst, codeIntPosBig, byte(n))
	}
	start := len(dst)
	dst = append(dst, make([]byte, n)...)
	value.FillBytes(dst[start:])
	if negative {
		invert(dst[start:])
	}
	return dst, nil
}

// AppendFloat32 appends a 32-bit float.
func AppendFloat32(dst []byte, value float32) []byte {
	b := math.Float32bits(value)
	if b>>31 == 1 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return binary.BigEndian.AppendUint32(append(dst, codeFloat32), b)
}

// AppendFloat64 appends a 64-bit float.
func AppendFloat64(dst []byte, value float64) []byte {
	b := math.Float64bits(value)
	if b>>63 == 1 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(dst, codeFloat64), b)
}

// AppendBool appends false or true.
func AppendBool(dst []byte, value bool) []byte {
	if value {
		return append(dst, codeTrue)
	}
	return append(dst, codeFalse)
}

// AppendUUID appends a UUID.
func AppendUUID(dst []byte, value [16]byte) []byte {
	return append(append(dst, codeUUID), value[:]...)
}

// AppendStamp appends a versionstamp: ten bytes of the store and two of the
// user's.
func AppendStamp(dst []byte, version [10]byte, user uint16) []byte {
	return binary.BigEndian.AppendUint16(append(append(dst, codeStamp), version[:]...), user)
}

// AppendIncompleteStamp appends a versionstamp that the store completes at
// commit, and returns the offset of its ten bytes within the key.
func AppendIncompleteStamp(dst []byte, user uint16) (key []byte, offset int) {
	return AppendStamp(dst, incomplete, user), len(dst) + 1
}

// AppendNestedBegin begins a nested tuple: append its elements, then
// AppendNestedEnd.
func AppendNestedBegin(dst []byte) []byte { return append(dst, codeNested) }

// AppendNestedNil appends nil as an element of a nested tuple.
func AppendNestedNil(dst []byte) []byte { return append(dst, codeNil, escape) }

// AppendNestedEnd ends a nested tuple.
func AppendNestedEnd(dst []byte) []byte { return append(dst, codeNil) }

// Children returns the range of keys that hold a longer tuple than prefix and
// begin with it, prefix being a packed tuple: from begin, inclusive, to end,
// exclusive. The range of all keys that begin with prefix's bytes is wider: it
// holds Pack("a\x00b") for the prefix Pack("a").
func Children(prefix []byte) (begin, end []byte) {
	n := len(prefix)
	both := make([]byte, 2*(n+1))
	begin, end = both[:n+1:n+1], both[n+1:]
	copy(begin, prefix)
	copy(end, prefix)
	end[n] = 0xff
	return begin, end
}

func byteLength(value uint64) int { return (bits.Len64(value) + 7) / 8 }

// appendBigEndian appends the n low bytes of value.
func appendBigEndian(dst []byte, value uint64, n int) []byte {
	for shift := (n - 1) * 8; shift >= 0; shift -= 8 {
		dst = append(dst, byte(value>>shift))
	}
	return dst
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

package tuple

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
)

func isSmallInteger(code byte) bool { return codeIntNegBig < code && code < codeIntPosBig }

// scan returns the body of the element at offset, which is no nested tuple,
// and the offset behind the element.
func scan(key []byte, offset int) (body []byte, end int, err error) {
	if offset >= len(key) {
		return nil, 0, decodeError(key, offset, ErrTruncated)
	}
	begin, size := offset+1, 0
	switch code := key[offset]; {
	case code == codeNil, code == codeFalse, code == codeTrue:
	case code == codeBytes, code == codeString:
		return scanEscaped(key, offset)
	case isSmallInteger(code):
		size = max(int(code)-codeIntZero, codeIntZero-int(code))
	case code == codeIntNegBig, code == codeIntPosBig:
		if begin == len(key) {
			return nil, 0, decodeError(key, offset, ErrTruncated)
		}
		size = int(key[begin])
		if code == codeIntNegBig {
			size = int(^key[begin])
		}
		begin++
		if size <= maxSmallInteger {
			return nil, 0, decodeError(key, offset, ErrNotCanonical)
		}
	case code == codeFloat32:
		size = 4
	case code == codeFloat64:
		size = 8
	case code == codeUUID:
		size = len(UUID{})
	case code == codeStamp:
		size = len(Stamp{})
	default:
		return nil, 0, decodeError(key, offset, ErrUnknownCode)
	}
	if size > len(key)-begin {
		return nil, 0, decodeError(key, offset, ErrTruncated)
	}
	body = key[begin : begin+size]
	if !isShortest(key[offset], body) {
		return nil, 0, decodeError(key, offset, ErrNotCanonical)
	}
	return body, begin + size, nil
}

// isShortest reports whether an integer has no leading byte that adds nothing.
func isShortest(code byte, body []byte) bool {
	switch {
	case len(body) == 0 || code > codeIntPosBig:
		return true
	case code < codeIntZero:
		return body[0] != 0xff
	default:
		return body[0] != 0
	}
}

func scanEscaped(key []byte, offset int) (body []byte, end int, err error) {
	for i := offset + 1; ; i += 2 {
		n := bytes.IndexByte(key[min(i, len(key)):], 0)
		if n < 0 {
			return nil, 0, decodeError(key, offset, ErrTruncated)
		}
		i += n
		if i+1 == len(key) || key[i+1] != escape {
			return key[offset+1 : i], i + 1, nil
		}
	}
}

func appendUnescaped(dst, body []byte) []byte {
	for {
		i := bytes.IndexByte(body, 0)
		if i < 0 {
			return append(dst, body...)
		}
		dst = append(dst, body[:i+1]...)
		body = body[i+2:]
	}
}

func smallMagnitude(negative bool, body []byte) (magnitude uint64) {
	for _, b := range body {
		if negative {
			b = ^b
		}
		magnitude = magnitude<<8 | uint64(b)
	}
	return magnitude
}

func bigInteger(negative bool, body []byte) *big.Int {
	magnitude := bytes.Clone(body)
	if negative {
		invert(magnitude)
	}
	value := new(big.Int).SetBytes(magnitude)
	if negative {
		value.Neg(value)
	}
	return value
}

func decodeFloat32(body []byte) float32 {
	b := binary.BigEndian.Uint32(body)
	if b>>31 == 0 {
		b = ^b
	} else {
		b &^= 1 << 31
	}
	return math.Float32frombits(b)
}

func decodeFloat64(body []byte) float64 {
	b := binary.BigEndian.Uint64(body)
	if b>>63 == 0 {
		b = ^b
	} else {
		b &^= 1 << 63
	}
	return math.Float64frombits(b)
}

func decodeError(key []byte, offset int, err error) error {
	e := &DecodeError{Offset: offset, Err: err}
	if offset < len(key) {
		e.Code = key[offset]
	}
	return e
}

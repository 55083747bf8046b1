package tuple

import "math"

// Unpack returns the tuple of a key. Integers are int64, uint64 where they are
// too large for it, and *big.Int beyond that; nested tuples are Tuple. The
// elements share no memory with key. Every error is a *DecodeError.
func Unpack(key []byte) (Tuple, error) {
	t, _, err := decodeElements(key, 0, 0)
	return t, err
}

// decodeElements decodes the elements from offset to the end of the key or, at
// a depth above 0, of the nested tuple, and returns the offset behind. What
// was decoded before an error is returned with it.
func decodeElements(key []byte, offset, depth int) (t Tuple, end int, err error) {
	t = Tuple{}
	for offset < len(key) {
		if depth > 0 && key[offset] == codeNil {
			if offset+1 == len(key) || key[offset+1] != escape {
				return t, offset + 1, nil
			}
			t = append(t, nil)
			offset += 2
			continue
		}
		value, next, err := decode(key, offset, depth)
		if err != nil {
			return t, offset, err
		}
		t = append(t, value)
		offset = next
	}
	if depth > 0 {
		return t, offset, decodeError(key, offset, ErrTruncated)
	}
	return t, offset, nil
}

// decode decodes the element at offset and returns the offset behind it.
func decode(key []byte, offset, depth int) (value any, end int, err error) {
	if offset < len(key) && key[offset] == codeNested {
		if depth == MaxDepth {
			return nil, 0, decodeError(key, offset, ErrTooDeep)
		}
		t, end, err := decodeElements(key, offset+1, depth+1)
		if err != nil {
			return nil, 0, err
		}
		return t, end, nil
	}
	body, end, err := scan(key, offset)
	if err != nil {
		return nil, 0, err
	}
	return decodeScalar(key[offset], body), end, nil
}

func decodeScalar(code byte, body []byte) any {
	switch code {
	case codeNil:
		return nil
	case codeBytes:
		return appendUnescaped(make([]byte, 0, len(body)), body)
	case codeString:
		return string(appendUnescaped(nil, body))
	case codeFloat32:
		return decodeFloat32(body)
	case codeFloat64:
		return decodeFloat64(body)
	case codeFalse, codeTrue:
		return code == codeTrue
	case codeUUID:
		return UUID(body)
	case codeStamp:
		return Stamp(body)
	}
	return decodeInteger(code < codeIntZero, body)
}

func decodeInteger(negative bool, body []byte) any {
	if len(body) > maxSmallInteger {
		return bigInteger(negative, body)
	}
	magnitude := smallMagnitude(negative, body)
	switch {
	case negative && magnitude > 1<<63:
		return bigInteger(negative, body)
	case negative:
		return -int64(magnitude)
	case magnitude > math.MaxInt64:
		return magnitude
	}
	return int64(magnitude)
}

package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errNotMsgpack says where bytes stop being msgpack.
var errNotMsgpack = errors.New("not msgpack")

// maxViewDepth is the maximum nesting of a viewed value.
const maxViewDepth = 32

// msgpackView reads msgpack of any content. It returns nil, bool, int64,
// uint64, float64, string, []byte, []any or map[string]any. It takes memory in
// proportion to the bytes, whatever they claim to hold.
type msgpackView struct {
	b []byte
}

// viewMsgpack reads a value that must span all bytes.
func viewMsgpack(b []byte) (any, error) {
	v := msgpackView{b}
	value, err := v.value(0)
	if err == nil && len(v.b) > 0 {
		err = fmt.Errorf("%w: %d bytes behind its end", errNotMsgpack, len(v.b))
	}
	return value, err
}

func (v *msgpackView) take(n uint64) ([]byte, error) {
	if n > uint64(len(v.b)) {
		return nil, fmt.Errorf("%w: ends early", errNotMsgpack)
	}
	taken := v.b[:n]
	v.b = v.b[n:]
	return taken, nil
}

// number reads a big-endian integer of 1, 2, 4 or 8 bytes.
func (v *msgpackView) number(size int) (uint64, error) {
	b, err := v.take(uint64(size))
	if err != nil {
		return 0, err
	}
	var whole [8]byte
	copy(whole[8-size:], b)
	return binary.BigEndian.Uint64(whole[:]), nil
}

// sized reads a length of 1, 2 or 4 bytes and that many bytes.
func (v *msgpackView) sized(size int) ([]byte, error) {
	n, err := v.number(size)
	if err != nil {
		return nil, err
	}
	return v.take(n)
}

func (v *msgpackView) value(depth int) (any, error) {
	if depth > maxViewDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", errNotMsgpack, maxViewDepth)
	}
	head, err := v.take(1)
	if err != nil {
		return nil, err
	}
	switch c := head[0]; {
	case c <= 0x7f:
		return int64(c), nil
	case c <= 0x8f:
		return v.mapping(uint64(c&0x0f), depth)
	case c <= 0x9f:
		return v.list(uint64(c&0x0f), depth)
	case c <= 0xbf:
		b, err := v.take(uint64(c & 0x1f))
		return string(b), err
	case c >= 0xe0:
		return int64(int8(c)), nil
	default:
		return v.coded(c, depth)
	}
}

// coded reads the rest of a value that begins with a code of its own.
func (v *msgpackView) coded(c byte, depth int) (any, error) {
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xc4, 0xc5, 0xc6:
		return v.sized(1 << (c - 0xc4))
	case 0xca:
		n, err := v.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := v.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		return v.number(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		n, err := v.number(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	case 0xd9, 0xda, 0xdb:
		b, err := v.sized(1 << (c - 0xd9))
		return string(b), err
	case 0xdc, 0xdd:
		n, err := v.number(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return v.list(n, depth)
	case 0xde, 0xdf:
		n, err := v.number(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return v.mapping(n, depth)
	default:
		return nil, fmt.Errorf("%w: code 0x%02x", errNotMsgpack, c)
	}
}

func (v *msgpackView) list(n uint64, depth int) (any, error) {
	list := []any{}
	for range n {
		item, err := v.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func (v *msgpackView) mapping(n uint64, depth int) (any, error) {
	fields := map[string]any{}
	for range n {
		name, err := v.value(depth + 1)
		if err != nil {
			return nil, err
		}
		value, err := v.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if text, ok := name.(string); ok {
			fields[text] = value
		} else {
			fields[fmt.Sprint(name)] = value
		}
	}
	return fields, nil
}

package wasm

import (
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

var errCutShort = errors.New("ends in the middle of an item")

// reader walks the bytes of a module. After an error every method returns zero
// values, and err stays.
type reader struct {
	bytes []byte
	at    int
	err   error
}

func (r *reader) left() int { return len(r.bytes) - r.at }

func (r *reader) more() bool { return r.err == nil && r.left() > 0 }

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.at = len(r.bytes)
	}
}

func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(r.left()) {
		r.failf("%w", errCutShort)
	}
	if r.err != nil {
		return nil
	}
	taken := r.bytes[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return taken
}

func (r *reader) u8() byte {
	if taken := r.take(1); taken != nil {
		return taken[0]
	}
	return 0
}

// leb reads an integer of at most width bits; its sign is ignored.
func (r *reader) leb(width int) (value uint64) {
	for shift := 0; ; shift += 7 {
		octet := r.u8()
		if r.err != nil {
			return 0
		}
		if shift >= width {
			r.failf("has an integer of more than %d bits", width)
			return 0
		}
		value |= uint64(octet&0x7f) << shift
		if octet&0x80 == 0 {
			return value
		}
	}
}

func (r *reader) u32() uint32 {
	value := r.leb(32)
	if bits.Len64(value) > 32 {
		r.failf("has an integer of more than 32 bits")
		return 0
	}
	return uint32(value)
}

// count reads the length of a vector whose items take at least one byte each.
func (r *reader) count(what string, most int) int {
	n := r.u32()
	if int64(n) > int64(most) {
		r.failf("has %d %s, the limit is %d", n, what, most)
		return 0
	}
	if int64(n) > int64(r.left()) {
		r.failf("%w", errCutShort)
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	taken := r.take(uint64(r.u32()))
	if r.err == nil && !utf8.Valid(taken) {
		r.failf("has a name that is not UTF-8")
	}
	return string(taken)
}

// constant walks over an expression that computes an initial value.
func (r *reader) constant() {
	for r.err == nil {
		switch op := r.u8(); op {
		case 0x0b: // end
			return
		case 0x41, 0x23, 0xd0, 0xd2: // i32.const, global.get, ref.null, ref.func
			r.leb(35)
		case 0x42: // i64.const
			r.leb(70)
		case 0x43: // f32.const
			r.take(4)
		case 0x44: // f64.const
			r.take(8)
		case 0xfd: // v128.const
			if r.u32() != 12 {
				r.failf("has an initial value that is not constant")
			}
			r.take(16)
		default:
			r.failf("has an initial value that is not constant (operation 0x%02x)", op)
		}
	}
}

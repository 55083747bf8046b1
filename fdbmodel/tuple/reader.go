package tuple

import (
	"bytes"
	"math"
)

// Reader takes a key apart, element by element. Its first error sticks: all
// later calls return zero values, and Done returns the error. A Reader keeps
// and does not change the key.
type Reader struct {
	key    []byte
	offset int
	err    error
}

// NewReader returns a reader of key.
func NewReader(key []byte) Reader { return Reader{key: key} }

// More reports whether there is another element and no error.
func (r *Reader) More() bool { return r.err == nil && r.offset < len(r.key) }

// Rest returns the bytes that were not read yet.
func (r *Reader) Rest() []byte { return r.key[r.offset:] }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Done returns the first error, or ErrTrailing if elements are left.
func (r *Reader) Done() error {
	if r.err == nil && r.offset < len(r.key) {
		r.fail(r.offset, ErrTrailing)
	}
	return r.err
}

// IsNil reports whether the next element is nil, and takes it if so.
func (r *Reader) IsNil() bool {
	if !r.More() || r.key[r.offset] != codeNil {
		return false
	}
	r.offset++
	return true
}

// Bytes takes a byte string, and returns a copy.
func (r *Reader) Bytes() []byte {
	body, ok := r.take(codeBytes)
	if !ok {
		return nil
	}
	return appendUnescaped(make([]byte, 0, len(body)), body)
}

// Text takes text.
func (r *Reader) Text() string {
	body, ok := r.take(codeString)
	if !ok {
		return ""
	}
	if bytes.IndexByte(body, 0) < 0 {
		return string(body)
	}
	return string(appendUnescaped(make([]byte, 0, len(body)), body))
}

// IsText reports whether the next element is text. It takes nothing.
func (r *Reader) IsText() bool { return r.More() && r.key[r.offset] == codeString }

// Expect takes text that must be equal to want, such as the name of a
// subspace. It allocates nothing.
func (r *Reader) Expect(want string) {
	start := r.offset
	body, ok := r.take(codeString)
	if !ok || string(body) == want {
		return
	}
	if bytes.IndexByte(body, 0) < 0 || string(appendUnescaped(nil, body)) != want {
		r.fail(start, ErrUnexpected)
	}
}

// Int takes an integer.
func (r *Reader) Int() int64 {
	start := r.offset
	negative, magnitude, ok := r.integer()
	switch {
	case !ok:
		return 0
	case negative && magnitude <= 1<<63:
		return -int64(magnitude)
	case !negative && magnitude <= math.MaxInt64:
		return int64(magnitude)
	}
	r.fail(start, ErrUnexpected)
	return 0
}

// Uint takes an integer that is not negative.
func (r *Reader) Uint() uint64 {
	start := r.offset
	negative, magnitude, ok := r.integer()
	if ok && negative {
		r.fail(start, ErrUnexpected)
		return 0
	}
	return magnitude
}

// Float32 takes a 32-bit float.
func (r *Reader) Float32() float32 {
	body, ok := r.take(codeFloat32)
	if !ok {
		return 0
	}
	return decodeFloat32(body)
}

// Float64 takes a 64-bit float.
func (r *Reader) Float64() float64 {
	body, ok := r.take(codeFloat64)
	if !ok {
		return 0
	}
	return decodeFloat64(body)
}

// Bool takes false or true.
func (r *Reader) Bool() bool {
	if r.More() && r.key[r.offset] == codeTrue {
		r.offset++
		return true
	}
	r.take(codeFalse)
	return false
}

// UUID takes a UUID.
func (r *Reader) UUID() (id UUID) {
	body, _ := r.take(codeUUID)
	copy(id[:], body)
	return id
}

// Stamp takes a versionstamp.
func (r *Reader) Stamp() (s Stamp) {
	body, _ := r.take(codeStamp)
	copy(s[:], body)
	return s
}

// Any takes the next element, whatever it is, as Unpack returns it.
func (r *Reader) Any() any {
	if r.err != nil {
		return nil
	}
	value, n, err := decode(r.key, r.offset, 0)
	if err != nil {
		r.err = err
		return nil
	}
	r.offset = n
	return value
}

// take returns the body of the next element, which must have code.
func (r *Reader) take(code byte) ([]byte, bool) {
	if r.err != nil {
		return nil, false
	}
	if r.offset < len(r.key) && r.key[r.offset] != code {
		r.fail(r.offset, ErrUnexpected)
		return nil, false
	}
	body, end, err := scan(r.key, r.offset)
	if err != nil {
		r.err = err
		return nil, false
	}
	r.offset = end
	return body, true
}

func (r *Reader) integer() (negative bool, magnitude uint64, ok bool) {
	if r.err != nil {
		return false, 0, false
	}
	if r.offset < len(r.key) && !isSmallInteger(r.key[r.offset]) {
		r.fail(r.offset, ErrUnexpected)
		return false, 0, false
	}
	body, end, err := scan(r.key, r.offset)
	if err != nil {
		r.err = err
		return false, 0, false
	}
	negative = r.key[r.offset] < codeIntZero
	r.offset = end
	return negative, smallMagnitude(negative, body), true
}

func (r *Reader) fail(offset int, err error) { r.err = decodeError(r.key, offset, err) }

package tuple

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"reflect"
)

// Tuple is a list of elements: nil, []byte, string, Tuple, integers, *big.Int,
// float32, float64, bool, UUID or any other array of 16 bytes, Stamp.
type Tuple []any

// UUID is how Unpack returns a UUID.
type UUID [16]byte

// String returns the usual form of 36 characters.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// Stamp is a versionstamp in a tuple: eight bytes of commit version and two of
// order within it, both big endian, then the user's own two.
type Stamp [12]byte

var incomplete = [10]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// NewStamp returns the stamp of version, such as a kv.Stamp, and user.
func NewStamp(version [10]byte, user uint16) Stamp {
	var s Stamp
	copy(s[:], version[:])
	binary.BigEndian.PutUint16(s[10:], user)
	return s
}

// IncompleteStamp returns a stamp that the store completes at commit.
func IncompleteStamp(user uint16) Stamp { return NewStamp(incomplete, user) }

// Version returns the ten bytes that the store gave.
func (s Stamp) Version() [10]byte { return [10]byte(s[:10]) }

// User returns the user's own part.
func (s Stamp) User() uint16 { return binary.BigEndian.Uint16(s[10:]) }

// Incomplete reports whether the store has yet to complete the stamp.
func (s Stamp) Incomplete() bool { return s.Version() == incomplete }

// String returns the stamp as "stamp(VERSION-ORDER, USER)", the first two in
// hexadecimal.
func (s Stamp) String() string {
	if s.Incomplete() {
		return fmt.Sprintf("stamp(incomplete, %d)", s.User())
	}
	return fmt.Sprintf("stamp(%x-%x, %d)", s[:8], s[8:10], s.User())
}

// Pack returns the key of a tuple. It returns ErrUnsupported,
// ErrIntegerTooLarge, ErrTooDeep or, for a stamp that is not complete,
// ErrIncompleteStamp.
func Pack(elements ...any) ([]byte, error) {
	p := packer{key: make([]byte, 0, 64)}
	if err := p.tuple(elements, 0); err != nil {
		return nil, err
	}
	if p.stamps > 0 {
		return nil, ErrIncompleteStamp
	}
	return p.key, nil
}

// PackIncomplete returns the key of a tuple with exactly one incomplete stamp,
// nested ones included, and the offset of the ten bytes that the store
// completes. It returns ErrStampCount and what Pack does.
func PackIncomplete(elements ...any) (key []byte, offset int, err error) {
	p := packer{key: make([]byte, 0, 64)}
	if err := p.tuple(elements, 0); err != nil {
		return nil, 0, err
	}
	if p.stamps != 1 {
		return nil, 0, fmt.Errorf("%w, have %d", ErrStampCount, p.stamps)
	}
	return p.key, p.offset, nil
}

type packer struct {
	key    []byte
	stamps int // incomplete ones
	offset int // of the last incomplete stamp's ten bytes
}

func (p *packer) tuple(elements []any, depth int) error {
	if depth > MaxDepth {
		return ErrTooDeep
	}
	for i, e := range elements {
		if err := p.element(e, depth); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func (p *packer) element(e any, depth int) error {
	switch e := e.(type) {
	case nil:
		if depth == 0 {
			p.key = AppendNil(p.key)
		} else {
			p.key = AppendNestedNil(p.key)
		}
	case Tuple:
		p.key = AppendNestedBegin(p.key)
		if err := p.tuple(e, depth+1); err != nil {
			return err
		}
		p.key = AppendNestedEnd(p.key)
	case []byte:
		p.key = AppendBytes(p.key, e)
	case string:
		p.key = AppendString(p.key, e)
	case float32:
		p.key = AppendFloat32(p.key, e)
	case float64:
		p.key = AppendFloat64(p.key, e)
	case bool:
		p.key = AppendBool(p.key, e)
	case Stamp:
		if e.Incomplete() {
			p.stamps++
			p.offset = len(p.key) + 1
		}
		p.key = AppendStamp(p.key, e.Version(), e.User())
	default:
		return p.number(e)
	}
	return nil
}

// number packs integers and, through reflection, arrays of 16 bytes.
func (p *packer) number(e any) error {
	if b, ok := e.(*big.Int); ok && b != nil {
		var err error
		p.key, err = AppendBig(p.key, b)
		return err
	}
	v := reflect.ValueOf(e)
	switch {
	case v.CanInt():
		p.key = AppendInt(p.key, v.Int())
	case v.CanUint():
		p.key = AppendUint(p.key, v.Uint())
	case v.Kind() == reflect.Array && v.Type().ConvertibleTo(reflect.TypeFor[UUID]()):
		p.key = AppendUUID(p.key, v.Convert(reflect.TypeFor[UUID]()).Interface().(UUID))
	default:
		return fmt.Errorf("%w: %T", ErrUnsupported, e)
	}
	return nil
}

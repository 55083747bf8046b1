package layout

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// fields appends a record as a msgpack map with short names. Fields with their
// zero value are left out. The zero value of fields is not usable; call begin.
type fields struct {
	b     []byte
	start int // offset of the map's header
	n     int
}

// Record is the content of a value. Records encode themselves by hand, because
// they are written and read for every future.
type Record interface {
	// appendFields appends the record's fields.
	appendFields(f fields) fields
	// readField reads the value of a field from the beginning of b, and returns
	// what follows it. A name that the record does not have is skipped.
	readField(name, b []byte) ([]byte, error)
}

// begin starts a map after b.
func begin(b []byte) fields { return fields{b: append(b, 0x80), start: len(b)} }

// end writes the map's size and returns everything that was appended.
func (f fields) end() []byte {
	if f.n < 16 {
		f.b[f.start] = 0x80 | byte(f.n)
		return f.b
	}
	f.b = append(f.b, 0, 0)
	copy(f.b[f.start+3:], f.b[f.start+1:])
	f.b[f.start], f.b[f.start+1], f.b[f.start+2] = 0xde, byte(f.n>>8), byte(f.n)
	return f.b
}

// appendRecord appends a whole record.
func appendRecord(b []byte, r Record) []byte { return r.appendFields(begin(b)).end() }

func (f fields) name(name string) fields {
	f.b = msgp.AppendString(f.b, name)
	f.n++
	return f
}

func (f fields) text(name, value string) fields {
	if value != "" {
		f = f.name(name)
		f.b = msgp.AppendString(f.b, value)
	}
	return f
}

func (f fields) bytes(name string, value []byte) fields {
	if len(value) > 0 {
		f = f.name(name)
		f.b = msgp.AppendBytes(f.b, value)
	}
	return f
}

func (f fields) int(name string, value int64) fields {
	if value != 0 {
		f = f.name(name)
		f.b = msgp.AppendInt64(f.b, value)
	}
	return f
}

func (f fields) bool(name string, value bool) fields {
	if value {
		f = f.name(name)
		f.b = msgp.AppendBool(f.b, true)
	}
	return f
}

func (f fields) float(name string, value float64) fields {
	if value != 0 {
		f = f.name(name)
		f.b = msgp.AppendFloat64(f.b, value)
	}
	return f
}

// texts leaves out an empty list.
func (f fields) texts(name string, values []string) fields {
	if len(values) > 0 {
		f = f.name(name)
		f.b = msgp.AppendArrayHeader(f.b, uint32(len(values)))
		for _, value := range values {
			f.b = msgp.AppendString(f.b, value)
		}
	}
	return f
}

// pairs leaves out an empty map.
func (f fields) pairs(name string, values map[string]string) fields {
	if len(values) > 0 {
		f = f.name(name)
		f.b = msgp.AppendMapStrStr(f.b, values)
	}
	return f
}

// record appends a nested record. The caller leaves out an empty one.
func (f fields) record(name string, r Record) fields {
	f = f.name(name)
	f.b = appendRecord(f.b, r)
	return f
}

// readRecord reads a whole record from the beginning of b, and returns what
// follows it. Fields that the record does not have are skipped.
func readRecord(b []byte, r Record) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	for ; n > 0 && err == nil; n-- {
		var name []byte
		if name, b, err = msgp.ReadMapKeyZC(b); err == nil {
			b, err = r.readField(name, b)
		}
	}
	return b, err
}

func readText[T ~string](b []byte, into *T) ([]byte, error) {
	text, rest, err := msgp.ReadStringZC(b)
	if err == nil {
		*into = T(text)
	}
	return rest, err
}

func readInt[T ~int | ~int64](b []byte, into *T) ([]byte, error) {
	n, rest, err := msgp.ReadInt64Bytes(b)
	*into = T(n)
	return rest, err
}

func readBool(b []byte, into *bool) (rest []byte, err error) {
	*into, rest, err = msgp.ReadBoolBytes(b)
	return rest, err
}

// readBytes copies: a record must not keep the store's pages in memory.
func readBytes[T ~[]byte](b []byte, into *T) ([]byte, error) {
	value, rest, err := msgp.ReadBytesZC(b)
	if err == nil {
		*into = append(T(nil), value...)
	}
	return rest, err
}

func readIDs(b []byte, into *IDList) ([]byte, error) {
	rest, err := readBytes(b, into)
	if err == nil && len(*into)%len(ID{}) != 0 {
		err = fmt.Errorf("%d bytes of ids", len(*into))
	}
	return rest, err
}

func readID(b []byte, into *ID) ([]byte, error) {
	id, rest, err := msgp.ReadBytesZC(b)
	if err == nil && len(id) != len(into) {
		err = fmt.Errorf("an id of %d bytes", len(id))
	}
	copy(into[:], id)
	return rest, err
}

func readTexts[T ~string](b []byte, into *[]T) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	if int64(n) > int64(len(b)) {
		return b, fmt.Errorf("a list of %d texts in %d bytes", n, len(b))
	}
	texts := make([]T, n)
	for i := range texts {
		if b, err = readText(b, &texts[i]); err != nil {
			return b, err
		}
	}
	*into = texts
	return b, nil
}

func readPairs(b []byte, into *map[string]string) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return b, err
	}
	if 2*int64(n) > int64(len(b)) {
		return b, fmt.Errorf("a map of %d texts in %d bytes", n, len(b))
	}
	pairs := make(map[string]string, n)
	for range n {
		var name, value string
		if b, err = readText(b, &name); err != nil {
			return b, err
		}
		if b, err = readText(b, &value); err != nil {
			return b, err
		}
		pairs[name] = value
	}
	*into = pairs
	return b, nil
}

// readRef reads a record into a new pointer of its owner.
func readRef[T any, P interface {
	*T
	Record
}](b []byte, into **T) ([]byte, error) {
	r := new(T)
	rest, err := readRecord(b, P(r))
	*into = r
	return rest, err
}

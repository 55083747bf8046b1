package layout

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Record is the content of a value: a pointer to a struct. It is a msgpack map of the fields
// that have a msgpack tag, in the order of the struct. The tag has the field's name in the
// map, of one or two letters. Zero values are left out, but for ids and inner records whose
// tag is without omitempty. A field may be a bool, an int, an int64, a uint8, a float64, a
// string, bytes, an ID, an IDList or a State, a list of texts or of int64, texts by texts, a
// record, and a pointer to, a slice or an array of records. Functions that take a record panic
// for one with fields of another type.
type Record any

// schema is how records of one type are encoded.
type schema struct {
	of      reflect.Type
	pointer reflect.Type // to records; nil for those that are only inside of others
	fields  []field
	names   []uint16 // of the fields: both letters, or 0 and one letter
	size    int      // of most records, in bytes, without what is in bulky fields
	bulky   []int    // fields that may be long: bytes, and records by reference
}

// field is one field of a record.
type field struct {
	shape  shape
	always bool    // not left out
	offset uintptr // in the record
	head   string  // its name in msgpack
	of     reflect.Type
	record *schema // of the records in it
}

// The first byte of names of fields in msgpack.
const (
	oneLetter  = 0xa1
	twoLetters = 0xa2
)

// What records are expected to need, in bytes.
const (
	headSize   = 16
	fieldSize  = 24
	recordSize = 160
)

// shape is how a field lies in memory and in msgpack.
type shape uint8

const (
	shapeText shape = iota + 1
	shapeInt
	shapeInt64
	shapeByte
	shapeBool
	shapeFloat
	shapeBytes
	shapeIDs // bytes of whole ids
	shapeID
	shapeState
	shapeTexts
	shapePairs // texts by texts
	shapeInts
	shapeRecord
	shapeRef   // a pointer to a record
	shapeList  // a slice of records
	shapeArray // records up to the first empty one
)

// schemas are those of the records that the process has met: a hash table by the pointer to
// the type, with open addressing, to which entries are only added. The lookup of a sync.Map
// takes 15 ns, where a small record is encoded in 65.
var schemas [1024]atomic.Pointer[schema]

// schemaOf returns the schema of a record, and where the record is.
func schemaOf(r Record) (*schema, unsafe.Pointer) {
	const spread = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
	v := reflect.ValueOf(r)
	of := v.Type()
	at := uint64(reflect.ValueOf(of).Pointer()) * spread >> (64 - 10)
	for range schemas {
		slot := &schemas[at%uint64(len(schemas))]
		s := slot.Load()
		if s == nil {
			made := newSchema(of.Elem())
			made.pointer = of
			slot.CompareAndSwap(nil, made)
			s = slot.Load()
		}
		if s.pointer == of {
			return s, v.UnsafePointer()
		}
		at++
	}
	panic(fmt.Sprintf("layout: more than %d types of records", len(schemas)))
}

// newSchema returns the schema of a type of records. It panics for a field that has no shape.
func newSchema(t reflect.Type) *schema {
	s := &schema{of: t}
	for i := range t.NumField() {
		f := t.Field(i)
		name, omit, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range newSchema(f.Type).fields {
				inner.offset += f.Offset
				s.add(inner)
			}
		case name != "" && name != "-":
			shape, record := shapeOf(f.Type)
			s.add(field{shape, omit != "omitempty", f.Offset, headOf(name), f.Type, record})
		}
	}
	s.size = min(headSize+fieldSize*len(s.fields), recordSize)
	return s
}

func (s *schema) add(f field) {
	if f.shape == shapeBytes || f.shape == shapeIDs || f.shape == shapeRef {
		s.bulky = append(s.bulky, len(s.fields))
	}
	name, _, _ := readName([]byte(f.head))
	s.fields, s.names = append(s.fields, f), append(s.names, name)
}

// headOf returns the name of a field in msgpack.
func headOf(name string) string {
	if len(name) > 2 {
		panic(fmt.Sprintf("layout: field name %q is longer than two letters", name))
	}
	return string([]byte{oneLetter - 1 + byte(len(name))}) + name
}

// shapeOf returns the shape of fields of a type, with the schema of the records in it.
func shapeOf(t reflect.Type) (shape, *schema) {
	switch t {
	case reflect.TypeFor[ID]():
		return shapeID, nil
	case reflect.TypeFor[IDList]():
		return shapeIDs, nil
	case reflect.TypeFor[State]():
		return shapeState, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeRef, newSchema(t.Elem())
	case reflect.Struct:
		return shapeRecord, newSchema(t)
	case reflect.Array:
		return shapeArray, newSchema(t.Elem())
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Struct:
			return shapeList, newSchema(t.Elem())
		case reflect.Uint8:
			return shapeBytes, nil
		case reflect.String:
			return shapeTexts, nil
		case reflect.Int64:
			return shapeInts, nil
		}
	case reflect.Map:
		if t == reflect.TypeFor[map[string]string]() {
			return shapePairs, nil
		}
	}
	if plain := plainShapes[t.Kind()]; plain != 0 {
		return plain, nil
	}
	panic(fmt.Sprintf("layout: no shape for fields of type %v", t))
}

var plainShapes = [...]shape{
	reflect.Bool: shapeBool, reflect.Int: shapeInt, reflect.Int64: shapeInt64, reflect.Uint8: shapeByte,
	reflect.Float64: shapeFloat, reflect.String: shapeText, reflect.UnsafePointer: 0,
}

package layout

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/tinylib/msgp/msgp"
)

// emptyMap is the msgpack of a record without fields.
const emptyMap = 0x80

// appendRecord appends a whole record.
func appendRecord(b []byte, r Record) []byte {
	s, p := schemaOf(r)
	return s.append(slices.Grow(b, s.room(p)), p)
}

// room returns how many bytes the record at p is expected to need.
func (s *schema) room(p unsafe.Pointer) int {
	room := s.size
	for _, i := range s.bulky {
		f := &s.fields[i]
		if at := unsafe.Add(p, f.offset); f.shape != shapeRef {
			room += len(*(*[]byte)(at))
		} else if ref := *(*unsafe.Pointer)(at); ref != nil {
			room += f.record.room(ref)
		}
	}
	return room
}

// append appends the record at p. A record must be of the schema's type: the fields are
// taken from their offsets.
func (s *schema) append(b []byte, p unsafe.Pointer) []byte {
	start, n := len(b), 0
	b = append(b, emptyMap)
	for i := range s.fields {
		f := &s.fields[i]
		at := unsafe.Add(p, f.offset)
		switch f.shape {
		case shapeText:
			if v := *(*string)(at); v != "" {
				b, n = msgp.AppendString(append(b, f.head...), v), n+1
			}
		case shapeInt:
			if v := *(*int)(at); v != 0 {
				b, n = msgp.AppendInt64(append(b, f.head...), int64(v)), n+1
			}
		case shapeInt64:
			if v := *(*int64)(at); v != 0 {
				b, n = msgp.AppendInt64(append(b, f.head...), v), n+1
			}
		case shapeByte:
			if v := *(*byte)(at); v != 0 {
				b, n = msgp.AppendInt64(append(b, f.head...), int64(v)), n+1
			}
		case shapeBool:
			if *(*bool)(at) {
				b, n = msgp.AppendBool(append(b, f.head...), true), n+1
			}
		case shapeFloat:
			if v := *(*float64)(at); v != 0 {
				b, n = msgp.AppendFloat64(append(b, f.head...), v), n+1
			}
		case shapeBytes, shapeIDs:
			if v := *(*[]byte)(at); len(v) > 0 {
				b, n = msgp.AppendBytes(append(b, f.head...), v), n+1
			}
		default:
			before := len(b)
			if b = f.append(b, at); len(b) > before {
				n++
			}
		}
	}
	return endMap(b, start, n)
}

// endMap writes the number of fields of the map that begins at start.
func endMap(b []byte, start, n int) []byte {
	if n < 16 {
		b[start] = emptyMap | byte(n)
		return b
	}
	b = append(b, 0, 0)
	copy(b[start+3:], b[start+1:])
	b[start], b[start+1], b[start+2] = 0xde, byte(n>>8), byte(n)
	return b
}

// append appends a field of one of the rarer shapes, if it isn't left out.
func (f *field) append(b []byte, at unsafe.Pointer) []byte {
	switch f.shape {
	case shapeID:
		if id := (*ID)(at); f.always || !id.IsZero() {
			return msgp.AppendBytes(append(b, f.head...), id[:])
		}
	case shapeState:
		return msgp.AppendString(append(b, f.head...), (*State)(at).String())
	case shapeTexts:
		if texts := *(*[]string)(at); len(texts) > 0 {
			b = msgp.AppendArrayHeader(append(b, f.head...), uint32(len(texts)))
			for _, text := range texts {
				b = msgp.AppendString(b, text)
			}
		}
	case shapePairs:
		if pairs := *(*map[string]string)(at); len(pairs) > 0 {
			return msgp.AppendMapStrStr(append(b, f.head...), pairs)
		}
	case shapeInts:
		if ints := *(*[]int64)(at); len(ints) > 0 {
			b = msgp.AppendArrayHeader(append(b, f.head...), uint32(len(ints)))
			for _, i := range ints {
				b = msgp.AppendInt64(b, i)
			}
		}
	case shapeRecord:
		before := len(b)
		b = f.record.append(append(b, f.head...), at)
		if !f.always && b[before+len(f.head)] == emptyMap {
			return b[:before]
		}
	case shapeRef:
		if p := *(*unsafe.Pointer)(at); p != nil {
			return f.record.append(append(b, f.head...), p)
		}
	case shapeList, shapeArray:
		return f.appendList(b, at)
	}
	return b
}

// appendList appends a list of records. That of an array ends at the first empty one.
func (f *field) appendList(b []byte, at unsafe.Pointer) []byte {
	list, n := reflect.NewAt(f.of, at).Elem(), 0
	for n < list.Len() && (f.shape == shapeList || !list.Index(n).IsZero()) {
		n++
	}
	if n == 0 {
		return b
	}
	b = msgp.AppendArrayHeader(append(b, f.head...), uint32(n))
	for i := range n {
		b = f.record.append(b, list.Index(i).Addr().UnsafePointer())
	}
	return b
}

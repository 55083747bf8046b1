package layout

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/tinylib/msgp/msgp"
)

// readRecord reads a whole record from the beginning of b, and returns what
// follows it. Fields that the record does not have are skipped.
func readRecord(b []byte, r Record) ([]byte, error) {
	s, p := schemaOf(r)
	return s.read(b, p)
}

func (s *schema) read(b []byte, p unsafe.Pointer) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	next := 0
	for ; n > 0 && err == nil; n-- {
		var name uint16
		if name, b, err = readName(b); err != nil {
			break
		}
		i := s.find(name, next)
		if i < 0 {
			b, err = msgp.Skip(b)
			continue
		}
		next = i + 1
		f := &s.fields[i]
		switch at := unsafe.Add(p, f.offset); f.shape {
		case shapeText:
			b, err = readText(b, (*string)(at))
		case shapeInt:
			*(*int)(at), b, err = msgp.ReadIntBytes(b)
		case shapeInt64:
			*(*int64)(at), b, err = msgp.ReadInt64Bytes(b)
		case shapeBytes:
			b, err = readBytes(b, (*[]byte)(at))
		default:
			b, err = f.read(b, at)
		}
	}
	return b, err
}

// readName reads the name of a field: 0 for one that no record has.
func readName(b []byte) (name uint16, rest []byte, err error) {
	switch {
	case len(b) > 1 && b[0] == oneLetter:
		return uint16(b[1]), b[2:], nil
	case len(b) > 2 && b[0] == twoLetters:
		return uint16(b[1])<<8 | uint16(b[2]), b[3:], nil
	}
	_, rest, err = msgp.ReadMapKeyZC(b)
	return 0, rest, err
}

// find returns the index of a field, -1 if the record has none of that name. Fields come in
// the order of the schema unless another version wrote them: it looks from next on first.
func (s *schema) find(name uint16, next int) int {
	if i := slices.Index(s.names[next:], name); i >= 0 {
		return next + i
	}
	return slices.Index(s.names[:next], name)
}

// read reads a field of one of the rarer shapes from the beginning of b, and returns what
// follows it.
func (f *field) read(b []byte, at unsafe.Pointer) (rest []byte, err error) {
	switch f.shape {
	case shapeByte:
		*(*byte)(at), rest, err = msgp.ReadUint8Bytes(b)
	case shapeBool:
		*(*bool)(at), rest, err = msgp.ReadBoolBytes(b)
	case shapeFloat:
		*(*float64)(at), rest, err = msgp.ReadFloat64Bytes(b)
	case shapeIDs:
		if rest, err = readBytes(b, (*[]byte)(at)); err == nil && len(*(*[]byte)(at))%len(ID{}) != 0 {
			err = fmt.Errorf("%d bytes of ids", len(*(*[]byte)(at)))
		}
	case shapeID:
		return readID(b, (*ID)(at))
	case shapeState:
		var name []byte
		if name, rest, err = msgp.ReadStringZC(b); err == nil {
			err = (*State)(at).UnmarshalText(name)
		}
	case shapeTexts:
		return readEach(b, (*[]string)(at), readText)
	case shapePairs:
		return readPairs(b, (*map[string]string)(at))
	case shapeInts:
		return readEach(b, (*[]int64)(at), func(b []byte, n *int64) (rest []byte, err error) {
			*n, rest, err = msgp.ReadInt64Bytes(b)
			return rest, err
		})
	case shapeRecord:
		return f.record.read(b, at)
	case shapeRef:
		p := reflect.New(f.record.of).UnsafePointer()
		rest, err = f.record.read(b, p)
		*(*unsafe.Pointer)(at) = p
	case shapeList, shapeArray:
		return f.readList(b, at)
	}
	return rest, err
}

// readList reads a list of records.
func (f *field) readList(b []byte, at unsafe.Pointer) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	list := reflect.New(f.of).Elem()
	switch {
	case int64(n) > int64(len(b)), f.shape == shapeArray && int(n) > list.Len():
		return b, fmt.Errorf("a list of %d records in %d bytes", n, len(b))
	case f.shape == shapeList:
		list.Set(reflect.MakeSlice(f.of, int(n), int(n)))
	}
	for i := range int(n) {
		if b, err = f.record.read(b, list.Index(i).Addr().UnsafePointer()); err != nil {
			return b, err
		}
	}
	reflect.NewAt(f.of, at).Elem().Set(list)
	return b, nil
}

// readText copies, but for the texts that most records have.
func readText(b []byte, into *string) ([]byte, error) {
	text, rest, err := msgp.ReadStringZC(b)
	if err != nil {
		return rest, err
	}
	switch string(text) {
	case DefaultQueue:
		*into = DefaultQueue
	case CodecMsgpack:
		*into = CodecMsgpack
	case CodecJSON:
		*into = CodecJSON
	case CodecRaw:
		*into = CodecRaw
	default:
		*into = string(text)
	}
	return rest, nil
}

// readBytes copies: a record must not keep the store's pages in memory.
func readBytes(b []byte, into *[]byte) ([]byte, error) {
	value, rest, err := msgp.ReadBytesZC(b)
	if err == nil {
		*into = append([]byte(nil), value...)
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

// readEach reads a list.
func readEach[T any](b []byte, into *[]T, read func([]byte, *T) ([]byte, error)) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	if int64(n) > int64(len(b)) {
		return b, fmt.Errorf("a list of %d elements in %d bytes", n, len(b))
	}
	list := make([]T, n)
	for i := range list {
		if b, err = read(b, &list[i]); err != nil {
			return b, err
		}
	}
	*into = list
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

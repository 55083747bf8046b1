package futures

import (
	"bytes"
	"encoding"
	"reflect"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// encodeMsgpack encodes a value, which it is given a pointer to. The entries of maps are in the order of their keys,
// so that equal values have the same bytes: keys, unique futures and actors compare them. Of what is in an
// interface, only maps of strings to strings, to truth values and to any are in order, and of a struct that is
// encoded as an array none.
func encodeMsgpack(value any) ([]byte, error) {
	var encoded bytes.Buffer
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&encoded)
	e.SetSortMapKeys(true)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	t := reflect.TypeOf(value)
	if !mayHaveMaps(t) {
		return encoded.Bytes(), nil
	}
	r := bytes.NewReader(encoded.Bytes())
	s := mapSorter{all: encoded.Bytes(), rest: r, decoder: msgpack.NewDecoder(r), sorted: make([]byte, 0, encoded.Len())}
	if s.value(t) != nil {
		return encoded.Bytes(), nil // an encoder of the value's own has made something else of it
	}
	return s.sorted, nil
}

// mapSorter copies an encoded value with the entries of its maps in the order of their keys. It goes by the type: the
// fields of structs, which are maps as well, keep their order.
type mapSorter struct {
	all     []byte
	rest    *bytes.Reader
	decoder *msgpack.Decoder
	sorted  []byte
}

func (s *mapSorter) at() int { return len(s.all) - s.rest.Len() }

// copy copies what read reads.
func (s *mapSorter) copy(read func() error) error {
	from := s.at()
	err := read()
	s.sorted = append(s.sorted, s.all[from:s.at()]...)
	return err
}

// length copies the head of a map or an array, and returns how many elements it has.
func (s *mapSorter) length(decode func() (int, error)) (n int, err error) {
	err = s.copy(func() error {
		n, err = decode()
		return err
	})
	return n, err
}

func (s *mapSorter) value(t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !encodesItself(t) {
		t = t.Elem()
	}
	code, err := s.decoder.PeekCode()
	if err != nil {
		return err
	}
	const null = 0xc0
	if code == null || encodesItself(t) || !mayHaveMaps(t) {
		return s.copy(s.decoder.Skip)
	}
	switch t.Kind() {
	case reflect.Map:
		return s.entries(t.Elem())
	case reflect.Struct:
		return s.fields(t)
	case reflect.Slice, reflect.Array:
		n, err := s.length(s.decoder.DecodeArrayLen)
		for ; n > 0 && err == nil; n-- {
			err = s.value(t.Elem())
		}
		return err
	}
	return s.copy(s.decoder.Skip)
}

// entries copies a map with values of a type.
func (s *mapSorter) entries(t reflect.Type) error {
	n, err := s.length(s.decoder.DecodeMapLen)
	begin := len(s.sorted)
	type entry struct{ key, all []byte }
	var all []entry
	for ; n > 0 && err == nil; n-- {
		from := len(s.sorted)
		if err = s.copy(s.decoder.Skip); err != nil {
			break
		}
		value := len(s.sorted)
		err = s.value(t)
		one := bytes.Clone(s.sorted[from:])
		all = append(all, entry{one[:value-from], one})
	}
	slices.SortFunc(all, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	s.sorted = s.sorted[:begin]
	for _, e := range all {
		s.sorted = append(s.sorted, e.all...)
	}
	return err
}

// fields copies a struct.
func (s *mapSorter) fields(t reflect.Type) error {
	if code, err := s.decoder.PeekCode(); err != nil || code&0xf0 == 0x90 || code == 0xdc || code == 0xdd {
		return s.copy(s.decoder.Skip) // as an array
	}
	types := map[string]reflect.Type{}
	typesOfFields(t, types)
	n, err := s.length(s.decoder.DecodeMapLen)
	for ; n > 0 && err == nil; n-- {
		name := ""
		err = s.copy(func() (err error) {
			name, err = s.decoder.DecodeString()
			return err
		})
		if err != nil {
			return err
		}
		if of := types[name]; of != nil {
			err = s.value(of)
		} else {
			err = s.copy(s.decoder.Skip)
		}
	}
	return err
}

// typesOfFields adds the types of a struct's fields by their encoded names. Those of embedded structs may stand in
// its place.
func typesOfFields(t reflect.Type, types map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		within := f.Type
		if within.Kind() == reflect.Pointer {
			within = within.Elem()
		}
		if (f.Anonymous || slices.Contains(strings.Split(options, ","), "inline")) && within.Kind() == reflect.Struct &&
			within != t {
			typesOfFields(within, types)
		}
		if name == "" {
			name = f.Name
		}
		types[name] = f.Type
	}
}

// mayHaveMaps reports whether values of a type may have maps in them.
func mayHaveMaps(t reflect.Type) bool { return reachesMaps(t, new([]reflect.Type)) }

// reachesMaps is mayHaveMaps for types that lead to each other: each is looked at once.
func reachesMaps(t reflect.Type, seen *[]reflect.Type) bool {
	if slices.Contains(*seen, t) {
		return false
	}
	*seen = append(*seen, t)
	switch t.Kind() {
	case reflect.Map, reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return reachesMaps(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if reachesMaps(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// encodesItself reports whether values of a type have an encoder of their own.
func encodesItself(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
		reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	}, func(own reflect.Type) bool { return t.Implements(own) || reflect.PointerTo(t).Implements(own) })
}

package inspect

import (
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// ValueDescription is a value in readable form.
type ValueDescription struct {
	// Format names the layout, as in docs/reference/keyspace.md, or is raw for
	// the value of a key without a known layout.
	Format string `json:"format"`
	Bytes  int    `json:"bytes"`
	// Version is the version of the record, 0 if the value has none.
	Version int `json:"version,omitempty"`
	// Stamp is the versionstamp in the value: the version of the commit that
	// wrote it and its order within that. Copying a cluster to another store
	// keeps it.
	Stamp string `json:"stamp,omitempty"`
	// Fields are the fields of the value, by full names. A byte string is an
	// object with its length as bytes and its content as text, or as hex if it
	// is not text. A field that this version does not know is under its short
	// name in unknown_fields.
	Fields map[string]any `json:"fields,omitempty"`
	// Problem says why the value can't be read in full. Raw is then the value,
	// in hexadecimal.
	Problem string `json:"problem,omitempty"`
	Raw     string `json:"raw,omitempty"`
}

// viewedData is how much of a piece of a large value is shown, in bytes.
const viewedData = 1024

const formatRaw = "raw"

// DescribeValue decodes the value of any key. A value that it can't read,
// because the record is newer, damaged or outside of a cluster, is shown raw.
func DescribeValue(key, value []byte) ValueDescription {
	_, kind := layout.Locate(key)
	if kind == nil {
		return ValueDescription{
			Format: formatRaw, Bytes: len(value), Fields: map[string]any{"data": viewBytes(value, kv.MaxValueSize)},
		}
	}
	d := ValueDescription{Format: kind.Format.String(), Bytes: len(value)}
	if err := d.read(kind, key, value); err != nil {
		d.Problem, d.Raw = strings.TrimPrefix(err.Error(), tuple.String(key)+": "), hex.EncodeToString(value)
	}
	return d
}

func (d *ValueDescription) read(kind *layout.KeyKind, key, value []byte) error {
	switch kind.Format {
	case layout.FormatRecord:
		return d.readRecord(kind, key, value, 0)
	case layout.FormatStamped:
		return d.readRecord(kind, key, value, layout.StampLength)
	case layout.FormatNotices:
		return d.readNotices(key, value)
	case layout.FormatMark:
		_, err := d.readVersion(key, value)
		if err == nil && len(value) != 1 {
			err = fmt.Errorf("%w: %d bytes", layout.ErrBadRecord, len(value))
		}
		return err
	case layout.FormatText:
		if !printable(value) {
			return fmt.Errorf("%w: not text", layout.ErrBadRecord)
		}
		d.Fields = map[string]any{kind.Called: string(value)}
	case layout.FormatCounter:
		if len(value) != 8 {
			return fmt.Errorf("%w: not a counter", layout.ErrBadRecord)
		}
		d.Fields = map[string]any{kind.Called: int64(binary.LittleEndian.Uint64(value))}
	case layout.FormatData:
		d.Fields = map[string]any{kind.Called: viewBytes(value, viewedData)}
	case layout.FormatEmpty:
		if len(value) != 0 {
			return fmt.Errorf("%w: %d bytes", layout.ErrBadRecord, len(value))
		}
	}
	return nil
}

// readVersion returns the bytes after the version.
func (d *ValueDescription) readVersion(key, value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] == 0 {
		return nil, fmt.Errorf("%w: no version", layout.ErrBadRecord)
	}
	if d.Version = int(value[0]); d.Version > layout.RecordVersion {
		return value[1:], fmt.Errorf("%s has version %d, this process reads %d: %w",
			tuple.String(key), d.Version, layout.RecordVersion, layout.ErrNewerRecord)
	}
	return value[1:], nil
}

func (d *ValueDescription) readRecord(kind *layout.KeyKind, key, value []byte, head int) error {
	rest, err := d.readVersion(key, value)
	if err != nil && !errors.Is(err, layout.ErrNewerRecord) {
		return err
	}
	if len(rest) >= head && head > 0 {
		d.Stamp = layout.StampText(tuple.Stamp(rest[:head]))
		rest = rest[head:]
	}
	record := kind.Record()
	fields, viewErr := viewMsgpack(rest)
	if m, ok := fields.(map[string]any); ok {
		d.Fields = nameFields(reflect.TypeOf(record).Elem(), m)
	}
	switch {
	case err != nil:
		return err
	case viewErr != nil:
		return fmt.Errorf("%w: %w", layout.ErrBadRecord, viewErr)
	}
	_, err = layout.DecodeAfter(key, value, record, head)
	return err
}

func (d *ValueDescription) readNotices(key, value []byte) error {
	rest, err := d.readVersion(key, value)
	if err != nil {
		return err
	}
	if len(rest) < 4 {
		return fmt.Errorf("%w: %d bytes", layout.ErrBadRecord, len(value))
	}
	v, notices := msgpackView{rest[4:]}, []any{}
	for range binary.BigEndian.Uint32(rest) {
		notice, err := v.value(0)
		if err != nil {
			return fmt.Errorf("%w: %w", layout.ErrBadRecord, err)
		}
		notices = append(notices, nameValue(reflect.TypeFor[layout.Notice](), notice))
	}
	d.Fields = map[string]any{"notices": notices}
	_, err = layout.AppendNotices(nil, kv.KeyValue{Key: key, Value: value})
	return err
}

// nameFields gives the fields of a record their full names.
func nameFields(t reflect.Type, fields map[string]any) map[string]any {
	known := map[string]reflect.StructField{}
	collectFields(t, known)
	named, unknown := map[string]any{}, map[string]any{}
	for short, value := range fields {
		if f, ok := known[short]; ok {
			named[layout.FullName(f)] = nameValue(f.Type, value)
		} else {
			unknown[short] = nameValue(reflect.TypeFor[any](), value)
		}
	}
	if len(unknown) > 0 {
		named["unknown_fields"] = unknown
	}
	return named
}

// collectFields finds the fields by their names in records, including those of
// embedded structs.
func collectFields(t reflect.Type, known map[string]reflect.StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		switch {
		case f.Anonymous && tag == "":
			collectFields(f.Type, known)
		case tag != "" && tag != "-":
			known[tag] = f
		}
	}
}

// nameValue converts a msgpack value to one that JSON can hold, by the type
// that it is read into.
func nameValue(t reflect.Type, value any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct {
			return nameFields(t, v)
		}
		named := map[string]any{}
		for name, inner := range v {
			named[name] = nameValue(elementOf(t), inner)
		}
		return named
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = nameValue(elementOf(t), v[i])
		}
		return list
	case []byte:
		return nameBytes(t, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	default:
		return v
	}
}

func elementOf(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem()
	default:
		return reflect.TypeFor[any]()
	}
}

// nameBytes reads ids and byte strings that hold text.
func nameBytes(t reflect.Type, b []byte) any {
	if t == reflect.TypeFor[layout.IDList]() && len(b)%len(layout.ID{}) == 0 {
		ids := []string{}
		for _, id := range layout.UnpackIDs(b) {
			ids = append(ids, id.String())
		}
		return ids
	}
	if t == reflect.TypeFor[layout.ID]() && len(b) == len(layout.ID{}) {
		return layout.ID(b).String()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && printable(b) {
		return string(b)
	}
	return viewBytes(b, len(b))
}

// viewBytes shows up to limit bytes: as text if they are all printable text.
func viewBytes(b []byte, limit int) map[string]any {
	view := map[string]any{"bytes": len(b)}
	shown := b
	if len(b) > limit {
		shown = b[:limit]
		for cut := limit; cut > limit-utf8.UTFMax; cut-- {
			if utf8.RuneStart(b[cut]) {
				shown = b[:cut]
				break
			}
		}
		view["cut"] = true
	}
	if printable(shown) {
		view["text"] = string(shown)
	} else {
		view["hex"] = hex.EncodeToString(shown)
	}
	return view
}

// printable reports whether b is text without control characters other than
// white space.
func printable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' {
			return false
		}
	}
	return true
}

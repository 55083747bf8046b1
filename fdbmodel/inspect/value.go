package inspect

import (
	"encoding"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/futura-run/futura/fdbmodel/keyspace"
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
	// in hexadecimal, unless records of its kind have a secret.
	Problem string `json:"problem,omitempty"`
	Raw     string `json:"raw,omitempty"`
}

// viewedData is how much of a piece of a large value is shown, in bytes.
const viewedData = 1024

const formatRaw = "raw"

// DescribeValue decodes the value of any key. A value that it can't read,
// because the record is newer, damaged or outside of a cluster, is shown raw.
func DescribeValue(key, value []byte) ValueDescription {
	kind := keyspace.Table().Parse(key).Kind
	if kind == nil {
		return ValueDescription{
			Format: formatRaw, Bytes: len(value), Fields: map[string]any{"data": viewBytes(value, kv.MaxValueSize)},
		}
	}
	d := ValueDescription{Format: kind.Format.String(), Bytes: len(value)}
	decoded, err := kind.Decode(key, value)
	if kind.Format.Versioned() && len(value) > 0 {
		d.Version = int(value[0])
	}
	// A newer or damaged record is shown as far as it can be read.
	if viewErr := d.view(kind, &decoded, value, err == nil); err == nil {
		err = viewErr
	}
	if err != nil {
		d.Problem = strings.TrimPrefix(err.Error(), tuple.String(key)+": ")
	}
	if err != nil && !hasSecret(kind) {
		d.Raw = hex.EncodeToString(value)
	}
	return d
}

// hasSecret reports whether records of a kind have what is never shown.
func hasSecret(kind *layout.KeyKind) bool {
	if kind.Record == nil {
		return false
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(kind.Record()).Elem()) {
		if f.Type == reflect.TypeFor[layout.Secret]() {
			return true
		}
	}
	return false
}

func (d *ValueDescription) view(kind *layout.KeyKind, decoded *layout.Value, value []byte, sound bool) error {
	switch kind.Format {
	case layout.FormatRecord:
		return d.viewRecord(kind, value, 1)
	case layout.FormatStamped:
		if len(value) > layout.StampLength && value[0] != 0 {
			d.Stamp = layout.StampText(tuple.Stamp(value[layout.StampOffset:][:layout.StampLength]))
		}
		return d.viewRecord(kind, value, layout.StampOffset+layout.StampLength)
	}
	if !sound {
		return nil
	}
	switch kind.Format {
	case layout.FormatNotices:
		return d.viewNotices(len(decoded.Notices), value)
	case layout.FormatText:
		d.Fields = map[string]any{kind.Called: string(value)}
	case layout.FormatCounter:
		d.Fields = map[string]any{kind.Called: decoded.Count}
	case layout.FormatData, layout.FormatPiece:
		d.Fields = map[string]any{kind.Called: viewBytes(value, viewedData)}
	}
	return nil
}

// viewRecord shows the fields of a record that begins at an offset.
func (d *ValueDescription) viewRecord(kind *layout.KeyKind, value []byte, offset int) error {
	if len(value) < offset || value[0] == 0 {
		return nil
	}
	fields, _, err := viewMsgpack(value[offset:])
	if m, ok := fields.(map[string]any); ok {
		d.Fields = nameFields(reflect.TypeOf(kind.Record()).Elem(), m, 0)
	}
	return err
}

func (d *ValueDescription) viewNotices(n int, value []byte) error {
	rest, notices := value[layout.NoticesOffset:], make([]any, n)
	for i := range notices {
		var notice any
		var err error
		if notice, rest, err = viewMsgpack(rest); err != nil {
			return err
		}
		notices[i] = nameValue(reflect.TypeFor[layout.Notice](), notice, 0)
	}
	d.Fields = map[string]any{"notices": notices}
	return nil
}

// viewMsgpack reads a value of any content and returns what follows it. It
// takes memory in proportion to the bytes, whatever they claim to hold.
func viewMsgpack(b []byte) (value any, rest []byte, err error) {
	if rest, err = msgp.Skip(b); err == nil {
		value, rest, err = msgp.ReadIntfBytes(b)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", layout.ErrBadRecord, err)
	}
	return value, rest, err
}

// nameFields gives the fields of a record their full names.
func nameFields(t reflect.Type, fields map[string]any, depth int) map[string]any {
	known := map[string]reflect.StructField{}
	collectFields(t, known)
	named, unknown := map[string]any{}, map[string]any{}
	for short, value := range fields {
		if f, ok := known[short]; ok {
			named[FieldName(f)] = nameValue(f.Type, value, depth+1)
		} else {
			unknown[short] = nameValue(anyType, value, depth+1)
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

// anyType is that of values of which nothing is known.
var anyType = reflect.TypeFor[any]()

// maxViewDepth is the maximum nesting of a value that is shown.
const maxViewDepth = 32

// nameValue converts a msgpack value to one that JSON can hold, by the type
// that it is read into.
func nameValue(t reflect.Type, value any, depth int) any {
	if depth > maxViewDepth {
		return fmt.Sprintf("nested deeper than %d", maxViewDepth)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[layout.Secret]() {
		return layout.Secret("").String()
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct {
			return nameFields(t, v, depth)
		}
		named := map[string]any{}
		for name, inner := range v {
			named[name] = nameValue(elementOf(t), inner, depth+1)
		}
		return named
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = nameValue(elementOf(t), v[i], depth+1)
		}
		return list
	case []byte:
		return nameBytes(t, v)
	case float32:
		return nameValue(t, float64(v), depth)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case nil, bool, int64, uint64, string:
		return v
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case *msgp.RawExtension:
		return viewExtension(v)
	default:
		return fmt.Sprint(v) // a complex number
	}
}

func elementOf(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem()
	default:
		return anyType
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
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && layout.Printable(b) {
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
	if layout.Printable(shown) {
		view["text"] = string(shown)
	} else {
		view["hex"] = hex.EncodeToString(shown)
	}
	return view
}

package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Value is a value, decoded as the key table says for its kind of key.
type Value struct {
	Record  Record   // of a record, stamped or not
	Stamp   kv.Stamp // of a stamped record
	Notices []Notice
	Count   int64 // of a counter
}

// Decode decodes a value of this kind; key appears in its errors. It returns
// ErrNewerRecord and ErrBadRecord.
func (k *KeyKind) Decode(key, value []byte) (v Value, err error) {
	sound := true
	switch k.Format {
	case FormatRecord:
		v.Record = k.Record()
		return v, Decode(key, value, v.Record)
	case FormatStamped:
		v.Record = k.Record()
		v.Stamp, err = DecodeStamped(key, value, v.Record)
		return v, err
	case FormatNotices:
		v.Notices, err = AppendNotices(nil, kv.KeyValue{Key: key, Value: value})
		return v, err
	case FormatMark:
		if err := checkVersion(key, value, 0); err != nil {
			return v, err
		}
		sound = len(value) == 1
	case FormatText:
		sound = Printable(value)
	case FormatCounter:
		if sound = len(value) == 8; sound {
			v.Count = int64(binary.LittleEndian.Uint64(value))
		}
	case FormatEmpty:
		sound = len(value) == 0
	}
	if !sound {
		err = fmt.Errorf("%s: %w: %d bytes that are not %s", tuple.String(key), ErrBadRecord, len(value), k.Format)
	}
	return v, err
}

// IsPrintableLine reports whether a text has printable characters alone, and so no line breaks.
func IsPrintableLine(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}

// Printable reports whether b is text without control characters other than
// white space.
func Printable(b []byte) bool {
	strange := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' }
	return utf8.Valid(b) && !bytes.ContainsFunc(b, strange)
}

package layout

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Every value begins with the version of its format. Stamped values go on with
// twelve bytes of versionstamp. The rest is a msgpack map with short names, in
// which fields are only ever added.
const (
	RecordVersion = 1
	StampLength   = 12
	StampOffset   = 1
)

// Encode returns a record as a value.
func Encode(record any) ([]byte, error) { return encode(record, 0) }

// EncodeStamped leaves room for the stamp, at stampOffset.
func EncodeStamped(record any) ([]byte, error) { return encode(record, StampLength) }

func encode(record any, room int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(128)
	b.WriteByte(RecordVersion)
	b.Write(make([]byte, room))
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&b)
	e.UseCompactInts(true)
	if err := e.Encode(record); err != nil {
		return nil, fmt.Errorf("fdbmodel: encode %T: %w", record, err)
	}
	return b.Bytes(), nil
}

// Decode reads a value into a record; key is for its errors. It returns
// ErrNewerRecord and ErrBadRecord.
func Decode(key, value []byte, record any) error {
	_, err := DecodeAfter(key, value, record, 0)
	return err
}

// DecodeStamped does what Decode does for a stamped value, and returns the stamp.
func DecodeStamped(key, value []byte, record any) (stamp kv.Stamp, err error) {
	head, err := DecodeAfter(key, value, record, StampLength)
	if err == nil {
		copy(stamp[:], head)
	}
	return stamp, err
}

// DecodeAfter reads a value of at most kv.MaxValueSize bytes; key is for its errors.
func DecodeAfter(key, value []byte, record any, head int) ([]byte, error) {
	if len(value) > 0 && value[0] > RecordVersion {
		return nil, fmt.Errorf("%s has version %d, this process reads %d: %w",
			tuple.String(key), value[0], RecordVersion, ErrNewerRecord)
	}
	if len(value) < 1+head || value[0] == 0 {
		return nil, fmt.Errorf("%s: %w: %d bytes", tuple.String(key), ErrBadRecord, len(value))
	}
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	r := bytes.NewReader(value[1+head:])
	d.Reset(r)
	if err := d.Decode(record); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", tuple.String(key), ErrBadRecord, err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: bytes behind its end", tuple.String(key), ErrBadRecord)
	}
	return value[1 : 1+head], nil
}

package layout

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Every value begins with the version of its format. In stamped values twelve
// bytes of versionstamp follow. The rest is a msgpack map with short names, to
// which fields are only ever added.
const (
	RecordVersion = 1
	StampLength   = 12
	StampOffset   = 1
)

// Encode returns the value that holds a record.
func Encode(r Record) []byte { return encode(r, 0) }

// EncodeStamped is Encode with room for the stamp at StampOffset.
func EncodeStamped(r Record) []byte { return encode(r, StampLength) }

func encode(r Record, room int) []byte {
	s, p := schemaOf(r)
	b := make([]byte, 1+room, 1+room+s.room(p))
	b[0] = RecordVersion
	return s.append(b, p)
}

// Decode reads a value into a record; key appears in its errors. It returns
// ErrNewerRecord and ErrBadRecord.
func Decode(key, value []byte, r Record) error {
	_, err := decode(key, value, r, 0)
	return err
}

// DecodeStamped is Decode for a value that EncodeStamped made.
func DecodeStamped(key, value []byte, r Record) (stamp kv.Stamp, err error) {
	head, err := decode(key, value, r, StampLength)
	if err == nil {
		copy(stamp[:], head)
	}
	return stamp, err
}

// decode is Decode for a value with head bytes between its version and the
// record. It returns those bytes.
func decode(key, value []byte, r Record, head int) ([]byte, error) {
	if err := checkVersion(key, value, head); err != nil {
		return nil, err
	}
	rest, err := readRecord(value[1+head:], r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", tuple.String(key), ErrBadRecord, err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%s: %w: %d bytes after its end", tuple.String(key), ErrBadRecord, len(rest))
	}
	return value[1 : 1+head], nil
}

// checkVersion checks that a value has a version that this process reads, and
// head bytes behind it.
func checkVersion(key, value []byte, head int) error {
	if len(value) > 0 && value[0] > RecordVersion {
		return fmt.Errorf("%s has version %d, this process reads %d: %w",
			tuple.String(key), value[0], RecordVersion, ErrNewerRecord)
	}
	if len(value) < 1+head || value[0] == 0 {
		return fmt.Errorf("%s: %w: %d bytes", tuple.String(key), ErrBadRecord, len(value))
	}
	return nil
}

// Mark is the value of a key whose presence is all that matters.
func Mark() []byte { return []byte{RecordVersion} }

// wakeRecord is the record of a stamped key that changes only to make a watch fire.
type wakeRecord struct{}

// WorkerWakeRecord is the record of the key that a worker watches while it is idle.
type WorkerWakeRecord struct {
	// Shard is the shard of the futures that the worker is woken for, and 1; 0
	// stands for any.
	Shard int `msgpack:"s"`
}

// EncodeWake returns the value of a wakeRecord, stamped.
func EncodeWake() []byte { return EncodeStamped(&wakeRecord{}) }

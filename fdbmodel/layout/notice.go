package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxSubscribers bounds the sessions that await one future, beside the one that
// submitted it.
const MaxSubscribers = 200

// Notice tells a session that a future has finished. Delivery is at least once.
type Notice struct {
	ID    ID    `msgpack:"i"`
	State State `msgpack:"s"`
	// Result or Exception is what it came to, where that is small. If both are
	// nil, Get has it.
	Result    *Result    `msgpack:"r,omitempty"`
	Exception *Exception `msgpack:"e,omitempty"`
}

// AppendNotices reads one key of a mailbox. It returns ErrNewerRecord and
// ErrBadRecord.
func AppendNotices(notices []Notice, item kv.KeyValue) ([]Notice, error) {
	if len(item.Value) < 5 || item.Value[0] == 0 {
		return nil, fmt.Errorf("%s: %w", tuple.String(item.Key), ErrBadRecord)
	}
	if item.Value[0] > RecordVersion {
		return nil, fmt.Errorf("%s: %w", tuple.String(item.Key), ErrNewerRecord)
	}
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	d.Reset(bytes.NewReader(item.Value[5:]))
	for range binary.BigEndian.Uint32(item.Value[1:5]) {
		var n Notice
		if err := d.Decode(&n); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), ErrBadRecord, err)
		}
		notices = append(notices, n)
	}
	return notices, nil
}

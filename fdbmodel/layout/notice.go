package layout

import (
	"encoding/binary"
	"fmt"

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
	// Function is what it ran, where the notice comes from Subscribe; mail leaves it
	// out.
	Function string `msgpack:"-"`
}

// AppendNotice appends a notice to those of one mailbox value.
func AppendNotice(part []byte, n *Notice) []byte { return appendRecord(part, n) }

// MailValue returns the value of a mailbox key that holds n notices of
// AppendNotice.
func MailValue(part []byte, n int) []byte {
	value := binary.BigEndian.AppendUint32(append(make([]byte, 0, 5+len(part)), RecordVersion), uint32(n))
	return append(value, part...)
}

// AppendNotices appends the notices of a mailbox key. It returns ErrBadRecord
// and ErrNewerRecord.
func AppendNotices(notices []Notice, item kv.KeyValue) ([]Notice, error) {
	if len(item.Value) < 5 || item.Value[0] == 0 {
		return nil, fmt.Errorf("%s: %w", tuple.String(item.Key), ErrBadRecord)
	}
	if item.Value[0] > RecordVersion {
		return nil, fmt.Errorf("%s: %w", tuple.String(item.Key), ErrNewerRecord)
	}
	rest := item.Value[5:]
	for range binary.BigEndian.Uint32(item.Value[1:5]) {
		var n Notice
		var err error
		if rest, err = readRecord(rest, &n); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), ErrBadRecord, err)
		}
		notices = append(notices, n)
	}
	return notices, nil
}

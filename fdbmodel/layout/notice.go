package layout

import (
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxSubscribers is the maximum number of sessions that await one future,
// besides the one that submitted it.
const MaxSubscribers = 200

// NoticesOffset is where the notices of a mailbox value begin, behind its
// version and their number.
const NoticesOffset = 5

// Notice tells a session that a future has finished. It is delivered at least
// once.
type Notice struct {
	ID    ID    `msgpack:"i"`
	State State `msgpack:"s"`
	// Result or Exception is the outcome, if it is small. If both are nil, Get
	// returns it.
	Result    *Result    `msgpack:"r,omitempty"`
	Exception *Exception `msgpack:"e,omitempty"`
	// Function is the function that it ran, if the notice comes from Subscribe;
	// mail leaves it out.
	Function string `msgpack:"-"`
}

// AppendNotice appends a notice to those in one mailbox value.
func AppendNotice(part []byte, n *Notice) []byte { return appendRecord(part, n) }

// MailValue returns the value of a mailbox key for n notices that AppendNotice
// appended.
func MailValue(part []byte, n int) []byte {
	value := binary.BigEndian.AppendUint32(append(make([]byte, 0, 5+len(part)), RecordVersion), uint32(n))
	return append(value, part...)
}

// AppendNotices decodes the notices of a mailbox key and appends them. It
// returns ErrBadRecord and ErrNewerRecord.
func AppendNotices(notices []Notice, item kv.KeyValue) ([]Notice, error) {
	if err := checkVersion(item.Key, item.Value, NoticesOffset-1); err != nil {
		return nil, err
	}
	rest := item.Value[NoticesOffset:]
	for range binary.BigEndian.Uint32(item.Value[1:NoticesOffset]) {
		var n Notice
		var err error
		if rest, err = readRecord(rest, &n); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), ErrBadRecord, err)
		}
		notices = append(notices, n)
	}
	return notices, nil
}

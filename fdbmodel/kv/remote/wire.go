package remote

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// A frame is four bytes of length, big endian, one byte of kind, and a body.
// Numbers in bodies are varints, and byte strings have their length in front.
const (
	lengthSize = 4
	// chunkSize is the size from which on a body is followed by another.
	chunkSize = 128 << 10
	// minFrame is what the longest frame must be allowed to have: a chunk and
	// the largest operation or row behind it.
	minFrame = 512 << 10
	// maxAnswerFrame bounds what a client takes from a server.
	maxAnswerFrame = 4 << 20
)

// Kinds of frames from the client.
const (
	// frameBatch is a transaction's number, its flags, its tag where it begins,
	// and operations.
	frameBatch byte = iota + 1
	// frameCancelTx is the number of a transaction.
	frameCancelTx
	// frameCancelWatch is the number of a watch whose transaction is committed.
	frameCancelWatch
	framePing
	// frameGoodbye says that the client does not come back.
	frameGoodbye
)

// Kinds of frames from the server.
const (
	// frameAnswers is a transaction's number and answers.
	frameAnswers byte = iota + 0x41
	// frameTxFailed is a transaction's number and the error that ended it.
	frameTxFailed
	// frameWatchEnded is a watch's number and its error.
	frameWatchEnded
	framePong
)

// Flags of frameBatch.
const (
	flagBegin = 1 << iota
	flagNoSync
	flagTurns
)

// Operations. Those from opGet on begin with the number of their request.
const (
	opSet byte = iota + 1
	opClear
	opClearRange
	opStampKey
	opStampValue
	opReadConflictKey
	opReadConflictRange
	opWriteConflictKey
	opWriteConflictRange
	opAtomic         // and the atomic operation added
	opSetReadVersion = iota + 20
	opCancelWatch
	opWatch
	opGet
	opGetRange
	opReadVersion
	opCommit
)

// Flags of reads.
const (
	readSnapshot = 1 << iota
	readReverse
)

// Kinds of answers, which stand behind the number of the request.
const (
	answerError byte = iota
	answerAbsent
	answerValue
	answerRows // some rows; more follow
	answerLastRows
	answerVersion
	answerCommitted
)

// errMalformed ends a connection whose peer sent an impossible message.
var errMalformed = errors.New("remote: malformed message")

func appendBytes[S []byte | string](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder takes a body apart. After the first mistake it returns zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	d.b, d.err = nil, errMalformed
}

func (d *decoder) more() bool { return len(d.b) > 0 }

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 { return number(d, binary.Uvarint) }

func (d *decoder) varint() int64 { return number(d, binary.Varint) }

func number[T int64 | uint64](d *decoder, read func([]byte) (T, int)) T {
	v, n := read(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count is a number of things of which each takes at least size bytes.
func (d *decoder) count(size int) int {
	v := d.uvarint()
	if v > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(v)
}

// limit is a number that fits a RangeOptions.
func (d *decoder) limit() int {
	v := d.uvarint()
	if v > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int(v)
}

// bytes is a part of the body, never nil unless the body is malformed.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.err != nil || n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) span() kv.Range {
	begin := d.bytes()
	return kv.Range{Begin: begin, End: d.bytes()}
}

// offset is the place of a stamp.
func (d *decoder) offset() int {
	b := d.bytes()
	if len(b) != 4 {
		d.fail()
		return 0
	}
	return int(binary.LittleEndian.Uint32(b))
}

// end returns errMalformed if something was wrong or is left.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail()
	}
	return d.err
}

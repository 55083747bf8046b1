package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/futura-run/futura/workers/objects"
)

// Errors of the connection.
var (
	// ErrRefused is returned for a connection that the other side does not want: it
	// knows another token, has too many connections, or speaks another version.
	ErrRefused = errors.New("objects: refused")
	// ErrMalformed is returned for what is not the protocol.
	ErrMalformed = errors.New("objects: not the protocol of objects")
	// ErrUnavailable is returned when no source could deliver an object, for the
	// reasons that it wraps.
	ErrUnavailable = errors.New("objects: no source delivers the object")
	// ErrInsecure is returned for what would show objects to others: a token that
	// can be guessed, and TCP without TLS beyond this machine.
	ErrInsecure = errors.New("objects: not secure")
	// ErrBadAddress is returned for an invalid address.
	ErrBadAddress = errors.New("objects: not an address")
)

// A connection begins with a handshake. Then the client sends requests, and the
// server answers them one after the other.
const (
	requestSize = 48
	replySize   = 16
)

// operation is what a request asks for.
type operation byte

const (
	// opList asks for the size and the hashes of the pieces: one reply with the
	// size, and then 32 bytes for each.
	opList operation = iota + 1
	// opPieces asks for pieces: a reply with the length for each, and the content.
	opPieces
	// opMap asks for the file that has the object: one reply with the size, and the
	// descriptor beside it. The object is held until it is released or the
	// connection ends.
	opMap
	// opRelease ends what opMap began. It has no reply.
	opRelease
	// opPut stores what follows: a reply with the length before each part of at
	// most a piece, and one with 0 at the end. first is about how many bytes follow.
	// The answer is a reply with the size, and the hash. The request's hash is the
	// owner.
	opPut
	// opRoom asks for how many bytes there is room: one reply with them.
	opRoom
	// opTake has the server get what belongs to an owner, the request's hash, from
	// where it is; with a count of 1 for itself alone. Replies say how many bytes have
	// arrived, and the last one, with takeDone, that it is done.
	opTake
	// opHints makes the connection one for hints, and asks for news for the request's
	// hash. It has one reply with 0.
	opHints
	lastOperation = opHints
)

// takeDone is more than any number of bytes.
const takeDone = ^uint64(0)

// request is what a client sends.
type request struct {
	op    operation
	hash  objects.Hash
	first uint64 // piece
	count uint32 // of pieces
}

func (r request) encode(b *[requestSize]byte) {
	*b = [requestSize]byte{0: byte(r.op)}
	binary.BigEndian.PutUint32(b[4:], r.count)
	copy(b[8:], r.hash[:])
	binary.BigEndian.PutUint64(b[40:], r.first)
}

func decodeRequest(b *[requestSize]byte) (request, error) {
	r := request{
		op: operation(b[0]), hash: objects.Hash(b[8:40]), count: binary.BigEndian.Uint32(b[4:]),
		first: binary.BigEndian.Uint64(b[40:]),
	}
	if r.op == 0 || r.op > lastOperation || b[1] != 0 || b[2] != 0 || b[3] != 0 {
		return request{}, fmt.Errorf("%w: request %x", ErrMalformed, b[:4])
	}
	if r.op != opPieces && (r.first != 0 && r.op != opPut || r.count != 0 && (r.op != opTake || r.count != 1)) {
		return request{}, fmt.Errorf("%w: request %x", ErrMalformed, b[:])
	}
	return r, nil
}

// status is how a request went.
type status byte

const (
	statusOK status = iota + 1
	statusNotFound
	statusDamaged  // the holder's disk changed it
	statusFailed   // the holder can't read it
	statusNoFile   // it can't be mapped
	statusBusy     // too much is under way
	statusNoPieces // the object does not have the pieces
	statusFull     // there is no room
	statusNoPuts   // the server takes none
	statusStopping // it takes no more
	statusNoHints  // the server takes none
	lastStatus     = statusNoHints
)

// reply is what a server sends for a request, or for a part of one.
type reply struct {
	status status
	value  uint64 // of the size or a length
}

func (r reply) encode(b *[replySize]byte) {
	*b = [replySize]byte{0: byte(r.status)}
	binary.BigEndian.PutUint64(b[8:], r.value)
}

func decodeReply(b *[replySize]byte) (reply, error) {
	r := reply{status: status(b[0]), value: binary.BigEndian.Uint64(b[8:])}
	if r.status == 0 || r.status > lastStatus || [7]byte(b[1:8]) != [7]byte{} || r.status != statusOK && r.value != 0 {
		return reply{}, fmt.Errorf("%w: reply %x", ErrMalformed, b[:])
	}
	return r, nil
}

// readReply reads a reply, and returns an error unless it is statusOK with a value.
func readReply(from io.Reader, value uint64) error {
	var b [replySize]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return err
	}
	r, err := decodeReply(&b)
	if err != nil {
		return err
	}
	if err := r.err(); err != nil {
		return err
	}
	if r.value != value {
		return fmt.Errorf("%w: %d bytes instead of %d", objects.ErrDamaged, r.value, value)
	}
	return nil
}

var (
	errNoFile = errors.New("the source has no file to map")
	errBusy   = errors.New("the source is busy")
	errFailed = errors.New("the source can't read the object")
	errNoPuts = errors.New("it takes no objects (ServerOptions.Puts)")
	errNoHint = errors.New("it takes no hints (ServerOptions.Hints)")
)

// statusError is what a server said. The connection can go on.
type statusError struct{ error }

func (e statusError) Unwrap() error { return e.error }

// err is the error that a status stands for.
func (r reply) err() error {
	switch r.status {
	case statusOK:
		return nil
	case statusNotFound:
		return statusError{objects.ErrNotFound}
	case statusDamaged, statusNoPieces:
		return statusError{fmt.Errorf("%w, says the source", objects.ErrDamaged)}
	case statusNoFile:
		return statusError{errNoFile}
	case statusFull:
		return statusError{objects.ErrFull}
	case statusNoPuts:
		return statusError{errNoPuts}
	case statusStopping:
		return statusError{objects.ErrStopping}
	case statusNoHints:
		return statusError{errNoHint}
	case statusBusy:
		return statusError{errBusy}
	default:
		return statusError{errFailed}
	}
}

// statusOf is what a server says about an error.
func statusOf(err error) status {
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return statusNotFound
	case errors.Is(err, objects.ErrDamaged):
		return statusDamaged
	case errors.Is(err, objects.ErrFull):
		return statusFull
	case errors.Is(err, objects.ErrStopping):
		return statusStopping
	default:
		return statusFailed
	}
}

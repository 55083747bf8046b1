package remote

import (
	"context"
	"errors"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
)

var (
	// ErrBadToken is returned by Open, and by transactions after a lost
	// connection, when the server does not know the token.
	ErrBadToken = errors.New("remote: the server does not accept the token")
	// ErrBadVersion is returned when client and server speak different versions
	// of the protocol: one of the two programs is older.
	ErrBadVersion = errors.New("remote: the server speaks another version of the protocol")
	// ErrNotServer is returned when the server does not speak this protocol.
	ErrNotServer = errors.New("remote: the server is not a Futura store")
	// ErrSilent is returned, together with kv.ErrUnavailable, when a process takes the connection and does not say a
	// word in time: it is stopped, or hangs, or is no Futura store.
	ErrSilent = errors.New("remote: the server does not answer")
	// ErrGone is returned, together with kv.ErrClosed, after a server was away
	// for Options.GiveUpAfter. It is not retried.
	ErrGone = errors.New("remote: the server is gone")
	// ErrInsecure is returned for what would show the store, or its token, to
	// others: TCP without a token, and TCP without TLS beyond this machine.
	ErrInsecure = errors.New("remote: not secure")
	// ErrBadAddress is returned for an invalid address.
	ErrBadAddress = errors.New("remote: not an address")
)

// codeUnavailable is the code of kv.ErrUnavailable.
const codeUnavailable = 4

// conditions is the one table of what travels as a code, which is the place in
// the table. Places stay as they are. An error that is not one of these travels as
// its text.
var conditions = [...]error{
	1:               kv.ErrConflict,
	2:               kv.ErrTooOld,
	3:               kv.ErrFutureVersion,
	codeUnavailable: kv.ErrUnavailable,
	5:               kv.ErrUnknownResult,
	6:               kv.ErrKeyTooLarge,
	7:               kv.ErrValueTooLarge,
	8:               kv.ErrTxTooLarge,
	9:               kv.ErrIllegalKey,
	10:              kv.ErrBadStampOffset,
	11:              kv.ErrUnreadable,
	12:              kv.ErrUsed,
	13:              kv.ErrTooManyWatches,
	14:              kv.ErrCancelled,
	15:              kv.ErrCorrupt,
	16:              errWaited,
	17:              kv.ErrReadOnly,
}

// errWaited marks a conflict whose other side is visible already.
var errWaited = errors.New("remote: the conflicting commit is visible")

// answered is an error with a text of its own, such as one from the server.
type answered struct {
	meanings []error
	text     string
}

// Error implements error.
func (e *answered) Error() string { return e.text }

// Unwrap returns the conditions that the error stands for.
func (e *answered) Unwrap() []error { return e.meanings }

// maxErrorText bounds the text of an error that travels, in bytes.
const maxErrorText = 1000

// appendError encodes err. A store that is closed or has failed, and a context
// that ended, are the server's affair: to the client the store is unavailable,
// and there again once the server has it open again.
func appendError(b []byte, err error) []byte {
	codes := make([]byte, 0, 2)
	for code, condition := range conditions {
		if condition != nil && errors.Is(err, condition) {
			codes = append(codes, byte(code))
		}
	}
	gone := errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
	if gone && !errors.Is(err, kv.ErrUnavailable) {
		codes = append(codes, codeUnavailable)
	}
	b = appendBytes(b, codes)
	text := err.Error()
	return appendBytes(b, strings.ToValidUTF8(text[:min(len(text), maxErrorText)], ""))
}

// error decodes an error. Codes that are not known are left out.
func (d *decoder) error() error {
	e := &answered{}
	for _, code := range d.bytes() {
		if int(code) < len(conditions) && conditions[code] != nil {
			e.meanings = append(e.meanings, conditions[code])
		}
	}
	e.text = string(d.bytes())
	return e
}

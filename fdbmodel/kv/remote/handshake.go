package remote

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// magic begins what both sides say first.
	magic = "FUTURAKV"
	// protocolVersion is raised by every change of the protocol.
	protocolVersion = 3
	// maxHello bounds what is read from an unauthenticated connection, in bytes.
	maxHello = 4 << 10
	// maxToken is the longest token, in bytes.
	maxToken = 1 << 10
	// maxID is the longest name of a client, in bytes.
	maxID = 64
)

// hello is what a client says first. All versions of the protocol begin it with
// magic, version and token.
type hello struct {
	version uint16
	token   []byte
	id      string
}

func (h hello) encode() []byte {
	b := binary.BigEndian.AppendUint16([]byte(magic), h.version)
	b = appendBytes(b, h.token)
	return appendBytes(b, h.id)
}

func decodeHello(kind byte, body []byte) (hello, error) {
	d := &decoder{b: body}
	if kind != frameHello || len(body) < len(magic)+2 || string(body[:len(magic)]) != magic {
		return hello{}, errMalformed
	}
	h := hello{version: binary.BigEndian.Uint16(body[len(magic):])}
	d.b = body[len(magic)+2:]
	h.token = d.bytes()
	if d.err == nil && h.version == protocolVersion {
		h.id = string(d.bytes())
		if len(h.id) > maxID {
			d.fail()
		}
	}
	return h, d.err
}

// frameHello is the kind of the first frame of both sides.
const frameHello byte = 'F'

// welcome is what a server answers. All versions of the protocol begin it with magic, version and refusal.
type welcome struct {
	version uint16
	refusal refusal
	text    string
	opening string
}

// refusal says why a server does not let a client in.
type refusal byte

const (
	refusedNot refusal = iota
	refusedToken
	refusedVersion
	refusedFull
)

func (w welcome) encode() []byte {
	b := binary.BigEndian.AppendUint16([]byte(magic), w.version)
	b = append(b, byte(w.refusal))
	b = appendBytes(b, w.text)
	return appendBytes(b, w.opening)
}

func decodeWelcome(kind byte, body []byte) (welcome, error) {
	if kind != frameHello || len(body) < len(magic)+3 || string(body[:len(magic)]) != magic {
		return welcome{}, errMalformed
	}
	w := welcome{version: binary.BigEndian.Uint16(body[len(magic):]), refusal: refusal(body[len(magic)+2])}
	if w.refusal == refusedVersion {
		return w, nil // what follows is in the words of another version
	}
	d := &decoder{b: body[len(magic)+3:]}
	w.text = string(d.bytes())
	w.opening = string(d.bytes())
	return w, d.err
}

// err is why the client was not let in, nil if it was.
func (w welcome) err() error {
	switch w.refusal {
	case refusedNot:
		return nil
	case refusedToken:
		return fmt.Errorf("%w: give the one that the serving process was started with", ErrBadToken)
	case refusedVersion:
		return fmt.Errorf("%w: it speaks version %d, this program %d: use the same release for both",
			ErrBadVersion, w.version, protocolVersion)
	default:
		return fmt.Errorf("%w: the server refused: %s", kv.ErrUnavailable, w.text)
	}
}

// sameToken compares in a time that tells nothing about the tokens.
func sameToken(want string, got []byte) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256(got)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// greet says hello to a server and returns its welcome.
func greet(conn net.Conn, r *bufio.Reader, h hello, deadline time.Time) (welcome, error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return welcome{}, err
	}
	if _, err := conn.Write(appendFrame(nil, frameHello, h.encode(), nil)); err != nil {
		return welcome{}, err
	}
	kind, body, err := readFrame(r, maxHello)
	if errors.Is(err, errMalformed) {
		return welcome{}, fmt.Errorf("%w: %w", ErrNotServer, err)
	}
	if err != nil {
		question := "is it a Futura store, and does it expect TLS?"
		if conn.LocalAddr().Network() == "unix" {
			question = "is it a Futura store?"
		}
		return welcome{}, fmt.Errorf("the server did not answer: %s %w", question, bare(err))
	}
	w, err := decodeWelcome(kind, body)
	if err != nil {
		return welcome{}, fmt.Errorf("%w: %w", ErrNotServer, err)
	}
	if err := w.err(); err != nil {
		return welcome{}, err
	}
	return w, conn.SetDeadline(time.Time{})
}

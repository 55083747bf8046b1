package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
)

const (
	magic           = "FUTURAOB"
	protocolVersion = 1
	// busyVersion stands for a server that has too many connections.
	busyVersion = 0xff
	nonceSize   = 32
	greetSize   = len(magic) + 1 + nonceSize
	proofSize   = greetSize + sha256.Size
	// minToken is the least length of a token: those who see a proof could try all
	// shorter ones.
	minToken = 16
	maxToken = 1 << 10
)

// proof shows that a side knows the token, for this connection and in this role.
func proof(token, role string, server, client [nonceSize]byte) [sha256.Size]byte {
	h := hmac.New(sha256.New, []byte(token))
	_, _ = io.WriteString(h, "futura objects 1 "+role+" ") // it never fails
	_, _ = h.Write(server[:])
	_, _ = h.Write(client[:])
	return [sha256.Size]byte(h.Sum(nil))
}

func checkToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf("%w: the token has %d bytes: from %d to %d are needed, drawn at random", ErrInsecure, len(token),
			minToken, maxToken)
	}
	return nil
}

// greeting is the first that a side says.
func greeting(version byte, nonce [nonceSize]byte) []byte {
	b := append([]byte(magic), version)
	return append(b, nonce[:]...)
}

// parseGreeting returns the nonce of the other side.
func parseGreeting(b []byte) (nonce [nonceSize]byte, err error) {
	rest, found := strings.CutPrefix(string(b[:len(magic)+1]), magic)
	switch {
	case !found:
		return nonce, fmt.Errorf("%w: it begins with %x", ErrMalformed, b[:len(magic)])
	case rest[0] == busyVersion:
		return nonce, fmt.Errorf("%w: %w: it has too many connections", ErrRefused, errBusy)
	case rest[0] != protocolVersion:
		return nonce, fmt.Errorf("%w: version %d of the protocol, this is version %d", ErrRefused, rest[0], protocolVersion)
	}
	return [nonceSize]byte(b[len(magic)+1:]), nil
}

func newNonce() (nonce [nonceSize]byte) {
	_, _ = rand.Read(nonce[:]) // it never fails
	return nonce
}

// welcome is the server's side: it says a nonce, checks the client's proof, and
// gives its own.
func welcome(c io.ReadWriter, token string) error {
	mine := newNonce()
	if _, err := c.Write(greeting(protocolVersion, mine)); err != nil {
		return err
	}
	var b [proofSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	theirs, err := parseGreeting(b[:greetSize])
	if err != nil {
		return err
	}
	want := proof(token, "client", mine, theirs)
	if !hmac.Equal(want[:], b[greetSize:]) {
		var answer [1 + sha256.Size]byte
		_, _ = c.Write(answer[:]) // it is a courtesy
		return fmt.Errorf("%w: another token", ErrRefused)
	}
	own := proof(token, "server", mine, theirs)
	_, err = c.Write(append([]byte{1}, own[:]...))
	return err
}

// introduce is the client's side.
func introduce(c io.ReadWriter, token string) error {
	var b [greetSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	theirs, err := parseGreeting(b[:])
	if err != nil {
		return err
	}
	mine := newNonce()
	own := proof(token, "client", theirs, mine)
	if _, err := c.Write(append(greeting(protocolVersion, mine), own[:]...)); err != nil {
		return err
	}
	var answer [1 + sha256.Size]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	want := proof(token, "server", theirs, mine)
	if answer[0] != 1 || !hmac.Equal(want[:], answer[1:]) {
		return fmt.Errorf("%w: the source knows another token", ErrRefused)
	}
	return nil
}

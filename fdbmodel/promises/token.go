package promises

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Token opens one promise: who has it may complete that promise, and nothing else. It is 192
// random bits with the promise's id. It is shown once, to the one that drew it: only the
// SHA-256 of these bits is stored.
type Token struct {
	ID     layout.ID
	secret [secretSize]byte
}

const (
	secretSize = 24
)

// TokenPrefix begins each token.
const TokenPrefix = layout.PromiseTokenPrefix

// ErrBadToken is returned for a token that opens no promise: it is none, its promise was
// removed, or another one was drawn since. The answer is the same for all.
var ErrBadToken = errors.New("the token opens no promise: it is none, a newer one was drawn, or its promise is gone")

// draw draws the token of a promise.
func draw(id layout.ID) Token {
	t := Token{ID: id}
	rand.Read(t.secret[:]) // never fails
	return t
}

// ParseToken parses a token. It returns ErrBadToken for text that can't be one.
func ParseToken(text string) (t Token, err error) {
	packed, found := strings.CutPrefix(text, TokenPrefix)
	b, bad := base64.RawURLEncoding.Strict().DecodeString(packed)
	if !found || bad != nil || len(b) != len(t.ID)+len(t.secret) ||
		len(packed) != base64.RawURLEncoding.EncodedLen(len(b)) { // it passes over line ends
		return Token{}, ErrBadToken
	}
	copy(t.ID[:], b)
	copy(t.secret[:], b[len(t.ID):])
	return t, nil
}

// Text returns the token in full: the only way to it.
func (t *Token) Text() string {
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(append(t.ID[:], t.secret[:]...))
}

// String returns the token without what is secret of it.
func (t Token) String() string { return fmt.Sprintf("token of promise %s (not shown)", t.ID) }

// GoString is String.
func (t Token) GoString() string { return t.String() }

// IsZero reports whether it is no token.
func (t *Token) IsZero() bool { return t.ID.IsZero() }

func (t *Token) digest() []byte {
	sum := sha256.Sum256(t.secret[:])
	return sum[:]
}

// opens reports whether a promise with this record is opened by the token. It takes the same
// time whatever the difference.
func (t *Token) opens(r *Record) bool {
	var stored [sha256.Size]byte // of nothing, where there is no record
	copy(stored[:], r.Digest)
	return subtle.ConstantTimeCompare(t.digest(), stored[:]) == 1
}

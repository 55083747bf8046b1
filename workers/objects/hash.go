package objects

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/zeebo/blake3"
)

// PieceSize is the length of each piece of an object but the last, in bytes. It
// is part of how objects are hashed.
const PieceSize = 512 << 10

// MaxSize is the size of the largest object, in bytes.
const MaxSize = 1 << 46

// rootContext keeps hashes of objects apart from all other uses of BLAKE3.
const rootContext = "futura 2026-11 object: size and hashes of pieces"

// ErrDamaged is returned for content that does not have the hash that it should
// have.
var ErrDamaged = errors.New("objects: the content does not have its hash")

// Hash is the BLAKE3 hash of a piece, or that of an object.
type Hash [32]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String returned.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return Hash{}, fmt.Errorf("objects: hash %.80q has %d digits: 64 are needed", s, len(s))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("objects: hash %q: %w", s, err)
	}
	return h, nil
}

// Ref names an object.
type Ref struct {
	// Hash is a hash over the size and the hashes of the pieces.
	Hash Hash
	// Size is the length of the content in bytes.
	Size int64
}

// String returns the hash and the size.
func (r Ref) String() string { return fmt.Sprintf("%s (%d bytes)", r.Hash, r.Size) }

// Pieces is the number of pieces.
func (r Ref) Pieces() int { return int((r.Size + PieceSize - 1) / PieceSize) }

// PieceLength is the length of a piece in bytes.
func (r Ref) PieceLength(piece int) int {
	return int(min(PieceSize, r.Size-int64(piece)*PieceSize))
}

// Valid returns ErrDamaged for a size that no object has.
func (r Ref) Valid() error {
	if r.Size < 0 || r.Size > MaxSize {
		return fmt.Errorf("%w: %s: an object has from 0 to %d bytes", ErrDamaged, r, int64(MaxSize))
	}
	return nil
}

// Verify returns ErrDamaged unless pieces are the hashes of the object's pieces.
func (r Ref) Verify(pieces []Hash) error {
	if err := r.Valid(); err != nil {
		return err
	}
	if len(pieces) != r.Pieces() {
		return fmt.Errorf("%w: %s has %d pieces, not %d", ErrDamaged, r, r.Pieces(), len(pieces))
	}
	if got := RefOf(r.Size, pieces); got != r {
		return fmt.Errorf("%w: the list of pieces for %s is that of %s", ErrDamaged, r, got.Hash)
	}
	return nil
}

// VerifyPiece returns ErrDamaged unless content is a piece of the object, given
// the verified hashes of its pieces.
func (r Ref) VerifyPiece(pieces []Hash, piece int, content []byte) error {
	if piece < 0 || piece >= len(pieces) || len(content) != r.PieceLength(piece) {
		return fmt.Errorf("%w: piece %d of %s with %d bytes", ErrDamaged, piece, r, len(content))
	}
	if HashPiece(content) != pieces[piece] {
		return fmt.Errorf("%w: piece %d of %s", ErrDamaged, piece, r)
	}
	return nil
}

// HashPiece returns the hash of one piece.
func HashPiece(content []byte) Hash { return blake3.Sum256(content) }

// RefOf names the object with these hashes of pieces.
func RefOf(size int64, pieces []Hash) Ref {
	h := blake3.NewDeriveKey(rootContext)
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(size))
	_, _ = h.Write(length[:]) // it never fails
	for i := range pieces {
		_, _ = h.Write(pieces[i][:])
	}
	r := Ref{Size: size}
	h.Sum(r.Hash[:0])
	return r
}

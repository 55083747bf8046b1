package p2p

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/futura-run/futura/internal/trust"
)

// keySize is the size of an Ed25519 key in libp2p's protobuf form.
const keySize = 68

// PeerID names a peer, in base58: 12D3KooW and so on for Ed25519 keys. It is a
// hash of the peer's public key, or that key itself, and is proved by each
// connection and signature.
type PeerID string

// ParsePeerID returns a peer's id from its text: base58, or a CID. It returns
// ErrPeerID for any other text.
func ParsePeerID(text string) (PeerID, error) {
	id, err := decodePeer(PeerID(text))
	if err != nil {
		return "", err
	}
	return PeerID(id.String()), nil
}

func decodePeer(id PeerID) (peer.ID, error) {
	const longest = 128
	if len(id) > longest {
		return "", fmt.Errorf("%w: %d characters, at most %d", ErrPeerID, len(id), longest)
	}
	decoded, err := peer.Decode(string(id))
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrPeerID, string(id), err)
	}
	return decoded, nil
}

func nameOf(id peer.ID) PeerID { return PeerID(id.String()) }

// NewKey returns a new Ed25519 private key: the 68 bytes of libp2p's protobuf form,
// without any further encoding.
func NewKey() ([]byte, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("p2p: a new key: %w", err)
	}
	return crypto.MarshalPrivateKey(key)
}

// KeyID returns the id of the peer that has a private key. It returns ErrKey for
// anything but a key as NewKey returns it.
func KeyID(key []byte) (PeerID, error) {
	private, err := parseKey(key)
	if err != nil {
		return "", err
	}
	id, err := peer.IDFromPrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrKey, err)
	}
	return nameOf(id), nil
}

func parseKey(key []byte) (crypto.PrivKey, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("%w: %d bytes, an Ed25519 key in libp2p's protobuf form has %d", ErrKey, len(key), keySize)
	}
	private, err := crypto.UnmarshalPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if private.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("%w: its type is %v, only Ed25519 is supported", ErrKey, private.Type())
	}
	return private, nil
}

// LoadKey returns the private key in a file, which b7s's nodes can use too. Where
// there is no file it makes one with a new key that its owner alone may read; of
// several processes that do so at once, all get the same key. It returns ErrKey for
// a file that others may read, or that holds anything else.
func LoadKey(path string) ([]byte, error) {
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = NewKey(); err != nil {
		return nil, err
	}
	if err := writeKey(path, key); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("p2p: a new key file: %w", err)
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("p2p: key file: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrKey, path)
	}
	key, err := trust.ReadSecret(path, keySize)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if _, err := parseKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w; move it away to get a new key, and with it a new peer id", path, err)
	}
	return key, nil
}

// writeKey makes a file appear with the whole key in it, or returns fs.ErrExist.
func writeKey(path string, key []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".key-*") // only its owner may read it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temporary.Name())) }()
	_, err = temporary.Write(key)
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Link(temporary.Name(), path)
}

package promises

import (
	"crypto/sha256"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// KeyPromise is the kind of key of what opens a promise.
const KeyPromise = "promise"

// Kinds returns the kinds of keys of promises.
func Kinds() []layout.KeyKind {
	return []layout.KeyKind{{Name: KeyPromise, Subspace: layout.SubFutures, Sharded: true,
		Elements: []layout.Element{layout.FutureID("id").Home(), layout.Fixed(layout.RowPromise)},
		Record:   layout.RecordOf[Record],
		Holds:    "the hash of the token that completes a promise", Writer: "the creation of a promise, and each new token"}}
}

// Keys makes the keys of promises.
type Keys layout.Keyspace

// Promise returns the key of what opens a promise.
func (k Keys) Promise(id layout.ID) []byte {
	return tuple.AppendString(layout.Keyspace(k).Row(id), layout.RowPromise)
}

// Record is what opens a promise.
type Record struct {
	// Digest is the SHA-256 of the secret of its token, and At when that was drawn.
	Digest []byte `msgpack:"d" json:"-"`
	At     int64  `msgpack:"t" json:"at_ms"`
}

// IsSound reports whether the record may be one that was written here.
func (r *Record) IsSound() bool { return len(r.Digest) == sha256.Size && r.At > 0 }

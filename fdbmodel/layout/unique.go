package layout

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// UniqueUntil says how long a future keeps what makes it unique.
type UniqueUntil string

const (
	UntilEnd   UniqueUntil = ""      // until it is realized or has failed
	UntilClaim UniqueUntil = "claim" // until a worker claims it
	UntilEver  UniqueUntil = "ever"  // for ever, even after it was removed
)

// UniqueName names what makes futures unique: 32 hex digits, a hash of it.
type UniqueName string

// Unique says that no other future may have the same name at the same time.
type Unique struct {
	Name UniqueName `msgpack:"n" json:"name"`
	// Key is the beginning of the key that the name was made from, for people.
	Key   string      `msgpack:"k,omitempty" json:"key,omitempty"`
	Until UniqueUntil `msgpack:"u,omitempty" json:"until,omitempty"`
	// For is how long after its submit the future keeps the name at least.
	For time.Duration `msgpack:"f,omitempty" json:"for_ns,omitempty"`
}

// Limits of what makes a future unique.
const (
	MaxUniqueKey   = 1024                 // bytes of a key
	MaxUniqueFor   = 366 * 24 * time.Hour // a period
	maxUniqueShown = 128                  // bytes of Unique.Key
)

// CheckUnique returns ErrBadSpec for a period or an end that a unique future can't
// have.
func CheckUnique(until UniqueUntil, period time.Duration) error {
	switch {
	case until != UntilEnd && until != UntilClaim && until != UntilEver:
		return fmt.Errorf("%w: unique until %.20q: use end, claim or ever", ErrBadSpec, until)
	case period < 0 || period > MaxUniqueFor:
		return fmt.Errorf("%w: unique for %v: use up to %v, or for ever", ErrBadSpec, period, MaxUniqueFor)
	case period > 0 && until == UntilEver:
		return fmt.Errorf("%w: unique for ever and for %v: use one of them", ErrBadSpec, period)
	}
	return nil
}

// ShowUniqueKey returns the part of a key that records show.
func ShowUniqueKey(key string) string { return Shorten(key, maxUniqueShown) }

// FreeAt returns until when the future keeps its name at least, in milliseconds of
// Unix time, and 0 if no period says so. It is for specs of unique futures.
func (s *Spec) FreeAt() int64 {
	if s.Unique.For <= 0 {
		return 0
	}
	return s.SubmittedAt + max(1, s.Unique.For.Milliseconds())
}

// UniqueRecord says that a future has a name. The key has its id.
type UniqueRecord struct {
	Until UniqueUntil `msgpack:"u,omitempty" json:"until,omitempty"`
	// FreeAt is until when it has it at least, 0 for no such time.
	FreeAt int64  `msgpack:"t,omitempty" json:"free_at_ms,omitempty"`
	Key    string `msgpack:"k,omitempty" json:"key,omitempty"`
}

// UniqueOf returns the record of a unique future.
func UniqueOf(s *Spec) *UniqueRecord {
	return &UniqueRecord{Until: s.Unique.Until, FreeAt: s.FreeAt(), Key: s.Unique.Key}
}

// IsOf reports whether a future has the name by the record. It may be that of an earlier
// future with the same id, which was removed and keeps it.
func (r *UniqueRecord) IsOf(row *Row, name UniqueName) bool {
	return row.Spec != nil && row.Spec.Unique != nil && row.Spec.Unique.Name == name && *UniqueOf(row.Spec) == *r
}

// Kinds of keys of unique futures.
const (
	KeyUnique    = "unique"
	KeyUniqueDue = "unique due"
)

// Subspaces of unique futures.
const (
	SubUnique    = "unique"
	SubUniqueDue = "unique-due"
)

func uniqueKinds() []KeyKind {
	return []KeyKind{
		{KeyUnique, SubUnique, true, in(Text("name").Home(), futureID()), FormatRecord, RecordOf[UniqueRecord], "", carried,
			"the future that has a unique name, and for how long", "submit, retry; cleared when it ends"},
		{KeyUniqueDue, SubUniqueDue, true, in(Number("free_at_ms"), Text("name").Home(), futureID()), FormatEmpty, nil, "",
			carried, "a future that is over keeps its unique name until this time", "the end of the future"},
	}
}

// UniqueNamed returns the prefix of the futures that have a name: one, if any.
func (k Keyspace) UniqueNamed(name UniqueName) []byte {
	return tuple.AppendString(k.Shard(ShardOf(string(name), k.Shards), SubUnique), string(name))
}

// Unique returns the key that says that a future has a name.
func (k Keyspace) Unique(name UniqueName, id ID) []byte {
	return tuple.AppendUUID(k.UniqueNamed(name), id)
}

// UniqueDueOf returns the prefix of a shard's futures that are over and keep their
// names.
func (k Keyspace) UniqueDueOf(shard int) []byte { return k.Shard(shard, SubUniqueDue) }

// UniqueDue returns the key that says that a future which is over keeps its name until
// a time.
func (k Keyspace) UniqueDue(at int64, name UniqueName, id ID) []byte {
	b := tuple.AppendInt(k.UniqueDueOf(ShardOf(string(name), k.Shards)), at)
	return tuple.AppendUUID(tuple.AppendString(b, string(name)), id)
}

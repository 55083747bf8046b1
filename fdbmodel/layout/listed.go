package layout

import (
	"bytes"
	"cmp"
	"math"
	"time"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Age is where a future stands among others in lists: by the time at which it was
// submitted, and by its id within a millisecond.
type Age struct {
	Millis int64
	ID     ID
}

// AgeOf returns a future's age. Ids that were drawn have their time in them.
func AgeOf(id ID, s *Spec) Age {
	if drawn := id.Time(); !drawn.IsZero() {
		return Age{drawn.UnixMilli(), id}
	}
	return Age{s.SubmittedAt, id}
}

// Compare returns -1 if a is older than b, 1 if it is younger, and 0 if they are the
// same.
func (a Age) Compare(b Age) int {
	return cmp.Or(cmp.Compare(a.Millis, b.Millis), bytes.Compare(a.ID[:], b.ID[:]))
}

// Youngest is above the age of every future.
func Youngest() Age {
	age := Age{Millis: math.MaxInt64}
	for i := range age.ID {
		age.ID[i] = 0xff
	}
	return age
}

// FirstIDAt returns the lowest id that can have been drawn at a time.
func FirstIDAt(at time.Time) ID {
	ms := uint64(max(at.UnixMilli(), 0))
	var id ID
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

// Parts of lists of futures.
const (
	listedFailed = "failed"
	listedKeyed  = "keyed"
	listedTag    = "tag"
)

// ListedFailed returns the prefix of the list of futures of a shard that have failed.
func (k Keyspace) ListedFailed(shard int) []byte {
	return tuple.AppendString(k.Shard(shard, SubListed), listedFailed)
}

// ListedKeyed returns the prefix of the list of futures of a shard whose ids say
// nothing of their age.
func (k Keyspace) ListedKeyed(shard int) []byte {
	return tuple.AppendString(k.Shard(shard, SubListed), listedKeyed)
}

// ListedTag returns the prefix of the list of futures of a shard with a tag.
func (k Keyspace) ListedTag(shard int, tag string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Shard(shard, SubListed), listedTag), tag)
}

// Listed returns the key of a future in a list, by the prefix of that.
func Listed(prefix []byte, age Age) []byte {
	return tuple.AppendUUID(tuple.AppendInt(prefix[:len(prefix):len(prefix)], age.Millis), age.ID)
}

// ListedAs returns the keys by which lists find a future apart from its records: none
// of one that was submitted without a key, has no tags and did not fail.
func (k Keyspace) ListedAs(row *Row) (keys [][]byte) {
	if !row.ID.Time().IsZero() && len(row.Spec.Tags) == 0 && row.State() != Failed {
		return nil
	}
	shard, age := row.ID.Shard(k.Shards), AgeOf(row.ID, row.Spec)
	if row.ID.Time().IsZero() && !row.Spec.Held() {
		keys = append(keys, Listed(k.ListedKeyed(shard), age))
	}
	if row.State() == Failed && !row.Spec.Held() {
		keys = append(keys, Listed(k.ListedFailed(shard), age))
	}
	for _, tag := range row.Spec.Tags {
		keys = append(keys, Listed(k.ListedTag(shard, tag), age))
	}
	return keys
}

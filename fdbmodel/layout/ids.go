package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// ItemBlock is how many neighbouring items of a batch share a shard.
const ItemBlock = MaxSubmit

// BatchItemID returns the id of the future for one item of a batch, made from
// the batch's id and the item's index: a version 8 UUID that contains the
// index. Neighbours share a shard, so that they are written and read together.
func BatchItemID(batch string, index int) ID {
	var id ID
	sum := sha256.Sum256([]byte("batch item " + batch))
	copy(id[:], sum[:neighbourPrefix])
	id[6], id[8] = 0x80|id[6]&0x0f, 0x80|id[8]&0x3f
	binary.BigEndian.PutUint32(id[neighbourPrefix:], uint32(index))
	spread := sha256.Sum256(binary.BigEndian.AppendUint64(sum[:], uint64(index/ItemBlock)))
	id[15] = spread[0]
	return id
}

// BatchItemIndex returns the index in an id that BatchItemID made.
func BatchItemIndex(id ID) int { return int(binary.BigEndian.Uint32(id[neighbourPrefix:])) }

// Neighbour returns the id with another index of the same ItemBlock, of an id that
// BatchItemID made.
func Neighbour(id ID, index int) ID {
	binary.BigEndian.PutUint32(id[neighbourPrefix:], uint32(index))
	return id
}

// ID permanently identifies a future: a UUID whose last byte holds the shard of
// the future's keys. Ids that the cluster draws are version 7 (RFC 9562), so
// that they sort by submit time; ids made from an idempotency key are version
// 8.
type ID [16]byte

// PromiseTokenPrefix begins each token of a promise: it lets people, logs and scanners for secrets know one.
const PromiseTokenPrefix = "prm_"

// ParseID parses an id in the form that String returns. It returns ErrBadID, which repeats no token of a promise.
func ParseID(s string) (ID, error) {
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		if before, _, is := strings.Cut(s, PromiseTokenPrefix); is {
			s = before + PromiseTokenPrefix + "…"
		}
		return ID{}, fmt.Errorf("%w: %.64q is not of the form 01234567-89ab-7cde-8f01-23456789ab05", ErrBadID, s)
	}
	return ID(u), nil
}

// String returns the id in the usual 36 characters.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(b []byte) error {
	parsed, err := ParseID(string(b))
	if err == nil {
		*id = parsed
	}
	return err
}

// IsZero reports whether the id is unset.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns when the id was drawn, to the millisecond, by the clock of the
// process that drew it. It is the zero time for ids made from a key.
func (id ID) Time() time.Time {
	if id[6]>>4 != 7 {
		return time.Time{}
	}
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:])))
}

// Shard returns the shard of the future's keys.
func (id ID) Shard(shards int) int { return int(id[15]) & (shards - 1) }

// IdSource draws version 7 ids that increase strictly within one process, even
// within one millisecond and when the clock steps back.
type IdSource struct {
	mu     sync.Mutex
	Random io.Reader
	last   uint64
}

// Draw returns n ids that share a shard, so that their rows are neighbours and
// one commit touches one part of the store. It returns none for an n below 1.
func (s *IdSource) Draw(now time.Time, shards, n int) ([]ID, error) {
	if n <= 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entropy := make([]byte, 8*n)
	if _, err := io.ReadFull(s.Random, entropy); err != nil {
		return nil, fmt.Errorf("fdbmodel: no randomness for an id: %w", err)
	}
	shard := entropy[7] & byte(shards-1)
	ids := make([]ID, n)
	for i := range ids {
		// 48 bits of milliseconds and 12 bits of order within them.
		s.last = max(uint64(now.UnixMilli())<<12, s.last+1)
		id := &ids[i]
		binary.BigEndian.PutUint64(id[:8], s.last>>12<<16|0x7000|s.last&0xfff)
		copy(id[8:], entropy[8*i:8*i+8])
		id[8] = id[8]&0x3f | 0x80
		id[15] = shard
	}
	return ids, nil
}

// KeyedID returns the id that an idempotency key stands for in a cluster: the
// same key always gives the same id.
func KeyedID(cluster, key string) ID {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s:%s", len(cluster), cluster, key)
	var id ID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// WorkerID names one start of a worker: 16 hex digits, drawn for each start, so
// that a restarted worker never mistakes earlier claims for its own.
type WorkerID string

// SessionID names one client process that awaits futures: 16 hex digits.
type SessionID string

// DrawHex returns 16 random hexadecimal digits.
func DrawHex(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("fdbmodel: no randomness for an id: %w", err)
	}
	return fmt.Sprintf("%x", b), nil
}

// ShardOf spreads workers and sessions over the shards.
func ShardOf(name string, shards int) int {
	sum := sha256.Sum256([]byte(name))
	return int(sum[0]) & (shards - 1)
}

// neighbourPrefix is the length in bytes of the common prefix of neighbours'
// ids; their last byte is the same too, and their index lies between.
const neighbourPrefix = 11

// Follows reports whether id is a neighbour of other and sorts after it.
func (id ID) Follows(other ID) bool {
	return id[15] == other[15] && bytes.Equal(id[:neighbourPrefix], other[:neighbourPrefix]) &&
		bytes.Compare(id[:], other[:]) > 0
}

// Apart returns how far an id lies behind another one that was made to lie close
// to it: one drawn before it by the same process, or a neighbour. It returns false
// for others.
func (id ID) Apart(other ID) (distance int, known bool) {
	const drawn = 7 // the version
	switch {
	case id[15] != other[15] || bytes.Compare(id[:], other[:]) <= 0:
		return 0, false
	case id[6]>>4 == drawn && other[6]>>4 == drawn:
		a, b := id.order()-other.order(), uint64(1<<31-1)
		return int(min(a, b)), true
	case id.Follows(other):
		return BatchItemIndex(id) - BatchItemIndex(other), true
	}
	return 0, false
}

// order returns the time and the order within it of an id that was drawn.
func (id ID) order() uint64 {
	n := binary.BigEndian.Uint64(id[:8])
	return n>>16<<12 | n&0xfff
}

// IDList holds ids as records store them: 16 bytes each.
type IDList []byte

// PackIDs returns ids as records store them.
func PackIDs(ids []ID) []byte {
	b := make([]byte, 0, 16*len(ids))
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

// UnpackIDs returns the ids of a list. A truncated id at the end is left out.
func UnpackIDs(b []byte) []ID {
	ids := make([]ID, 0, len(b)/16)
	for ; len(b) >= 16; b = b[16:] {
		ids = append(ids, ID(b[:16]))
	}
	return ids
}

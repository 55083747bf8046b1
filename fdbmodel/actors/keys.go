package actors

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Kinds of keys of actors.
const (
	KeyHead  = "actor"
	KeyState = "actor state"
	KeyPart  = "actor part"
)

// Subspace has the keys of actors.
const Subspace = "actors"

// Parts of the keys of actors. Heads lie together, so that a list of actors reads no large states.
const (
	headPart  = "head"
	statePart = "state"
	partPart  = "part"
)

// Limits of actors.
const (
	// MaxState is the largest state of an actor, encoded, in bytes.
	MaxState = 64 << 10
	// MaxInHead is the largest state that is stored within the head, in bytes; a larger one has a key of its own.
	MaxInHead = 1 << 10
	// MaxType is the maximum length of the name of a type, in bytes.
	MaxType = 48
	// MaxKey is the maximum length of a key, in bytes.
	MaxKey = layout.MaxLaneKey
	// MaxTurn is how many actors one turn reads and writes.
	MaxTurn = 256
	// MaxTurnBytes is the most that one turn writes and submits, in bytes.
	MaxTurnBytes = 1_000_000
)

// Kinds returns the kinds of keys of actors.
func Kinds() []layout.KeyKind {
	of := func(part string, more ...layout.Element) []layout.Element {
		return append([]layout.Element{layout.Fixed(part), layout.Text("type"), layout.Text("key").Home()}, more...)
	}
	return []layout.KeyKind{
		{Name: KeyHead, Subspace: Subspace, Sharded: true, Elements: of(headPart), Record: layout.RecordOf[HeadRecord],
			Holds:  "the version of an actor's state, the call that wrote it, and the state up to 1 KiB",
			Writer: "the end of a call that changed the state; its deletion"},
		{Name: KeyState, Subspace: Subspace, Sharded: true, Elements: of(statePart), Format: layout.FormatPiece,
			Called: "state", Holds: "a larger state of an actor, in the codec of its head", Writer: "as its head"},
		{Name: KeyPart, Subspace: Subspace, Sharded: true, Elements: of(partPart, layout.Text("name")),
			Record: layout.RecordOf[PartRecord], Holds: "a named part of an actor",
			Writer: "the end of a call that set it; one that removed it; the deletion of the actor"},
	}
}

// Ref names an actor.
type Ref struct {
	// Type has 1 to MaxType of A-Z, a-z, 0-9 and . _ -, and begins with a letter or digit.
	Type string `json:"type"`
	// Key is 1 to MaxKey bytes of UTF-8.
	Key string `json:"key"`
}

var typeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckType returns ErrBadName unless name may name a type of actors.
func CheckType(name string) error {
	if len(name) > MaxType || !typeName.MatchString(name) {
		return fmt.Errorf("%w: type of actors %.80q: use 1 to %d of A-Z, a-z, 0-9 and . _ -, beginning with a letter or "+
			"digit", layout.ErrBadName, name, MaxType)
	}
	return nil
}

// Check returns ErrBadName unless it may name an actor.
func (r Ref) Check() error {
	if err := CheckType(r.Type); err != nil {
		return err
	}
	if r.Key == "" || len(r.Key) > MaxKey || !utf8.ValidString(r.Key) {
		return fmt.Errorf("%w: actor %s/%.80q: a key of %d bytes: use UTF-8 of 1 to %d", layout.ErrBadName, r.Type, r.Key,
			len(r.Key), MaxKey)
	}
	return nil
}

// String returns TYPE/KEY.
func (r Ref) String() string { return r.Type + "/" + r.Key }

// lanePrefix begins the kinds of lanes of actors.
const lanePrefix = "actor."

// Lane returns the lane of the calls of an actor.
func (r Ref) Lane() layout.Lane { return layout.Lane{Kind: LaneKind(r.Type), Key: r.Key} }

// LaneKind returns the kind of lanes of the calls of a type.
func LaneKind(name string) string { return lanePrefix + name }

// IsLaneKind reports whether a kind of lanes is that of a type of actors.
func IsLaneKind(kind string) bool { return strings.HasPrefix(kind, lanePrefix) }

// OfLane returns the actor whose calls a lane has, and false for a lane of others.
func OfLane(lane layout.Lane) (r Ref, is bool) {
	name, is := strings.CutPrefix(lane.Kind, lanePrefix)
	r = Ref{Type: name, Key: lane.Key}
	return r, is && r.Check() == nil
}

// ParseRef parses TYPE/KEY. It returns ErrBadName for anything else.
func ParseRef(text string) (Ref, error) {
	name, key, found := strings.Cut(text, "/")
	if !found {
		return Ref{}, fmt.Errorf("%w: actor %.80q: use TYPE/KEY, such as account/alice", layout.ErrBadName, text)
	}
	r := Ref{Type: name, Key: key}
	return r, r.Check()
}

// Keys makes the keys of actors.
type Keys layout.Keyspace

func (k Keys) shard(shard int, part, name string) []byte {
	key := tuple.AppendString(layout.Keyspace(k).Shard(shard, Subspace), part)
	return tuple.AppendString(key, name)
}

func (k Keys) of(part string, r Ref) []byte {
	return tuple.AppendString(k.shard(layout.ShardOf(r.Key, k.Shards), part, r.Type), r.Key)
}

// Head returns the key of the head of an actor.
func (k Keys) Head(r Ref) []byte { return k.of(headPart, r) }

// State returns the key of the state of an actor.
func (k Keys) State(r Ref) []byte { return k.of(statePart, r) }

// Head is what is known of an actor without its state.
type Head struct {
	// Version counts the turns that have changed the state or a part, from 1.
	Version int64 `msgpack:"v" json:"version"`
	// Call is the future whose attempt wrote this version, under Token.
	Call         layout.ID `msgpack:"i" json:"call"`
	layout.Token           // of the claim
	Schema       int       `msgpack:"m,omitempty" json:"schema,omitempty"`
	Codec        string    `msgpack:"c,omitempty" json:"codec,omitempty"`
	Size         int64     `msgpack:"z,omitempty" json:"size"`            // of the state, in bytes
	Parts        bool      `msgpack:"p,omitempty" json:"parts,omitempty"` // it has had named parts
	CreatedAt    int64     `msgpack:"b" json:"created_at_ms"`
	At           int64     `msgpack:"t" json:"at_ms"`
}

// HeadRecord is a head as it is stored.
type HeadRecord struct {
	Head
	// State is one of up to MaxInHead bytes.
	State []byte `msgpack:"d,omitempty" json:"-"`
}

// Beside reports whether the state has a key of its own: a large one, and each one that a version of Futura
// wrote that did not keep small ones in their heads.
func (r *HeadRecord) Beside() bool { return r.Size > MaxInHead || r.Size > 0 && len(r.State) == 0 }

// IsSound reports whether the head may be one that was written here.
func (h *Head) IsSound() bool {
	return h.Version > 0 && !h.Call.IsZero() && h.Size >= 0 && h.Size <= MaxState && h.Schema >= 0 && h.CreatedAt <= h.At
}

// fits reports whether a state may be that of the head.
func (h *Head) fits(state []byte) bool { return h.IsSound() && int64(len(state)) == h.Size }

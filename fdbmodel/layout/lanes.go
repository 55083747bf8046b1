package layout

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/jsonpointer"
)

// Lane names one lane: the futures that share its key obey the settings of its
// kind together. The zero value is no lane.
type Lane struct {
	Kind string `msgpack:"k" json:"kind"`
	Key  string `msgpack:"y" json:"key"`
}

// MaxLaneKey is the maximum length of the key of a lane, in bytes. It is UTF-8, and not
// empty.
const MaxLaneKey = 256

var laneKind = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// IsZero reports whether it is no lane.
func (l Lane) IsZero() bool { return l == Lane{} }

// String returns KIND/KEY.
func (l Lane) String() string { return l.Kind + "/" + l.Key }

// ParseLane parses KIND/KEY. It returns ErrBadName for anything else.
func ParseLane(text string) (Lane, error) {
	kind, key, found := strings.Cut(text, "/")
	if !found {
		return Lane{}, fmt.Errorf("%w: lane %.80q: use KIND/KEY, such as mail/acme", ErrBadName, text)
	}
	lane := Lane{Kind: kind, Key: key}
	return lane, lane.Check()
}

// Check returns ErrBadName unless it may name a lane.
func (l Lane) Check() error {
	if err := CheckLaneKind(l.Kind); err != nil {
		return err
	}
	if l.Key == "" || len(l.Key) > MaxLaneKey || !utf8.ValidString(l.Key) {
		return fmt.Errorf("%w: lane %s/%.80q: a key of %d bytes: use UTF-8 of 1 to %d", ErrBadName, l.Kind, l.Key,
			len(l.Key), MaxLaneKey)
	}
	return nil
}

// CheckLaneKind returns ErrBadName unless name may name a kind of lanes.
func CheckLaneKind(name string) error {
	if !laneKind.MatchString(name) {
		return fmt.Errorf("%w: kind of lanes %.80q: use 1 to 64 of A-Z, a-z, 0-9 and . _ -, beginning with a letter or digit",
			ErrBadName, name)
	}
	return nil
}

// LaneKind holds the settings that all lanes of a kind obey.
type LaneKind struct {
	// Width is the maximum number of futures of one lane that are admitted: in the
	// pool, with a worker, or waiting for a retry with their slot. One that is blocked,
	// because the result of an input was lost, has none: it gets in line again. Defaults
	// to 1.
	Width int `msgpack:"w" json:"width"`
	// Total is the maximum number over all lanes of the kind, which take turns.
	// Defaults to 0, no bound.
	Total int `msgpack:"t,omitempty" json:"total,omitempty"`
	// Rate is how many futures of one lane are admitted in each Every. Both default
	// to 0, no bound.
	Rate  int           `msgpack:"r,omitempty" json:"rate,omitempty"`
	Every time.Duration `msgpack:"e,omitempty" json:"every_ns,omitempty"`
	// Bundle is the function that runs the futures of a lane together: in bundles of up to
	// Most futures, and of up to Bytes of arguments unless it is one alone. Empty for kinds
	// whose futures run one by one. Width, Total and Rate then count bundles. Most
	// defaults to 100, Bytes to 1 MB.
	Bundle string `msgpack:"b,omitempty" json:"bundle,omitempty"`
	Most   int    `msgpack:"m,omitempty" json:"most,omitempty"`
	Bytes  int64  `msgpack:"y,omitempty" json:"bytes,omitempty"`
	// Linger is how long a bundle that has more than one member waits for others at most,
	// until it is full. Defaults to 0: it does not.
	Linger time.Duration `msgpack:"l,omitempty" json:"linger_ns,omitempty"`
	// Target is where in the JSON input of a future the key of its lane is, as an RFC 6901
	// pointer such as /table, for submits without the code of the function. Defaults
	// to none.
	Target string `msgpack:"g,omitempty" json:"target,omitempty"`
	// Aside says that a future that waits for its next attempt gives its slot to the
	// next in line, and gets in line again when it is due. Defaults to false: it
	// keeps the slot, so that no other overtakes it.
	Aside bool `msgpack:"a,omitempty" json:"aside,omitempty"`
	// MaxWaiting is how many futures may be in line for one lane: a submit of more is refused. One
	// that was submitted before always gets in line. Defaults to 0, no bound.
	MaxWaiting int `msgpack:"n,omitempty" json:"max_waiting,omitempty"`
	// Paused says that no future of the kind is admitted.
	Paused bool `msgpack:"p,omitempty" json:"paused,omitempty"`
	// Sweep is not 0 while lanes may have room for futures in line since the settings
	// were changed. It counts the changes.
	Sweep int64 `msgpack:"s,omitempty" json:"-"`
}

// Bounds of the settings of a kind of lanes.
const (
	maxLaneWidth = 1_000_000
	maxLaneRate  = 1_000_000
	maxLaneEvery = 31 * 24 * time.Hour
	// maxLaneWaiting bounds what a submit to a lane reads.
	maxLaneWaiting = 10_000

	// MaxMembers is the most members of a bundle.
	MaxMembers     = 100
	maxBundleBytes = 4 << 20
	defaultBytes   = 1_000_000
	maxPointer     = 256 // bytes
	maxLinger      = time.Minute
)

// WithDefaults returns the settings with the empty ones filled in.
func (k LaneKind) WithDefaults() LaneKind {
	k.Width = cmp.Or(k.Width, 1)
	if k.Bundle != "" && k.Most == 0 {
		k.Most = MaxMembers
	}
	if k.Bundle != "" && k.Bytes == 0 {
		k.Bytes = defaultBytes
	}
	return k
}

// Validate returns ErrBadConfig for settings that no lane could obey.
func (k LaneKind) Validate() error {
	switch {
	case k.Width < 1 || k.Width > maxLaneWidth:
		return fmt.Errorf("%w: a lane of width %d: use 1 to %d, or pause it", ErrBadConfig, k.Width, maxLaneWidth)
	case k.Total < 0 || k.Total > maxLaneWidth:
		return fmt.Errorf("%w: a total width of %d: use 1 to %d, or 0 for no bound", ErrBadConfig, k.Total, maxLaneWidth)
	case k.Rate < 0 || k.Rate > maxLaneRate || (k.Rate == 0) != (k.Every == 0):
		return fmt.Errorf("%w: a rate of %d in %v: use 1 to %d in a time, or neither", ErrBadConfig, k.Rate, k.Every,
			maxLaneRate)
	case k.Every < 0 || k.Every > maxLaneEvery:
		return fmt.Errorf("%w: a rate of %d in %v: use a time of up to %v", ErrBadConfig, k.Rate, k.Every, maxLaneEvery)
	case k.MaxWaiting < 0 || k.MaxWaiting > maxLaneWaiting:
		return fmt.Errorf("%w: at most %d futures in line: use 1 to %d, or 0 for no bound", ErrBadConfig, k.MaxWaiting,
			maxLaneWaiting)
	}
	return k.validateBundles()
}

// DecodeLaneKind decodes the settings of a kind of lanes. It returns ErrBadRecord also for
// settings with which its lanes would admit none, or bundles of none.
func DecodeLaneKind(key, value []byte, k *LaneKind) error {
	if err := Decode(key, value, k); err != nil {
		return err
	}
	negative := k.Total < 0 || k.Rate < 0 || k.Every < 0 || k.Linger < 0 || k.MaxWaiting < 0
	if k.Width < 1 || negative || k.Bundle != "" && (k.Most < 1 || k.Bytes < 1) {
		return fmt.Errorf("%s: %w: settings of lanes that can't be obeyed: %+v", tuple.String(key), ErrBadRecord, *k)
	}
	return nil
}

func (k LaneKind) validateBundles() error {
	switch {
	case k.Bundle == "" && k.Target != "":
		return fmt.Errorf("%w: the target %.80q without a function that runs bundles", ErrBadConfig, k.Target)
	case k.Bundle == "" && (k.Most != 0 || k.Bytes != 0 || k.Linger != 0):
		return fmt.Errorf("%w: a bundle of %d futures, %d bytes and %v without a function that runs it", ErrBadConfig, k.Most,
			k.Bytes, k.Linger)
	case k.Bundle == "":
		return nil
	case k.Aside:
		return fmt.Errorf("%w: bundles step aside anyway: leave that out", ErrBadConfig)
	case k.Most < 1 || k.Most > MaxMembers:
		return fmt.Errorf("%w: bundles of %d futures: use 1 to %d", ErrBadConfig, k.Most, MaxMembers)
	case k.Bytes < 1 || k.Bytes > maxBundleBytes:
		return fmt.Errorf("%w: bundles of %d bytes: use 1 to %d", ErrBadConfig, k.Bytes, maxBundleBytes)
	case k.Linger < 0 || k.Linger > maxLinger:
		return fmt.Errorf("%w: bundles that linger for %v: use up to %v", ErrBadConfig, k.Linger, maxLinger)
	case k.Target != "" && (len(k.Target) > maxPointer || jsonpointer.Check(k.Target) != nil):
		return fmt.Errorf("%w: the target %.80q: use an RFC 6901 pointer into the input of up to %d bytes, such as /table",
			ErrBadConfig, k.Target, maxPointer)
	case !goFunction.MatchString(k.Bundle):
		return fmt.Errorf("%w: bundles run by %.80q: use the name of a Go function, go:NAME", ErrBadConfig, k.Bundle)
	}
	return nil
}

// LaneRecord is what is known of a lane that has admitted futures or others in line.
type LaneRecord struct {
	// Open is how many futures are admitted.
	Open int `msgpack:"o,omitempty" json:"open"`
	// Lined is set if futures may be in line.
	Lined bool `msgpack:"l,omitempty" json:"lined,omitempty"`
	// Paused is set if none is admitted until it is resumed.
	Paused bool `msgpack:"p,omitempty" json:"paused,omitempty"`
	// Due is when the next may be admitted, in milliseconds of Unix time, if the rate
	// holds it back. There is a key for it then.
	Due int64 `msgpack:"d,omitempty" json:"due_ms,omitempty"`
	// Spent is up to when the rate has been used, in microseconds of Unix time.
	Spent int64 `msgpack:"s,omitempty" json:"-"`
	// Turn is set if the lane waits for its turn among those of its kind. There is a
	// key for it then.
	Turn bool `msgpack:"t,omitempty" json:"turn,omitempty"`
	// Called is how many bundles are admitted that have not taken their members yet.
	Called int `msgpack:"c,omitempty" json:"called,omitempty"`
	// Counted is how many futures are in line for a lane that lets only so many wait. It holds within
	// the transaction of a caller that reads at the version CountedAt and has written it: that can't
	// read what it has put in line.
	Counted   int   `msgpack:"w,omitempty" json:"-"`
	CountedAt int64 `msgpack:"v,omitempty" json:"-"`
}

// Idle reports whether nothing is known that the absence of the record does not say:
// at now, in microseconds.
func (r *LaneRecord) Idle(now int64) bool {
	return r.Open == 0 && !r.Lined && !r.Paused && r.Due == 0 && !r.Turn && r.Spent <= now
}

// Empty reports whether no future is admitted, and the lane waits for no turn. Futures may be in line.
func (r *LaneRecord) Empty() bool { return r.Open == 0 && !r.Turn }

// LaneTotal counts what is admitted over all lanes of a kind that has a total width.
type LaneTotal struct {
	Open int `msgpack:"o,omitempty" json:"open"`
	// Lined is set if lanes may wait for their turn.
	Lined bool `msgpack:"l,omitempty" json:"lined,omitempty"`
}

// LineRecord says that a future is in line, and where: at the stamp of the commit
// with which it got in line, and its order within that.
type LineRecord struct {
	Stamp kv.Stamp `msgpack:"-" json:"-"`
	Order int64    `msgpack:"o,omitempty" json:"order,omitempty"`
	// Incarnation is that of the store with which it got in line.
	Incarnation int64 `msgpack:"i,omitempty" json:"incarnation,omitempty"`
}

// Fresh reports whether the future gets in line with the present transaction, so that
// it has no stamp yet.
func (r *LineRecord) Fresh() bool { return r.Stamp == kv.Stamp{} }

// LineEntry is the future at a place in line.
type LineEntry struct {
	ID ID `msgpack:"i" json:"id"`
}

// InLine reports whether the future waits for its admission.
func (r *Row) InLine() bool { return r.Line != nil }

// HasSlot reports whether the future is one of those that its lane has admitted.
func (r *Row) HasSlot() bool {
	if r.Spec == nil || r.Spec.Lane.IsZero() || r.Spec.Member {
		return false
	}
	switch r.State() {
	case Ready:
		return r.Line == nil
	case Claimed:
		return true
	case Delayed:
		return r.Attempts.Slot
	default:
		return false
	}
}

// IsCalled reports whether the future is a bundle that has yet to take its members.
func (r *Row) IsCalled() bool {
	return r.Spec != nil && r.Spec.Bundle && !r.State().Terminal() && !r.Attempts.Taken
}

// LaneKinds returns the prefix of the settings of kinds of lanes.
func (k Keyspace) LaneKinds() []byte { return k.Global(subLaneKinds) }

// LaneKind returns the key of the settings of a kind of lanes.
func (k Keyspace) LaneKind(kind string) []byte { return tuple.AppendString(k.LaneKinds(), kind) }

// LaneTotal returns the key of what is admitted over all lanes of a kind.
func (k Keyspace) LaneTotal(kind string) []byte {
	return tuple.AppendString(k.Global(SubLaneTotals), kind)
}

// LaneTurnsOf returns the prefix of the lanes of a kind that wait for their turn.
func (k Keyspace) LaneTurnsOf(kind string) []byte {
	return tuple.AppendString(k.Global(SubLaneTurns), kind)
}

// Lane returns the key of a lane.
func (k Keyspace) Lane(l Lane) []byte { return k.ofLane(l, SubLanes) }

// LineOf returns the prefix of the futures in line for a lane.
func (k Keyspace) LineOf(l Lane) []byte { return k.ofLane(l, SubLine) }

// InLine returns the range of the futures in line for a lane. It ends before those of a lane whose key goes on with a
// zero byte, which begin with the same prefix.
func (k Keyspace) InLine(l Lane) kv.Range {
	prefix := k.LineOf(l)
	return kv.Range{Begin: prefix, End: append(slices.Clip(prefix), 0xff)}
}

// LineAt returns the prefix of the places in line of a priority that were given by one
// incarnation of the store.
func (k Keyspace) LineAt(l Lane, priority uint8, incarnation int64) []byte {
	return tuple.AppendInt(tuple.AppendInt(k.LineOf(l), 255-int64(priority)), incarnation)
}

// Line returns the key of the place in line of a future, which is not Fresh.
func (k Keyspace) Line(row *Row) []byte {
	at := k.LineAt(row.Spec.Lane, row.Spec.Priority, row.Line.Incarnation)
	return tuple.AppendInt(tuple.AppendStamp(at, row.Line.Stamp, 0), row.Line.Order)
}

func (k Keyspace) ofLane(l Lane, sub string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Shard(ShardOf(l.Key, k.Shards), sub), l.Kind), l.Key)
}

// LanesDueOf returns the prefix of a shard's lanes that their rate holds back.
func (k Keyspace) LanesDueOf(shard int) []byte { return k.Shard(shard, SubLanesDue) }

// LaneDue returns the key that says when a lane may admit its next future.
func (k Keyspace) LaneDue(l Lane, due int64) []byte {
	b := tuple.AppendInt(k.LanesDueOf(ShardOf(l.Key, k.Shards)), due)
	return tuple.AppendString(tuple.AppendString(b, l.Kind), l.Key)
}

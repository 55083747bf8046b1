package meter

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Subspaces of activity and of what was used.
const (
	SubActivity = "activity"
	SubMetered  = "metered"
)

// Steps that records of activity are of.
const (
	Minutes = "minutes"
	Hours   = "hours"
)

// Kinds returns the kinds of keys of activity and of what was used.
func Kinds() []layout.KeyKind {
	membership := layout.Text("membership")
	return []layout.KeyKind{
		{Name: "activity", Subspace: SubActivity, Record: layout.RecordOf[Activity],
			Elements: []layout.Element{layout.Choice("step", Hours, Minutes), layout.Number("at_s"), membership},
			Holds: "the ends of attempts of one start of a worker in a minute; without a membership, of all workers in a " +
				"minute or an hour, and how many futures there were",
			Writer: "the worker with its heartbeat, if something has ended, and when it leaves; folded and counted by the " +
				"janitor"},
		{Name: "metered", Subspace: SubMetered, Record: layout.RecordOf[Metered],
			Elements: []layout.Element{layout.Text("day"), layout.Choice("kind", Peer, Worker), layout.Text("name"), membership},
			Holds:    "the use of one start of a worker on a day; without a membership, the sum of those that have ended",
			Writer:   "the worker with its heartbeat, if it has used something, and when it leaves; folded by the janitor"},
	}
}

// Keys makes the keys of activity and of what was used.
type Keys layout.Keyspace

// ActivityKey says where and when something happened.
type ActivityKey struct {
	Step       string // Minutes or Hours
	At         int64  // its beginning, in seconds of Unix time
	Membership layout.WorkerID
}

// MinuteOf returns the beginning of a minute, as in keys of activity.
func MinuteOf(t time.Time) int64 { return t.Truncate(time.Minute).Unix() }

// MinuteIsClosed reports whether a worker whose clock shows a time no longer writes the record
// of the minute that began at a second of Unix time.
func MinuteIsClosed(at int64, now time.Time) bool {
	return !now.Before(time.Unix(at, 0).Add(time.Minute + openFor))
}

// ActivityOf returns the prefix of the records of a step.
func (k Keys) ActivityOf(step string) []byte {
	return tuple.AppendString(layout.Keyspace(k).Global(SubActivity), step)
}

// ActivityFrom returns the prefix of the records of a step at a time.
func (k Keys) ActivityFrom(step string, at int64) []byte {
	return tuple.AppendInt(k.ActivityOf(step), at)
}

// Activity returns the key of a record of activity.
func (k Keys) Activity(a ActivityKey) []byte {
	return tuple.AppendString(k.ActivityFrom(a.Step, a.At), string(a.Membership))
}

// ParseActivity parses a key of activity.
func (k Keys) ParseActivity(key []byte) (ActivityKey, error) {
	rest := tuple.NewReader(key[len(layout.Keyspace(k).Global(SubActivity)):])
	a := ActivityKey{Step: rest.Text(), At: rest.Int(), Membership: layout.WorkerID(rest.Text())}
	if err := rest.Done(); err != nil {
		return a, fmt.Errorf("%s: %w: %w", tuple.String(key), layout.ErrBadRecord, err)
	}
	return a, nil
}

// MeteredOn returns the prefix of what was used on a day.
func (k Keys) MeteredOn(day string) []byte {
	return tuple.AppendString(layout.Keyspace(k).Global(SubMetered), day)
}

// Metered returns the key of what one start of a worker has used on a day.
func (k Keys) Metered(m MeteredKey) []byte {
	b := tuple.AppendString(tuple.AppendString(k.MeteredOn(m.Day), m.Kind), m.Name)
	return tuple.AppendString(b, string(m.Membership))
}

// ParseMetered parses a key of what was used.
func (k Keys) ParseMetered(key []byte) (MeteredKey, error) {
	rest := tuple.NewReader(key[len(layout.Keyspace(k).Global(SubMetered)):])
	m := MeteredKey{Day: rest.Text(), Kind: rest.Text(), Name: rest.Text(), Membership: layout.WorkerID(rest.Text())}
	if err := rest.Done(); err != nil {
		return m, fmt.Errorf("%s: %w: %w", tuple.String(key), layout.ErrBadRecord, err)
	}
	return m, nil
}

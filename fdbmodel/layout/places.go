package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Place is where an unclaimed future waits.
type Place struct {
	// Kind is the place's kind of key in the key table, and the name of the
	// invariant that holds for it.
	Kind string
	// Waits reports whether an unclaimed future with these records, and in this
	// state, waits here, provided that it waits in none of the preceding
	// places.
	Waits func(row *Row, s State) bool
	// Until completes "It waits until …" for a future that waits here.
	Until string
	// Key returns the future's key in this place, and Value the value there.
	Key   func(k Keyspace, row *Row) []byte
	Value func(row *Row) []byte
}

// places are all places, the most specific first: a future waits in the first
// one that accepts it, and in no other.
var places = [...]Place{
	{
		Kind:  PlaceBlocked,
		Waits: func(_ *Row, s State) bool { return s == Blocked },
		Until: "the futures that it takes as inputs are realized, or it is completed if it is a promise",
		Key:   func(k Keyspace, row *Row) []byte { return k.State(row.ID, StateBlocked) },
		Value: func(row *Row) []byte { return Encode(row.Blocked) },
	},
	{
		Kind:  PlaceLine,
		Waits: func(row *Row, s State) bool { return s == Ready && row.Line != nil },
		Until: "its lane admits it",
		Key:   Keyspace.Line,
		Value: func(row *Row) []byte { return Encode(&LineEntry{ID: row.ID}) },
	},
	{
		Kind:  PlaceAssigned,
		Waits: func(row *Row, s State) bool { return s == Ready && row.Attempts.Assigned != "" },
		Until: "the worker that it is assigned to takes it",
		Key:   func(k Keyspace, row *Row) []byte { return k.Assigned(row.Attempts.Assigned, row.ID, row.Needs()) },
		Value: functionAndKind,
	},
	{
		Kind:  PlaceHeld,
		Waits: func(row *Row, s State) bool { return (s == Ready || s == Delayed) && row.Spec.Held() },
		Until: "its owner assigns it to a worker",
		Key:   Keyspace.Held,
		Value: functionOf,
	},
	{
		Kind:  PlaceDelayed,
		Waits: func(_ *Row, s State) bool { return s == Delayed },
		Until: "its time comes",
		Key:   func(k Keyspace, row *Row) []byte { return k.Delayed(row.ID, row.Attempts.Due) },
		Value: func(*Row) []byte { return nil },
	},
	{
		Kind:  PlaceReady,
		Waits: func(_ *Row, s State) bool { return s == Ready },
		Until: "any worker that fits takes it",
		Key:   func(k Keyspace, row *Row) []byte { return k.Ready(row.ID, row.Needs()) },
		Value: functionAndNotes,
	},
}

// Kinds of the keys of places.
const (
	PlaceAssigned = "assignment"
	PlaceBlocked  = "blocked"
	PlaceHeld     = "held"
	PlaceLine     = "line"
	PlaceDelayed  = "delayed"
	PlaceReady    = "ready"
)

// Places returns all places, the most specific first.
func Places() []Place { return places[:] }

// IsPlace reports whether a kind of key is that of a place.
func IsPlace(kind string) bool {
	return slices.ContainsFunc(places[:], func(p Place) bool { return p.Kind == kind })
}

// PlaceOf returns where a future waits, nil if it is claimed or finished. It
// needs the row's spec.
func PlaceOf(row *Row) *Place {
	s := row.State()
	for i := range places {
		if places[i].Waits(row, s) {
			return &places[i]
		}
	}
	return nil
}

func functionOf(row *Row) []byte { return []byte(row.Spec.Function) }

// Notes on futures: on one whose result is to be an object, and on one that others
// leave to a worker, whose id and the milliseconds follow.
const (
	noteObject = "object"
	noteNear   = "near:"
	// noteRefused is of a worker or peer that put the future back, whose name and the time in
	// milliseconds until when it passes the future over follow.
	noteRefused = "refused:"
)

// functionAndKind is the function, with a note if the result is to be an object.
func functionAndKind(row *Row) []byte {
	if row.Spec.AsObject {
		return []byte(row.Spec.Function + " " + noteObject)
	}
	return functionOf(row)
}

// functionAndNotes is functionAndKind, the worker that others leave it to, those that put it
// back, and where an attempt has failed the workers of the last ones, each after a space.
func functionAndNotes(row *Row) []byte {
	value := functionAndKind(row)
	if a := &row.Attempts; a.Near != "" {
		value = fmt.Appendf(value, " %s%s:%d", noteNear, a.Near, a.NearWait.Milliseconds())
	}
	refused := row.Attempts.Refused[:row.Attempts.Refused.Len()]
	for i := range refused {
		value = fmt.Appendf(value, " %s%s:%d", noteRefused, refused[i].Name(), refused[i].Until)
	}
	for _, w := range failedOn(row) {
		value = append(append(value, ' '), w...)
	}
	return value
}

// failedOn returns the workers on which attempts of an unfinished future failed.
func failedOn(row *Row) []WorkerID {
	if row.Exception == nil {
		return nil
	}
	var workers []WorkerID
	for _, w := range row.Exception.FailedOn {
		if !slices.Contains(workers, w) {
			workers = append(workers, w)
		}
	}
	return workers
}

// ReadyEntry is one key of the ready index, or of a worker's assignments.
type ReadyEntry struct {
	ID       ID
	Key      []byte
	Function string
	Class    Class
	// Notes are what else the key says of the future, separated by spaces.
	Notes string
	// Owner is the future's owner, empty in the ready index.
	Owner string
}

// ParseReady parses a key of a queue's ready index, whose prefix is prefix.
// classEnd is the end of the part of the key that futures of one class share.
func ParseReady(item kv.KeyValue, prefix []byte, queue string) (e ReadyEntry, classEnd int, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	e = ReadyEntry{Key: item.Key, Class: Class{Queue: queue}}
	e.parseValue(item.Value)
	classEnd, err = e.parse(rest)
	return e, classEnd, err
}

// ParseAnyReady parses a key of a shard's ready index, whose prefix is prefix.
// queueEnd and classEnd are the ends of the parts of the key that futures of one
// queue share, and of one class.
func ParseAnyReady(item kv.KeyValue, prefix []byte) (e ReadyEntry, queueEnd, classEnd int, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	e = ReadyEntry{Key: item.Key, Class: Class{Queue: rest.Text()}}
	e.parseValue(item.Value)
	queueEnd = len(item.Key) - len(rest.Rest())
	classEnd, err = e.parse(rest)
	return e, queueEnd, classEnd, err
}

// ParseAssigned parses a key of a worker's assignments, whose prefix is prefix.
func ParseAssigned(item kv.KeyValue, prefix []byte) (ReadyEntry, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	e := ReadyEntry{Key: item.Key, Class: Class{Queue: rest.Text()}, Owner: rest.Text()}
	e.parseValue(item.Value)
	_, err := e.parse(rest)
	return e, err
}

func (e *ReadyEntry) parseValue(value []byte) {
	e.Function, e.Notes, _ = strings.Cut(string(value), " ")
}

// Value returns the value of the entry's key.
func (e *ReadyEntry) Value() []byte {
	if e.Notes == "" {
		return []byte(e.Function)
	}
	return []byte(e.Function + " " + e.Notes)
}

// HasFailedOn reports whether an attempt failed on a worker.
func (e *ReadyEntry) HasFailedOn(w WorkerID) bool { return e.hasNote(string(w)) }

// AsObject reports whether the result of the future is to be an object.
func (e *ReadyEntry) AsObject() bool { return e.hasNote(noteObject) }

// Near returns the worker that others leave the future to, and for how long; none if
// it is as good anywhere.
func (e *ReadyEntry) Near() (WorkerID, time.Duration) {
	if !strings.Contains(e.Notes, noteNear) {
		return "", 0
	}
	for n := range strings.SplitSeq(e.Notes, " ") {
		if text, is := strings.CutPrefix(n, noteNear); is {
			at := strings.LastIndexByte(text, ':')
			ms, err := strconv.ParseInt(text[at+1:], 10, 32)
			if at <= 0 || err != nil || ms < 0 {
				return "", 0 // of a newer version
			}
			return WorkerID(text[:at]), time.Duration(ms) * time.Millisecond
		}
	}
	return "", 0
}

// RefusedBy returns until when a worker or peer passes the future over, by its name: the
// zero time if it has not rejected it.
func (e *ReadyEntry) RefusedBy(name string) time.Time {
	return e.refusal(func(by string) bool { return by == name })
}

// LastRefusal returns until when some worker or peer passes the future over: the zero time if
// none has rejected it.
func (e *ReadyEntry) LastRefusal() time.Time { return e.refusal(func(string) bool { return true }) }

// refusal returns until when those of some names pass the future over.
func (e *ReadyEntry) refusal(of func(name string) bool) (last time.Time) {
	if !strings.Contains(e.Notes, noteRefused) {
		return last
	}
	for n := range strings.SplitSeq(e.Notes, " ") {
		text, is := strings.CutPrefix(n, noteRefused)
		if at := strings.LastIndexByte(text, ':'); is && at > 0 && of(text[:at]) {
			if ms, err := strconv.ParseInt(text[at+1:], 10, 64); err == nil && ms > last.UnixMilli() {
				last = time.UnixMilli(ms)
			}
		}
	}
	return last
}

func (e *ReadyEntry) hasNote(note string) bool {
	if e.Notes == "" {
		return false
	}
	for n := range strings.SplitSeq(e.Notes, " ") {
		if n == note {
			return true
		}
	}
	return false
}

// parse parses the common end of both kinds of key.
func (e *ReadyEntry) parse(rest tuple.Reader) (classEnd int, err error) {
	e.Class.CPU, e.Class.RAM, e.Class.GPU = rest.Int(), rest.Int(), rest.Int()
	if rest.IsText() {
		e.Class.Labels = rest.Text()
	}
	classEnd = len(e.Key) - len(rest.Rest())
	rest.Int()
	e.ID = ID(rest.UUID())
	return classEnd, rest.Done()
}

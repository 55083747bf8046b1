package layout

import (
	"fmt"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// RefersTo reports whether a record of the future refers to a large value.
func (r *Row) RefersTo(ref ChunkRef) bool {
	return slices.ContainsFunc(r.Refs(), func(o *ChunkRef) bool { return o.Kind == ref.Kind && o.Token == ref.Token })
}

// Row is a future as read from its records. Records that a read left out are
// nil.
type Row struct {
	ID          ID
	Spec        *Spec
	Claim       *Claim
	Cancel      *CancelRequest
	Attempts    Attempts
	Exception   *Exception
	Result      *Result
	Subscribers []SessionID
	// Progress is what the last attempt that told some has told; see Reported.
	Progress *ProgressRecord
	// History is set if several attempts have ended; see PastAttempts.
	History *HistoryRecord
	// Blocked is set while the future waits for its inputs.
	Blocked *BlockedRecord
	// Line is set while the future waits for its lane to admit it.
	Line *LineRecord
	// Pins is set while it is kept from being removed.
	Pins *PinsRecord
	// Dependants is set if futures use, or used, its result.
	Dependants bool
	// Steps is set if the future has recorded steps, and Forks if it has forks, or had some.
	Steps, Forks bool
}

// IsClaimAlone reports whether the row is claimed and has no other record but its spec, attempts, a request to
// cancel it, and steps.
func (r *Row) IsClaimAlone() bool {
	return r.Claim != nil && r.Exception == nil && r.Result == nil && len(r.Subscribers) == 0 && r.Progress == nil &&
		r.History == nil && r.Blocked == nil && r.Line == nil && r.Pins == nil && !r.Dependants && !r.Forks
}

// State derives the state from the records: a future is realized when its
// result carries the token of its claim.
func (r *Row) State() State {
	switch {
	case r.Claim != nil && r.Result != nil && r.Result.Token == r.Claim.Token:
		return Realized
	case r.Claim != nil:
		return Claimed
	case r.Exception != nil && r.Exception.Final:
		return Failed
	case r.Blocked != nil:
		return Blocked
	case r.Attempts.Due != 0:
		return Delayed
	default:
		return Ready
	}
}

// Needs returns the spec with what attempts have made of its requirements.
func (r *Row) Needs() *Spec { return r.Spec.Needing(&r.Attempts) }

// Object returns the content hash of the result of a realized future, if that is
// an object, and nothing otherwise.
func (r *Row) Object() string {
	if r.State() != Realized {
		return ""
	}
	return r.Result.Object
}

// MayRunAgain reports whether a finished future still needs its inputs: its result
// is an object, which may be lost.
func (r *Row) MayRunAgain() bool { return r.Object() != "" && r.Spec.AllowReconstruction }

// InPool reports whether any suitable worker may take the future.
func (r *Row) InPool() bool {
	place := PlaceOf(r)
	return place != nil && place.Kind == PlaceReady
}

// Open reports whether the future is with the worker that it was assigned to,
// waiting or running.
func (r *Row) Open() bool {
	s := r.State()
	return r.Spec.Held() && r.Attempts.Assigned != "" && (s == Ready || s == Claimed)
}

// HasBegun reports whether a worker has claimed the future, or something is left of an attempt: a failure, the death
// of a worker, a snooze, or a step. A claim that was given back before leaves nothing.
func (r *Row) HasBegun() bool {
	a := &r.Attempts
	return r.Claim != nil || r.Steps || a.Failed > 0 || a.Crashes > 0 || a.Snoozed > 0 || a.Deaths.Len() > 0
}

// FinishedAt returns when a terminal future finished, in milliseconds of Unix
// time, and 0 for others.
func (r *Row) FinishedAt() int64 {
	if e := r.Ending(); e.Over() {
		return e.At()
	}
	return 0
}

// Attempt returns the number of the present or last attempt, counted from 1.
func (r *Row) Attempt() int {
	switch r.State() {
	case Realized:
		return r.Result.Attempt
	case Claimed:
		return r.Attempts.Failed + 1
	}
	if r.Attempts.Failed == 0 && r.HasBegun() {
		return 1 // it has snoozed, or its worker has died
	}
	return r.Attempts.Failed
}

// rowTable has the keys of futures.
var rowTable = sync.OnceValue(func() *Table { return NewTable(rowKinds()) })

// isOfRoom reports whether a part of a future's row belongs to a room above the model, which alone
// knows its records.
func isOfRoom(rest tuple.Reader) bool { return rest.Text() == RowPromise }

// Add adds one key to the row; rest is the part of the key after the id. It passes
// over the keys of rooms. It returns ErrNewerRecord and ErrBadRecord.
func (r *Row) Add(item kv.KeyValue, rest tuple.Reader) error {
	key := Key{Raw: item.Key, Subspace: SubFutures, ID: r.ID}
	if key.match(rowTable(), rest, 1); key.Kind == nil {
		if isOfRoom(rest) {
			return nil
		}
		return fmt.Errorf("%s: %w: unknown part of a future", tuple.String(item.Key), ErrBadRecord)
	}
	var value Value
	if key.Kind.Record != nil {
		var err error
		if value, err = key.Kind.Decode(item.Key, item.Value); err != nil {
			return err
		}
	}
	r.Put(&key, &value)
	return nil
}

// Put adds a key of the future and its decoded value to the row.
func (r *Row) Put(key *Key, value *Value) {
	switch record := value.Record.(type) {
	case *Spec:
		r.Spec = record
	case *Attempts:
		r.Attempts = *record
	case *CancelRequest:
		r.Cancel = record
	case *Claim:
		record.Stamp = value.Stamp
		r.Claim = record
	case *Exception:
		r.Exception = record
	case *Result:
		record.Stamp = value.Stamp
		r.Result = record
	case *PinsRecord:
		r.Pins = record
	case *ProgressRecord:
		r.Progress = record
	case *HistoryRecord:
		r.History = record
	case *BlockedRecord:
		r.Blocked = record
	case *LineRecord:
		record.Stamp = value.Stamp
		r.Line = record
	default:
		switch key.Kind.Name {
		case keyHasDependants:
			r.Dependants = true
		case keyHasSteps:
			r.Steps = true
		case keyHasForks:
			r.Forks = true
		}
		if session := key.Text("session"); session != "" {
			r.Subscribers = append(r.Subscribers, SessionID(session))
		}
	}
}

// Refs returns the references to the future's large values.
func (r *Row) Refs() []*ChunkRef {
	var refs []*ChunkRef
	add := func(ref *ChunkRef) {
		if ref != nil {
			refs = append(refs, ref)
		}
	}
	if r.Spec != nil {
		add(r.Spec.ArgsRef)
		add(r.Spec.InputsRef)
	}
	if r.Result != nil {
		add(r.Result.ValueRef)
		add(r.Result.StderrRef)
	}
	if r.Exception != nil {
		add(r.Exception.StderrRef)
	}
	return refs
}

// MaxRowKeys is the maximum number of keys in one row read: the fixed keys and
// the subscribers.
const MaxRowKeys = 16 + MaxSubscribers

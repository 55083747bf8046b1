package layout

import (
	"fmt"
	"slices"

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
	case r.Attempts.Due != 0:
		return Delayed
	default:
		return Ready
	}
}

// InPool reports whether any suitable worker may take the future.
func (r *Row) InPool() bool {
	return r.State() == Ready && r.Attempts.Assigned == "" && !r.Spec.Held()
}

// Open reports whether the future is with the worker that it was assigned to,
// waiting or running.
func (r *Row) Open() bool {
	s := r.State()
	return r.Spec.Held() && r.Attempts.Assigned != "" && (s == Ready || s == Claimed)
}

// FinishedAt returns when a terminal future finished, in milliseconds of Unix
// time, and 0 for others.
func (r *Row) FinishedAt() int64 {
	switch r.State() {
	case Realized:
		return r.Result.At
	case Failed:
		return r.Exception.At
	default:
		return 0
	}
}

// Attempt returns the number of the present or last attempt, counted from 1.
func (r *Row) Attempt() int {
	switch r.State() {
	case Realized:
		return r.Result.Attempt
	case Claimed:
		return r.Attempts.Failed + 1
	default:
		return r.Attempts.Failed
	}
}

// ErrUnknownPart is ErrBadRecord for a key that no future has.
var ErrUnknownPart = fmt.Errorf("%w: unknown part of a future", ErrBadRecord)

// Add adds one key to the row; rest is the part of the key after the id.
func (r *Row) Add(item kv.KeyValue, rest tuple.Reader) error {
	var field string
	part := rest.Text()
	if part == rowState {
		field = rest.Text()
	}
	if field == stateSubscribers {
		session := SessionID(rest.Text())
		if rest.Done() == nil {
			r.Subscribers = append(r.Subscribers, session)
			return nil
		}
	}
	if rest.Done() != nil {
		return fmt.Errorf("%s: %w", tuple.String(item.Key), ErrUnknownPart)
	}
	switch part {
	case RowSpec:
		spec := new(Spec)
		if err := Decode(item.Key, item.Value, spec); err != nil {
			return err
		}
		r.Spec = spec
		return nil
	case RowArgs:
		return nil
	case rowState:
		return r.addState(item, field)
	default:
		return fmt.Errorf("%s: %w", tuple.String(item.Key), ErrUnknownPart)
	}
}

func (r *Row) addState(item kv.KeyValue, field string) (err error) {
	switch field {
	case StateAttempts:
		return Decode(item.Key, item.Value, &r.Attempts)
	case StateCancel:
		r.Cancel = new(CancelRequest)
		return Decode(item.Key, item.Value, r.Cancel)
	case StateClaim:
		r.Claim = new(Claim)
		r.Claim.Stamp, err = DecodeStamped(item.Key, item.Value, r.Claim)
		return err
	case StateException:
		r.Exception = new(Exception)
		return Decode(item.Key, item.Value, r.Exception)
	case StateResult:
		r.Result = new(Result)
		r.Result.Stamp, err = DecodeStamped(item.Key, item.Value, r.Result)
		return err
	default:
		return fmt.Errorf("%s: %w", tuple.String(item.Key), ErrUnknownPart)
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
const MaxRowKeys = 8 + MaxSubscribers

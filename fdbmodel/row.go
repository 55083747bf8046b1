package fdbmodel

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Row is a future as its records say. Records that a read left out are nil.
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

// State derives the state from the records. The seed's rule is kept: a future
// is realized when its result carries the token of its claim.
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

// inPool tells whether any worker that fits may take the future.
func (r *Row) inPool() bool {
	return r.State() == Ready && r.Attempts.Assigned == "" && !r.Spec.Held
}

// open tells whether the future is with whom it was assigned to, waiting or
// running.
func (r *Row) open() bool {
	s := r.State()
	return r.Spec.Held && r.Attempts.Assigned != "" && (s == Ready || s == Claimed)
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

// Attempt is the number of the attempt that runs or ran last, from 1.
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

// errUnknownPart is ErrBadRecord for a key that is in no future.
var errUnknownPart = fmt.Errorf("%w: unknown part of a future", ErrBadRecord)

// add takes in one key of the row; rest is what follows the id.
func (r *Row) add(item kv.KeyValue, rest tuple.Reader) error {
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
		return fmt.Errorf("%s: %w", tuple.String(item.Key), errUnknownPart)
	}
	switch part {
	case rowSpec:
		spec := new(Spec)
		if err := decodeRecord(item.Key, item.Value, spec); err != nil {
			return err
		}
		r.Spec = spec
		return nil
	case rowArgs:
		return nil
	case rowState:
		return r.addState(item, field)
	default:
		return fmt.Errorf("%s: %w", tuple.String(item.Key), errUnknownPart)
	}
}

func (r *Row) addState(item kv.KeyValue, field string) (err error) {
	switch field {
	case stateAttempts:
		return decodeRecord(item.Key, item.Value, &r.Attempts)
	case stateCancel:
		r.Cancel = new(CancelRequest)
		return decodeRecord(item.Key, item.Value, r.Cancel)
	case stateClaim:
		r.Claim = new(Claim)
		r.Claim.Stamp, err = decodeStamped(item.Key, item.Value, r.Claim)
		return err
	case stateException:
		r.Exception = new(Exception)
		return decodeRecord(item.Key, item.Value, r.Exception)
	case stateResult:
		r.Result = new(Result)
		r.Result.Stamp, err = decodeStamped(item.Key, item.Value, r.Result)
		return err
	default:
		return fmt.Errorf("%s: %w", tuple.String(item.Key), errUnknownPart)
	}
}

// refs returns the references to the future's large values.
func (r *Row) refs() []*ChunkRef {
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

// maxRowKeys bounds one row read: the fixed keys and the subscribers.
const maxRowKeys = 8 + maxSubscribers

// pendingRow is a row that was asked for.
type pendingRow struct {
	id      ID
	keys    keyspace
	pending kv.Pending[kv.Page]
}

// askState asks for what changes of a future, to be waited for by wait.
func (k keyspace) askState(tx kv.Reader, id ID) pendingRow {
	return pendingRow{id, k, tx.GetRange(k.stateRange(id), kv.RangeOptions{Limit: maxRowKeys})}
}

// askRecord asks for the spec and what changes.
func (k keyspace) askRecord(tx kv.Reader, id ID) pendingRow {
	return pendingRow{id, k, tx.GetRange(k.recordRange(id), kv.RangeOptions{Limit: maxRowKeys})}
}

// wait returns the row, and false if it has no keys.
func (p pendingRow) wait(ctx context.Context) (Row, bool, error) {
	row := Row{ID: p.id}
	page, err := p.pending.Wait(ctx)
	if err != nil {
		return row, false, err
	}
	skip := len(p.keys.row(p.id))
	for _, item := range page.Items {
		if err := row.add(item, tuple.NewReader(item.Key[skip:])); err != nil {
			return row, false, err
		}
	}
	return row, len(page.Items) > 0, nil
}

package fdbmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Beside is what rooms write together with the result of an attempt, in one transaction and under
// its claim.
type Beside struct {
	// Expect are keys with the values that the result depends on, nil for keys that are absent. If
	// one has another value, the future is relinquished instead: it runs again, and no attempt
	// counts.
	Expect []kv.KeyValue
	// Write are keys with their new values, nil for those to clear.
	Write []kv.KeyValue
	// Done is called once the transaction has committed, before anyone is woken, with whether it
	// has written that: not by an attempt at it whose result is unknown. Defaults to nil.
	Done func(written bool)
}

func (b *Beside) size() (n int) {
	for _, item := range b.Write {
		n += len(item.Key) + len(item.Value)
	}
	return n
}

// expectations are the reads of what results depend on, and what results of the same transaction
// that come before them write there.
type expectations struct {
	asked   map[string]kv.Pending[[]byte]
	written map[string][]byte
}

func (e *expectations) ask(tx kv.Reader, b *Beside) {
	for _, item := range b.Expect {
		if e.asked == nil {
			e.asked, e.written = map[string]kv.Pending[[]byte]{}, map[string][]byte{}
		}
		key := string(item.Key)
		if _, asked := e.asked[key]; !asked {
			e.asked[key] = tx.Get(item.Key)
		}
	}
}

// hold reports whether all that a result depends on is as it expects. Then it counts as written.
func (e *expectations) hold(ctx context.Context, b *Beside) (bool, error) {
	for _, item := range b.Expect {
		value, written := e.written[string(item.Key)]
		if !written {
			var err error
			if value, err = e.asked[string(item.Key)].Wait(ctx); err != nil {
				return false, err
			}
		}
		if (value == nil) != (item.Value == nil) || !bytes.Equal(value, item.Value) {
			return false, nil
		}
	}
	if e.written != nil {
		for _, item := range b.Write {
			e.written[string(item.Key)] = item.Value
		}
	}
	return true, nil
}

// writeBeside writes what is beside a completion that has realized its future, and notes its
// submissions.
func (f *finishing) writeBeside(tx kv.Tx, i int) {
	c := &f.completions[i]
	for _, item := range c.Beside.Write {
		if item.Value == nil {
			tx.Clear(item.Key)
		} else {
			tx.Set(item.Key, item.Value)
		}
	}
	for j := range c.Submits {
		f.submits, f.submitter = append(f.submits, c.Submits[j]), append(f.submitter, i)
	}
}

// done tells what is beside completions whether it was written.
func (f *finishing) done() {
	for i := range f.completions {
		if done := f.completions[i].Beside.Done; done != nil {
			done(f.outcomes[i] == Applied && f.completions[i].After.State == layout.Realized)
		}
	}
}

// submitError is the error of a future that can't be submitted with an attempt.
type submitError struct {
	completion int
	error
}

// Unwrap returns the cause.
func (e *submitError) Unwrap() error { return e.error }

// submit inserts the futures that are submitted with the attempts. Their ids are new: what an
// earlier attempt at the transaction has committed, the claims tell.
func (f *finishing) submit(ctx context.Context, w *WriteSet,
) (answers []Submitted, lined map[int]*layout.Row, err error) {
	if len(f.submits) == 0 {
		return nil, nil, nil
	}
	answers, lined, at, err := f.r.cluster.insertInto(ctx, w, f.submits, false)
	if err != nil {
		err = &submitError{f.submitter[at], fmt.Errorf("future %d of those that are submitted with the result: %w",
			1+at-firstOf(f.submitter, at), err)}
	}
	return answers, lined, err
}

// firstOf returns the first index with the value that is at another one.
func firstOf(values []int, at int) int {
	for at > 0 && values[at-1] == values[at] {
		at--
	}
	return at
}

// refuse has the attempt fail whose submission is at fault for an error of the transaction, and
// reports whether it is to be repeated.
func (f *finishing) refuse(ctx context.Context, err error) bool {
	at, cause := f.atFault(err)
	if cause == nil || ctx.Err() != nil {
		return false
	}
	c := &f.completions[at]
	c.Exception = &layout.Exception{Kind: layout.KindError, Message: layout.Shorten(cause.Error(), MaxMessage)}
	c.Result, c.Beside, c.Submits = nil, Beside{}, nil
	f.events[at] = c.event(f.now, f.r.cluster.random.float())
	return true
}

func (f *finishing) atFault(err error) (completion int, cause error) {
	var one *submitError
	var damaged *lane.DamagedError
	switch {
	case err == nil, kv.Retryable(err), errors.Is(err, kv.ErrClosed), errors.Is(err, kv.ErrStoreFailed):
	case errors.As(err, &one):
		return one.completion, one.error
	case errors.As(err, &damaged):
		for i := range f.completions {
			for j := range f.completions[i].Submits {
				if skippedLanes(damaged.Lanes).has(f.completions[i].Submits[j].Spec.Lane) {
					return i, err
				}
			}
		}
	}
	return 0, nil
}

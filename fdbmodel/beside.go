package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/expect"
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
	// Seen is a version of the store at which they had these values, and the future its records. Defaults to 0:
	// what is newer than the claim then costs another attempt at the transaction. It counts without a Result too.
	Seen kv.Version
	// Clear are ranges without keys that results expect. They are cleared before Write.
	Clear []kv.Range
	// Write are keys with their new values, nil for those to clear.
	Write []kv.KeyValue
	// Submits are futures that are submitted with the result, from Prepare. One that can't be
	// fails the attempt.
	Submits []Submission
	// Done is called once: when the transaction has committed, before anyone is woken, with the version of the
	// commit if that has written the result, and kv.NoVersion otherwise, as after an unknown commit; with
	// kv.NoVersion before, if a submission is refused. Defaults to nil.
	Done func(version kv.Version)
}

func (b *Beside) size() (n int) {
	if b == nil {
		return 0
	}
	for _, item := range b.Write {
		n += len(item.Key) + len(item.Value)
	}
	for i := range b.Submits {
		n += b.Submits[i].Size()
	}
	return n
}

// seen is the highest version at which results have seen what they depend on.
func (f *finishing) seen() kv.Version {
	version := kv.NoVersion
	for i := range f.completions {
		if b := f.completions[i].Beside; b != nil {
			version = max(version, b.Seen)
		}
	}
	return version
}

// errMayBeNewer has a transaction read at a newer version before it says that something is not as a
// result needs it.
var errMayBeNewer = fmt.Errorf("%w: what a result depends on may be written since its claim", kv.ErrFutureVersion)

// holds reports whether all that the result depends on is as it expects. Then what it writes counts as written.
func (b *Beside) holds(ctx context.Context, reads expect.Reads) (bool, error) {
	if b == nil {
		return true, nil
	}
	return reads.Hold(ctx, b.Expect, b.Write)
}

// writeBeside writes what is beside a completion that has realized its future, and notes its
// submissions.
func (f *finishing) writeBeside(tx kv.Tx, i int, b *Beside) {
	for _, r := range b.Clear {
		tx.ClearRange(r)
	}
	for _, item := range b.Write {
		if item.Value == nil {
			tx.Clear(item.Key)
		} else {
			tx.Set(item.Key, item.Value)
		}
	}
	for j := range b.Submits {
		f.submits, f.submitter = append(f.submits, b.Submits[j]), append(f.submitter, i)
	}
}

// done tells what is beside completions at which version it was written.
func (f *finishing) done(version kv.Version) {
	for i := range f.completions {
		b := f.completions[i].Beside
		switch {
		case b == nil || b.Done == nil:
		case f.outcomes[i] == Applied && f.completions[i].After.State == layout.Realized:
			b.Done(version)
		default:
			b.Done(kv.NoVersion)
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
func (f *finishing) submit(ctx context.Context, w *WriteSet, ends []ending,
) (answers []Submitted, lined map[int]*layout.Row, err error) {
	if len(f.submits) == 0 {
		return nil, nil, nil
	}
	w.lanes.Lined = w.lanes.Joining()
	for i := range ends {
		if e := &ends[i]; e.outcome == Applied && e.after.State() == layout.Realized {
			w.lanes.Lined[e.after.ID] = &e.after
		}
	}
	answers, lined, at, err := f.r.cluster.insertInto(ctx, w, f.submits, false)
	if err != nil && f.pinned {
		return nil, nil, fmt.Errorf("%w: %w", errMayBeNewer, err)
	}
	if err != nil {
		f.nameTask(err, at)
		err = &submitError{f.submitter[at], fmt.Errorf("future %d of those that are submitted with the result: %w",
			1+at-firstOf(f.submitter, at), err)}
	}
	return answers, lined, err
}

// nameTask has a NotUniqueError count the task that has the name among those of the attempt at fault; if that is one
// of another attempt, it names its future, which is made unless that attempt is refused as well.
func (f *finishing) nameTask(err error, at int) {
	var taken *NotUniqueError
	if !errors.As(err, &taken) || taken.Task == 0 {
		return
	}
	first := taken.Task - 1
	if f.submitter[first] == f.submitter[at] {
		taken.Task -= firstOf(f.submitter, first)
	} else {
		taken.Task, taken.ID = 0, f.submits[first].ID
	}
}

// flush writes what the attempts change, and puts in line what they submit.
func (f *finishing) flush(ctx context.Context, w *WriteSet) error {
	err := w.Flush(ctx)
	if f.pinned && errors.Is(err, ErrLaneFull) {
		return fmt.Errorf("%w: %w", errMayBeNewer, err)
	}
	return err
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
	if c.Beside.Done != nil {
		c.Beside.Done(kv.NoVersion)
	}
	c.Exception = &layout.Exception{Kind: layout.KindError, Message: layout.Shorten(cause.Error(), MaxMessage)}
	c.Result, c.Beside = nil, nil
	f.events[at] = c.event(f.now, f.r.cluster.random.Float())
	return true
}

func (f *finishing) atFault(err error) (completion int, cause error) {
	var one *submitError
	var damaged *lane.DamagedError
	var full *LaneFullError
	switch {
	case err == nil, kv.Retryable(err), errors.Is(err, kv.ErrClosed), errors.Is(err, kv.ErrStoreFailed):
	case errors.As(err, &one):
		return one.completion, one.error
	case errors.As(err, &full):
		at := slices.IndexFunc(f.submits, func(s Submission) bool { return s.ID == full.IDs[0] })
		return f.submitter[at], fmt.Errorf("future %d of those that are submitted with the result: %w",
			1+at-firstOf(f.submitter, at), err)
	case errors.As(err, &damaged):
		for i := range f.completions {
			if f.completions[i].Beside.submitsTo(damaged.Lanes) {
				return i, err
			}
		}
	}
	return 0, nil
}

// submitsTo reports whether a future that comes with the result goes to one of some lanes.
func (b *Beside) submitsTo(lanes []layout.Lane) bool {
	return b != nil && slices.ContainsFunc(b.Submits, func(s Submission) bool {
		return slices.Contains(lanes, s.Spec.Lane)
	})
}

package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/expect"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/serial"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Limits of the output of a finished attempt, in bytes.
const (
	// MaxResultInline is the largest result that is stored in its record;
	// larger ones, up to layout.MaxPut, are written ahead by results.Upload.
	MaxResultInline = 4 << 10
	// MaxMessage is the maximum length of an exception's message; longer ones
	// are cut.
	MaxMessage = 8 << 10
	// MaxStderr is how much of the end of a standard error stream is kept.
	MaxStderr = 64 << 10
	// MaxFinish is the maximum number of completions in one Finish transaction.
	MaxFinish = MaxClaim
)

// maxFinishTx is the maximum size of one Finish transaction, in bytes.
const maxFinishTx = 1_000_000

// Completion says how a worker's claim of a future ended. Exactly one of
// Result, Exception, Relinquish, Reject, Block, Snooze and Expire is set.
type Completion struct {
	Future *ClaimedFuture
	// Result ends the future as realized.
	Result *layout.Result
	// Exception ends the attempt as failed.
	Exception *layout.Exception
	// Permanent fails the future regardless of its remaining attempts.
	Permanent bool
	// RetryIn replaces the backoff.
	RetryIn *time.Duration
	// Relinquish gives the future back without counting an attempt.
	Relinquish bool
	// Reject gives it back for another worker. This one passes it over until a backoff has
	// passed, and so do all after more than a few have rejected it.
	Reject bool
	// Block gives it back until its inputs have results: that of one was lost. No
	// attempt counts.
	Block bool
	// Started is when the attempt began, the zero time if that is unknown, for Count too.
	Started time.Time
	// Progress is the last one of the attempt, if it is not written yet. It counts with
	// Result and Exception only.
	Progress *Progress
	// Beside is written with a Result, in the transaction that ends the attempt, if that is Applied.
	// Defaults to nil: nothing.
	Beside *Beside
	// RunTime is how long the attempt ran, 0 if that is unknown, for Meter and Count. It counts with
	// Result and Exception only.
	RunTime time.Duration
	// Snooze gives it back for so long. No attempt counts.
	Snooze *time.Duration
	// Expire ends it because its time was over before the attempt began.
	Expire bool
	// After is what the future is then. Finish sets it where the outcome is
	// Applied.
	After After
}

// After is what a future is after a claim has ended.
type After struct {
	State layout.State
	// Due is when a delayed future is ready again.
	Due time.Time
	// Cancelled is set if the future has ended because that was asked.
	Cancelled bool

	refusedUntil time.Time // the worker passes it over
}

func afterOf(row *layout.Row) After {
	after := After{State: row.State()}
	switch after.State {
	case layout.Delayed:
		after.Due = time.UnixMilli(row.Attempts.Due)
	case layout.Failed:
		after.Cancelled = row.Exception.Kind == layout.KindCancelled
	}
	return after
}

// Finish ends claims of the worker. It returns one outcome for each completion:
// Applied; Already, if an earlier call did it; Lost, if the worker no longer
// held the future, so that its result is discarded, and for all but the first
// of several completions of one future. It returns ErrTooLarge for a value that
// must be stored in chunks, before anything is written. What attempts have used that ended
// with a result, or failed, and are not Lost is metered, and counted as activity: the next
// Heartbeat writes it. Each MaxFinish completions, or about 1 MB of them, are one transaction; those of lanes are
// several smaller ones while the workers of other processes, which hand over slots of the same lanes, are faster
// each time. An unknown commit is retried: completions that committed return Already or Lost.
func (r *Registration) Finish(ctx context.Context, completions []Completion) ([]Outcome, error) {
	outcomes, err := r.End(ctx, completions)
	r.cluster.ResolveMarked(ctx)
	return outcomes, err
}

// End is Finish for callers that call ResolveMarked after it, so that others may
// already use what it has ended.
func (r *Registration) End(ctx context.Context, completions []Completion) ([]Outcome, error) {
	outcomes, _, err := r.EndAndClaim(ctx, completions, ClaimRequest{})
	return outcomes, err
}

func (c *Completion) check() error {
	if v := c.Result; v != nil && (len(v.Value) > MaxResultInline || len(v.Stderr) > MaxResultInline) {
		return fmt.Errorf("%w: future %s: result of %d bytes, stderr of %d: more than %d go into chunks",
			ErrTooLarge, c.Future.ID, len(v.Value), len(v.Stderr), MaxResultInline)
	}
	if v := c.Result; v != nil && v.Object != "" && (len(v.Value) > 0 || v.ValueRef != nil) {
		return fmt.Errorf("%w: future %s: its result is an object and has a value too", layout.ErrBadSpec, c.Future.ID)
	}
	if e := c.Exception; e != nil {
		if len(e.Stderr) > MaxResultInline || len(e.Stdout) > MaxResultInline {
			return fmt.Errorf("%w: future %s: failed attempt with %d bytes of stdout, %d of stderr: at most %d each",
				ErrTooLarge, c.Future.ID, len(e.Stdout), len(e.Stderr), MaxResultInline)
		}
		if len(e.Message) > MaxMessage {
			cut := *e
			cut.Message = layout.Shorten(e.Message, MaxMessage)
			c.Exception = &cut
		}
	}
	return nil
}

func (c *Completion) size() int {
	const fixed = 600
	switch {
	case c.Result != nil:
		return fixed + len(c.Result.Value) + len(c.Result.Stderr) + c.Beside.size()
	case c.Exception != nil:
		return fixed + len(c.Exception.Message) + len(c.Exception.Stderr) + len(c.Exception.Stdout)
	default:
		return fixed
	}
}

func (c *Completion) event(now time.Time, jitter float64) state.Event {
	e := state.Event{Token: c.Future.Token, Now: now, Jitter: jitter}
	switch {
	case c.Result != nil:
		result := *c.Result
		result.Token, result.Attempt, result.At = c.Future.Token, c.Future.Attempt(), layout.Millis(now)
		e.Kind, e.Result = state.EventRealize, &result
	case c.Exception != nil:
		e.Kind, e.Exception, e.Permanent, e.RetryIn = state.EventFail, c.Exception, c.Permanent, c.RetryIn
		e.Started = c.Started
	case c.Reject:
		e.Kind = state.EventReject
	case c.Block:
		e.Kind = state.EventBlock
	case c.Snooze != nil:
		e.Kind, e.RetryIn = state.EventSnooze, c.Snooze
	case c.Expire:
		e.Kind = state.EventExpire
	default:
		e.Kind = state.EventRelinquish
	}
	return e
}

func (r *Registration) finishBatch(ctx context.Context, completions []Completion, req ClaimRequest,
) ([]Outcome, []ClaimedFuture, error) {
	c := r.cluster
	f := finishing{r: r, completions: completions, events: make([]state.Event, len(completions)), now: c.clock.Now(),
		succession: r.succeed(completions, req)}
	ended := make([]claim.Ended, len(completions))
	for i := range completions {
		f.events[i] = completions[i].event(f.now, c.random.Float())
		ended[i] = claim.Ended{ID: completions[i].Future.ID, Sequence: completions[i].Future.Token.Sequence}
	}
	r.refuseEvents(f.events)
	f.exhausted = r.held.Exhausted(ended)
	var result kv.Result
	var err error
	for again := true; again; again = f.refuse(ctx, err) {
		err = skipUnreadable(func(skip skippedLanes) (err error) {
			f.leaveDependants = len(skip) > 0
			turns := f.serializer()
			o := kv.Options{Tag: "futura-finish", Turns: turns != nil}
			result, err = turns.Transact(ctx, Patient{c}, o, len(completions), f.run)
			return err
		})
	}
	if err == nil {
		f.done(result.Version)
	}
	if errors.Is(err, serial.ErrSplit) {
		return nil, nil, err
	}
	claimed := f.succession.end(ctx, result, err)
	if err != nil {
		return nil, nil, err
	}
	r.held.Release(ended, f.exhausted)
	r.cluster.claims.Tell(-count(f.outcomes, Applied), result.Version)
	r.noteLost(completions, f.outcomes)
	r.noteRefused(completions)
	c.announce(ctx, result.Version, f.after)
	return f.outcomes, claimed, nil
}

// finishing is one transaction of Finish.
type finishing struct {
	r               *Registration
	completions     []Completion
	events          []state.Event
	now             time.Time
	exhausted       []int64 // the batches of claims that are empty then
	leaveDependants bool    // leave dependants of the results to a janitor: the lane of one can't be read
	outcomes        []Outcome
	after           postCommit
	submits         []Submission // of all completions, and the index of the completion of each
	submitter       []int
	succession      *succession
	pinned          bool       // it reads at a version that newer ones may have followed
	at              kv.Version // that version, if it is pinned
}

// serializer returns the serializer that the transaction runs in, or nil.
func (f *finishing) serializer() *serial.Serializer {
	if slices.ContainsFunc(f.completions, func(c Completion) bool {
		return c.Future.Spec != nil && !c.Future.Spec.Lane.IsZero()
	}) {
		return f.r.cluster.finishSerializer
	}
	return nil
}

func (f *finishing) run(ctx context.Context, tx kv.Attempt, past serial.Past) error {
	r, c, completions := f.r, f.r.cluster, f.completions
	f.outcomes, f.submits, f.submitter = make([]Outcome, len(completions)), nil, nil
	claimed, recent := lastClaim(len(completions), func(i int) *ClaimedFuture { return completions[i].Future }, f.now)
	recent = recent && !past.Rivals
	f.pinned, f.at = recent && tx.Number == 1, max(claimed, past.Last, f.seen())
	if err := seeClaims(ctx, tx, f.at, recent); err != nil {
		return err
	}
	f.succession.ask(tx)
	present, err := r.presentFor(ctx, tx, completions)
	if err != nil {
		return err
	}
	ends, err := f.endings(ctx, tx, present)
	if err != nil {
		return err
	}
	w := c.write(tx)
	if err := f.succession.begin(ctx, tx, w, completions, ends); err != nil {
		return err
	}
	dependants := edge.Dependants{Edges: &w.edges, Checks: true}
	if !f.leaveDependants {
		if err := dependants.Find(ctx, realized(ends)); err != nil {
			return err
		}
	}
	if err := dependants.Read(ctx); err != nil {
		return err
	}
	f.apply(tx, w, ends)
	dependants.Notify(func(row *layout.Row, e state.Event) {
		e.Now = c.clock.Now()
		if after, outcome := state.Next(*row, e); outcome == Applied {
			w.Apply(row, &after)
		}
	})
	for _, sequence := range f.exhausted {
		tx.Clear(c.keys.Claims(r.info.ID, sequence))
	}
	answers, lined, err := f.submit(ctx, w, ends)
	if err != nil {
		return err
	}
	if err := f.flush(ctx, w); err != nil {
		return err
	}
	f.succession.write(tx)
	placeInLanes(answers, lined, notify.Demands{})
	f.after = w.postCommit()
	f.after.offer(c.afterSubmit(answers))
	return nil
}

// apply writes what becomes of the completions.
func (f *finishing) apply(tx kv.Tx, w *WriteSet, ends []ending) {
	r, c, completions := f.r, f.r.cluster, f.completions
	for i := range ends {
		e := &ends[i]
		if e.held && completions[i].Future.begun {
			tx.Clear(c.keys.Suspect(r.info.ID, completions[i].Future.ID))
		}
		if f.outcomes[i] = e.outcome; e.outcome != Applied {
			continue
		}
		w.Apply(&e.before, &e.after)
		w.reportLast(&completions[i])
		completions[i].After = afterOf(&e.after)
		if b := completions[i].Beside; b != nil && e.after.State() == layout.Realized {
			f.writeBeside(tx, i, b)
		}
		if f.events[i].Kind == state.EventReject && completions[i].After.State == layout.Ready {
			last := e.after.Attempts.Refused[e.after.Attempts.Refused.Len()-1]
			completions[i].After.refusedUntil = time.UnixMilli(last.Until)
		}
	}
}

// ending is what becomes of a completion.
type ending struct {
	before, after layout.Row
	outcome       Outcome
	held          bool // no earlier completion is of the same claim
}

// knows reports whether the records of a future are known without a read: the transaction reads at the
// version of its claim. It conflicts with whatever has changed them since, as with a read.
func (f *finishing) knows(claimed *ClaimedFuture) bool {
	return f.pinned && claimed.alone && claimed.version == f.at
}

// endings applies the events of completions to their futures, and writes nothing.
func (f *finishing) endings(ctx context.Context, tx kv.Tx, present bool) ([]ending, error) {
	completions := f.completions
	pending := make([]read.Pending, len(completions))
	expected := expect.Reads{}
	for i := range completions {
		if claimed := completions[i].Future; f.knows(claimed) {
			tx.AddReadConflictRange(f.r.cluster.keys.StateRange(claimed.ID))
		} else {
			pending[i] = read.State(tx, f.r.cluster.keys, claimed.ID)
		}
		if b := completions[i].Beside; b != nil {
			expected.Ask(tx, b.Expect)
		}
	}
	ends := make([]ending, len(completions))
	var event state.Event
	var err error
	for i := range completions {
		e := &ends[i]
		if claimed := completions[i].Future; f.knows(claimed) {
			e.before = claimed.row()
		} else if e.before, _, err = pending[i].Wait(ctx); err != nil {
			return nil, err
		}
		if isRepeated(completions, i) {
			e.outcome = Lost
			continue
		}
		e.held = true
		e.before.Spec = completions[i].Future.stubSpec()
		event = f.events[i]
		if v := completions[i].Result; v != nil && v.Object != "" && !present {
			event.Kind = state.EventRelinquish
		}
		e.after = e.before
		e.outcome = state.Apply(&e.after, &event)
		if e.outcome == Applied && event.Kind == state.EventRealize {
			holds, err := completions[i].Beside.holds(ctx, expected)
			if err == nil && !holds && f.pinned {
				err = errMayBeNewer
			}
			if err != nil {
				return nil, err
			}
			if !holds {
				event.Kind = state.EventRelinquish
				e.after = e.before
				e.outcome = state.Apply(&e.after, &event)
			}
		}
	}
	return ends, nil
}

// realized returns the futures with users that are realized.
func realized(ends []ending) (ids []layout.ID) {
	for i := range ends {
		if e := &ends[i]; e.outcome == Applied && e.after.State() == layout.Realized && e.after.Dependants {
			ids = append(ids, e.after.ID)
		}
	}
	return ids
}

// presentFor reports whether the worker is a member, if a completion has an object:
// a worker that was declared dead holds none that others could get.
func (r *Registration) presentFor(ctx context.Context, tx kv.Reader, completions []Completion) (bool, error) {
	if !slices.ContainsFunc(completions, func(c Completion) bool { return c.Result != nil && c.Result.Object != "" }) {
		return true, nil
	}
	value, err := tx.Get(r.cluster.keys.Worker(r.info.ID, layout.WorkerAlive)).Wait(ctx)
	return value != nil, err
}

// isRepeated reports whether an earlier completion is of the same claim of the
// same future.
func isRepeated(completions []Completion, i int) bool {
	future := completions[i].Future
	return slices.ContainsFunc(completions[:i], func(c Completion) bool {
		return c.Future.ID == future.ID && c.Future.Token == future.Token
	})
}

func count(outcomes []Outcome, of Outcome) (n int) {
	for _, o := range outcomes {
		if o == of {
			n++
		}
	}
	return n
}

package fdbmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/serial"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Submission describes one future to submit.
type Submission struct {
	// ID is the future's id. If it is zero, Key decides.
	ID layout.ID
	// Drawn says that ID comes from DrawIDs and was never submitted before:
	// Submit does not look for an existing future.
	Drawn bool
	// Key is an idempotency key, at most 1,024 bytes: the same key and content
	// give the same future, however often it is submitted. Defaults to none: a
	// new id is drawn.
	Key string
	// Unique has the future be the only one with its name. Defaults to nil.
	Unique *Unique
	// Spec says what to run. Function is required; Queue defaults to "default",
	// Codec to raw; SubmittedAt and Later are filled in.
	Spec layout.Spec
	// Args are the arguments, at most MaxArgs bytes.
	Args []byte
	// Inputs are the futures that it takes the results of, at most MaxInputs. It
	// waits until all are realized, and fails with kind upstream once one of them
	// has failed. Each must exist, or be in the same call before this one, so that
	// no future can depend on itself. None is removed before this one is over. Defaults to the
	// list that Spec.InputsRef refers to, if it was written ahead for this future.
	Inputs []layout.ID
	// NotBefore delays the future. Defaults to no delay.
	NotBefore time.Time
	// Assigned is the worker that the future is assigned to from the start, see
	// Assign. It excludes NotBefore. Defaults to none.
	Assigned layout.WorkerID
	// Reason is recorded with the assignment, at most 64 bytes. Defaults to empty.
	Reason string
	// Promise makes it a promise, which no worker runs: it is blocked until it is completed,
	// see package promises. Spec has no function then, Args only identify it, and nothing may
	// be set that says where, when or how it runs.
	Promise bool

	chosen bool
	large  bool
	many   []layout.ID // inputs that the spec does not hold
}

// Submitted is the answer to a Submission.
type Submitted struct {
	ID layout.ID
	// Existed is set if the future existed before, by its id or key, or an attempt with an unknown result made it.
	Existed bool
	// State is the state at submit: Ready, Delayed or Blocked for a new future,
	// Failed for one with an input that has failed, the present state for one that
	// existed.
	State layout.State
	// Differs is what an existing future has that was asked for otherwise: its settings, such
	// as "priority, timeout", of one with the same id or key; the first part of its content
	// where ConflictReturn has answered with another one. Replaced is the future that
	// ConflictReplace has cancelled, zero for none.
	Differs  string
	Replaced layout.ID

	spec    *layout.Spec
	worker  layout.WorkerID
	place   *layout.Place                        // where it waits, nil if it does not
	admits  notify.Demands                       // of others, which it found in line
	resolve bool                                 // its inputs are to be linked, or its dependants to be notified
	mail    map[layout.SessionID][]layout.Notice // of the one that it replaced
}

// Submit makes futures and returns once they are durable. It takes any number,
// and splits them into transactions of up to MaxSubmit futures or
// MaxSubmitBytes, each all or nothing. If a transaction fails, Submit returns
// the error with the answers of the transactions before it: those futures
// exist.
//
// It returns ErrBadSpec, ErrBadName and ErrTooLarge for invalid submissions,
// before anything is written, ErrIDInUse if an id or key belongs to a future
// with other content, a NotUniqueError if another future has the name of a unique
// one, ErrLaneFull if more would be in line for a lane than its kind lets wait, and for an
// assigned future the errors of Assign. An
// unknown commit is resolved by looking for the future's spec, so that no
// future is made ready twice.
func (c *Cluster) Submit(ctx context.Context, subs []Submission) ([]Submitted, error) {
	prepared, err := c.prepare(ctx, subs)
	if err != nil {
		return nil, err
	}
	if err := c.putLargeArgs(ctx, prepared); err != nil {
		return nil, err
	}
	answers := make([]Submitted, 0, len(prepared))
	for len(prepared) > 0 {
		n := batchLength(prepared)
		part, err := c.submitBatch(ctx, prepared[:n])
		if errors.Is(err, errArgsSwept) && ctx.Err() == nil && hasLarge(prepared[:n]) {
			if err := c.putLargeArgs(ctx, prepared[:n]); err != nil {
				return answers, err
			}
			continue
		}
		if err != nil {
			unique.CountTask(err, len(answers))
			return answers, err
		}
		answers, prepared = append(answers, part...), prepared[n:]
	}
	return answers, nil
}

func hasLarge(subs []Submission) bool {
	return slices.ContainsFunc(subs, func(s Submission) bool { return s.large || s.many != nil })
}

// errArgsSwept is returned when a janitor swept arguments as orphans, because
// the id of their future looks old.
var errArgsSwept = fmt.Errorf("%w: the arguments that the reference leads to; call PutArgs again", ErrNotFound)

// putLargeArgs writes arguments ahead of their futures.
func (c *Cluster) putLargeArgs(ctx context.Context, subs []Submission) error {
	for i := range subs {
		if subs[i].large {
			ref, err := c.PutArgs(ctx, subs[i].ID, subs[i].Args)
			if err != nil {
				return fmt.Errorf("arguments of future %s: %w", subs[i].ID, err)
			}
			subs[i].Spec.ArgsRef = &ref
		}
		if subs[i].many != nil {
			ref, err := c.putInputs(ctx, subs[i].ID, subs[i].many)
			if err != nil {
				return fmt.Errorf("inputs of future %s: %w", subs[i].ID, err)
			}
			subs[i].Spec.InputsRef = &ref
		}
	}
	return nil
}

// SubmitTx makes futures in the caller's own transaction: they exist if it commits. Arguments must be small
// enough to lie in the transaction (16 KiB each) or have been written ahead with PutArgs. It returns the errors
// of Submit. After the commit the caller passes the answers to Wake. If the commit is unknown, the caller's own
// retry must decide; submitting the same ids again in it is safe. A transaction of kv.Transact, or one that a
// driver has wrapped, may submit several times, with inputs that it has submitted before. What it put in the
// line of a lane it can't replace: that is refused. A transaction in which futures were refused that looked well by
// themselves can't commit: it may have some of them.
func (c *Cluster) SubmitTx(ctx context.Context, tx kv.Tx, subs []Submission) ([]Submitted, error) {
	prepared, err := c.Prepare(ctx, subs)
	if err != nil || len(prepared) == 0 {
		return nil, err
	}
	for i := range prepared {
		prepared[i].chosen = true
	}
	w := c.write(tx)
	w.lanes.Share()
	w.made = unique.MadeIn(tx, c.keys)
	submitted, err := c.insertBatch(ctx, w, prepared, true)
	if err != nil {
		kv.Fail(tx, fmt.Errorf("a submit in the transaction: %w", err))
	}
	return submitted, err
}

// Prepare fills in the defaults of submissions, and draws their ids, for SubmitTx and for
// Beside.Submits. It returns the errors of Submit that need no look at other futures, and
// ErrTooLarge for what does not lie in a transaction: more than 16 KiB of arguments, or more inputs
// than a spec holds.
func (c *Cluster) Prepare(ctx context.Context, subs []Submission) ([]Submission, error) {
	prepared, err := c.prepare(ctx, subs)
	if err != nil {
		return nil, err
	}
	for i := range prepared {
		if prepared[i].large {
			return nil, fmt.Errorf("%w: %d bytes of arguments in the caller's transaction: at most %d, or write them "+
				"ahead, with Client.Put or Cluster.PutArgs", ErrTooLarge, len(prepared[i].Args), layout.MaxArgsInKey)
		}
		if prepared[i].many != nil {
			return nil, fmt.Errorf("%w: %d inputs in the caller's transaction: at most %d", ErrTooLarge,
				len(prepared[i].many), layout.MaxInputsInSpec)
		}
	}
	return prepared, nil
}

// prepare fills in defaults and validates; it copies what it changes.
func (c *Cluster) prepare(ctx context.Context, subs []Submission) ([]Submission, error) {
	out := make([]Submission, len(subs))
	drawn := 0
	for i := range subs {
		out[i] = subs[i]
		if err := c.CheckSubmission(ctx, &out[i]); err != nil {
			if len(subs) > 1 {
				err = fmt.Errorf("future %d of %d: %w", i+1, len(subs), err)
			}
			return nil, err
		}
		if out[i].ID.IsZero() {
			drawn++
		}
	}
	var ids []layout.ID
	for i := range out {
		if !out[i].ID.IsZero() {
			continue
		}
		if len(ids) == 0 {
			var err error
			if ids, err = c.DrawIDs(min(drawn, layout.MaxSubmit)); err != nil {
				return nil, err
			}
		}
		out[i].ID, ids = ids[0], ids[1:]
		drawn--
	}
	return out, nil
}

// CheckSubmission fills in the defaults of a submission, and validates it. It returns the
// errors of Submit that need no look at other futures. It reads modules that it names.
func (c *Cluster) CheckSubmission(ctx context.Context, s *Submission) error {
	spec := &s.Spec
	spec.Queue = cmp.Or(spec.Queue, layout.DefaultQueue)
	spec.Codec = cmp.Or(spec.Codec, layout.CodecRaw)
	err := cmp.Or(c.nameFunction(ctx, s), layout.CheckQueueName(spec.Queue))
	if err != nil {
		return err
	}
	if spec.Tags, err = layout.SortTags(spec.Tags); err != nil {
		return err
	}
	if err := spec.CheckLimits(); err != nil {
		return err
	}
	if err := c.config.Policy.Complete(spec); err != nil {
		return err
	}
	if len(s.Args) > layout.MaxArgs {
		return fmt.Errorf("%w: %d bytes of arguments: at most %d, or write them ahead with PutArgs (at most %d)",
			ErrTooLarge, len(s.Args), layout.MaxArgs, layout.MaxPut)
	}
	if n := spec.MetaSize(); n > layout.MaxMeta {
		return fmt.Errorf("%w: %d bytes of argv, env, trace and labels: at most %d; pass the rest as arguments",
			ErrTooLarge, n, layout.MaxMeta)
	}
	if err := s.nameUnique(); err != nil {
		return err
	}
	if err := s.placeInputs(); err != nil {
		return err
	}
	if err := lane.Check(spec, s.Assigned != ""); err != nil {
		return err
	}
	if s.Assigned != "" && !s.NotBefore.IsZero() {
		return fmt.Errorf("%w: an assigned future can't be delayed", layout.ErrBadSpec)
	}
	if len(s.Reason) > maxReason || s.Reason != "" && s.Assigned == "" {
		return fmt.Errorf("%w: assigned for %.80q: at most %d bytes, and only with a worker", layout.ErrBadSpec, s.Reason,
			maxReason)
	}
	if len(s.Key) > 1024 {
		return fmt.Errorf("%w: idempotency key of %d bytes: at most 1024", ErrTooLarge, len(s.Key))
	}
	if s.ID.IsZero() && s.Key != "" {
		s.ID = layout.KeyedID(c.name, s.Key)
	}
	s.chosen = !s.ID.IsZero() && !s.Drawn
	spec.SubmittedAt, spec.Later = layout.Millis(c.clock.Now()), !s.NotBefore.IsZero()
	if ref := spec.ArgsRef; ref != nil {
		sound := ref.Kind == layout.ChunkArgs && ref.Size >= 0 && ref.Size <= layout.MaxPut &&
			ref.Count == layout.Pieces(ref.Size)
		if !sound || len(s.Args) > 0 {
			return fmt.Errorf("%w: the reference to its arguments is not from PutArgs, or it has arguments too",
				layout.ErrBadSpec)
		}
		spec.Args, spec.ArgsKey, spec.ArgsSize = nil, false, ref.Size
		return nil
	}
	s.placeArgs()
	return nil
}

// nameFunction gives the spec of a submission the name that its function is stored with.
func (c *Cluster) nameFunction(ctx context.Context, s *Submission) (err error) {
	if s.Promise {
		return s.checkPromise()
	}
	s.Spec.Function, err = c.ResolveFunction(ctx, s.Spec.Function)
	return err
}

// checkPromise makes a submission that of a promise. It returns ErrBadSpec for what only
// futures that run may have.
func (s *Submission) checkPromise() error {
	spec, what := &s.Spec, ""
	r := &spec.Requirements
	switch {
	case spec.Function != "" && !spec.IsPromise():
		what = "a function"
	case len(s.Inputs) > 0 || !spec.Near.IsZero():
		what = "inputs"
	case s.Assigned != "" || spec.Owner != "":
		what = "a worker, or a batch"
	case !s.NotBefore.IsZero():
		what = "a delay"
	case !spec.Lane.IsZero():
		what = "a lane"
	case spec.AsObject || spec.AllowReconstruction:
		what = "a result that stays with workers"
	case spec.MaxRetries != 0 || spec.Timeout != 0:
		what = "retries, or the timeout of an attempt: use a deadline, or how long it may wait"
	case r.CPU != 0 || r.RAM != 0 || r.GPU != 0 || len(r.Labels) > 0 || spec.Growth != nil || spec.Pace != nil:
		what = "requirements"
	}
	if what != "" {
		return fmt.Errorf("%w: a promise that has %s: no worker runs it", layout.ErrBadSpec, what)
	}
	spec.Function = layout.FunctionPromise
	return nil
}

// placeArgs decides where the arguments are stored.
func (s *Submission) placeArgs() {
	s.Spec.Args, s.Spec.ArgsKey, s.Spec.ArgsSize = nil, false, int64(len(s.Args))
	switch {
	case len(s.Args) <= layout.MaxArgsInSpec:
		s.Spec.Args = s.Args
	case len(s.Args) <= layout.MaxArgsInKey:
		s.Spec.ArgsKey = true
	default:
		s.large = true
	}
}

// batchLength is how many of subs one transaction takes.
func batchLength(subs []Submission) int {
	size, edges := 0, 0
	for i := range subs {
		size += subs[i].Size()
		edges += subs[i].Spec.CountInputs()
		if i == layout.MaxSubmit || (i > 0 && (size > layout.MaxSubmitBytes || edges > edge.MaxLinks)) {
			return i
		}
	}
	return len(subs)
}

// Size is about how many bytes a submission adds to a transaction.
func (s *Submission) Size() int {
	size := 300 + s.Spec.MetaSize() + len(s.Spec.Inputs)
	if !s.large {
		size += len(s.Args)
	}
	return size
}

func (c *Cluster) submitBatch(ctx context.Context, subs []Submission) ([]Submitted, error) {
	var serializer *serial.Serializer
	if slices.ContainsFunc(subs, func(s Submission) bool { return !s.Spec.Lane.IsZero() }) {
		serializer = c.submitSerializer
	}
	var answers []Submitted
	run := func(ctx context.Context, tx kv.Attempt, _ serial.Past) (err error) {
		answers, err = c.insertBatch(ctx, c.write(tx), subs, tx.MaybeCommitted)
		return err
	}
	result, err := serializer.Transact(ctx, c, kv.Options{Tag: "futura-submit"}, 1, run)
	if err != nil {
		return nil, err
	}
	c.Wake(ctx, result.Version, answers)
	return answers, nil
}

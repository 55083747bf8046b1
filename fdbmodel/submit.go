package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
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
	// Codec to raw; SubmittedAt is filled in.
	Spec layout.Spec
	// Args are the arguments, at most MaxArgs bytes.
	Args []byte
	// Inputs are the futures that it takes the results of, at most MaxInputs. It
	// waits until all are realized, and fails with kind upstream once one of them
	// has failed. Each must exist, or be in the same call before this one, so that
	// no future can depend on itself. None is removed before this one is over.
	Inputs []layout.ID
	// NotBefore delays the future. Defaults to no delay.
	NotBefore time.Time
	// Assigned is the worker that the future is assigned to from the start, see
	// Assign. It excludes NotBefore. Defaults to none.
	Assigned layout.WorkerID
	// Reason is recorded with the assignment, at most 64 bytes. Defaults to empty.
	Reason string

	chosen bool
	large  bool
	many   []layout.ID // inputs that the spec does not hold
}

// Submitted is the answer to a Submission.
type Submitted struct {
	ID layout.ID
	// Existed is set if the future existed before, by its id or key.
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

	spec   *layout.Spec
	worker layout.WorkerID
	place  *layout.Place                        // where it waits, nil if it does not
	admits notify.Demands                       // of others, which it found in line
	settle bool                                 // its inputs are to be linked, or those that use it to be told
	mail   map[layout.SessionID][]layout.Notice // of the one that it replaced
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
// one, and for an assigned future the errors of Assign. An
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

// SubmitTx makes futures in the caller's own transaction: they exist if it
// commits. Arguments must be small enough to lie in the transaction (16 KiB
// each) or have been written ahead with PutArgs. It returns the errors of
// Submit. After the commit the caller passes the answers to Wake. If the commit
// is unknown, the caller's own retry must decide; submitting the same ids again
// in it is safe.
func (c *Cluster) SubmitTx(ctx context.Context, tx kv.Tx, subs []Submission) ([]Submitted, error) {
	prepared, err := c.prepare(ctx, subs)
	if err != nil || len(prepared) == 0 {
		return nil, err
	}
	for i := range prepared {
		if prepared[i].large {
			return nil, fmt.Errorf("%w: %d bytes of arguments in the caller's transaction: at most %d, or write them "+
				"ahead with PutArgs", ErrTooLarge, len(prepared[i].Args), layout.MaxArgsInKey)
		}
		if prepared[i].many != nil {
			return nil, fmt.Errorf("%w: %d inputs in the caller's transaction: at most %d", ErrTooLarge,
				len(prepared[i].many), layout.MaxInputsInSpec)
		}
		prepared[i].chosen = true
	}
	return c.insertBatch(ctx, tx, prepared, insertion{look: true, shared: true})
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
	if spec.Queue == "" {
		spec.Queue = layout.DefaultQueue
	}
	if spec.Codec == "" {
		spec.Codec = layout.CodecRaw
	}
	function, err := c.ResolveFunction(ctx, spec.Function)
	if err != nil {
		return err
	}
	spec.Function = function
	if err := layout.CheckQueueName(spec.Queue); err != nil {
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
	spec.SubmittedAt = layout.Millis(c.clock.Now())
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
		size += 300 + subs[i].Spec.MetaSize() + len(subs[i].Spec.Inputs)
		edges += subs[i].Spec.CountInputs()
		if !subs[i].large {
			size += len(subs[i].Args)
		}
		if i == layout.MaxSubmit || (i > 0 && (size > layout.MaxSubmitBytes || edges > edge.MaxLinks)) {
			return i
		}
	}
	return len(subs)
}

func (c *Cluster) submitBatch(ctx context.Context, subs []Submission) ([]Submitted, error) {
	var contest *contest
	if slices.ContainsFunc(subs, func(s Submission) bool { return !s.Spec.Lane.IsZero() }) {
		contest = c.fillings
	}
	var answers []Submitted
	run := func(ctx context.Context, tx kv.Attempt, _ kv.Version) (err error) {
		answers, err = c.insertBatch(ctx, tx, subs, insertion{look: tx.MaybeCommitted})
		return err
	}
	result, err := c.transactIn(ctx, contest, kv.Options{Tag: "futura-submit"}, run)
	if err != nil {
		return nil, err
	}
	c.Wake(ctx, result.Version, answers)
	return answers, nil
}

// insertion says how futures are inserted: whether all of them may exist, and whether
// the transaction is the caller's, who may insert others in it.
type insertion struct{ look, shared bool }

// insertBatch reads the specs of ids that may exist, and of all if look is set.
// The first spec that it does not read and is sure to write is still in the read
// conflict set of each attempt, so that the late twin of one with an unknown result
// can't land beside its retry.
func (c *Cluster) insertBatch(ctx context.Context, tx kv.Tx, subs []Submission, how insertion) ([]Submitted, error) {
	fresh, err := c.areFresh(ctx, tx, subs)
	if err != nil {
		return nil, err
	}
	asked := c.askSubmitted(tx, subs, how.look, fresh)
	answers, inLanes := make([]Submitted, len(subs)), map[int]*layout.Row{}
	seen := make(map[layout.ID]*layout.Row, len(subs))
	w := c.write(tx)
	w.lanes.Shared = how.shared
	if err := w.lanes.Obey(ctx, len(subs), func(i int) *layout.Spec { return &subs[i].Spec }); err != nil {
		return nil, err
	}
	called := assignees{cluster: c, changes: w}
	for i := range subs {
		s := &subs[i]
		row := c.rowOf(s)
		answers[i] = Submitted{
			ID: s.ID, State: row.State(), spec: &s.Spec, worker: s.Assigned, place: layout.PlaceOf(&row),
		}
		if earlier := seen[s.ID]; earlier != nil {
			answers[i].Existed = true
			if differs := unique.OtherWork(earlier.Spec, row.Spec); differs != "" {
				return nil, errIDInUse(s, differs)
			}
			answers[i].Differs = s.otherThan(earlier, layout.Millis(c.clock.Now()))
			continue
		}
		seen[s.ID] = &row
		if (s.chosen || how.look) && !fresh {
			old, found, err := asked.existing[i].Wait(ctx)
			if err != nil {
				return nil, err
			}
			if found && old.Spec != nil {
				if err := c.answerSame(ctx, tx, &old, s, &answers[i]); err != nil {
					return nil, err
				}
				asked.inputs.Made(&old)
				continue
			}
		}
		if other, err := c.resolveName(ctx, w, asked, subs, answers, i); err != nil {
			return nil, err
		} else if other {
			continue
		}
		if err := asked.require(ctx, s, i); err != nil {
			return nil, err
		}
		if s.Assigned != "" {
			if err := called.call(ctx, s); err != nil {
				return nil, err
			}
		}
		if err := w.insertLinked(ctx, asked.inputs, &row, s.Args); err != nil {
			return nil, err
		}
		answers[i].State, answers[i].place = row.State(), layout.PlaceOf(&row)
		answers[i].settle = slices.Contains(w.edges.Marks, index.Mark{ID: s.ID})
		if row.Line != nil {
			inLanes[i] = &row
		}
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	placeInLanes(answers, inLanes, w.pool.placed)
	return answers, nil
}

// placeInLanes says where futures wait that got in line, after some were admitted, and
// which others were.
func placeInLanes(answers []Submitted, inLanes map[int]*layout.Row, others notify.Demands) {
	for i, row := range inLanes {
		answers[i].place = layout.PlaceOf(row)
	}
	if len(answers) > 0 {
		answers[0].admits = others
	}
}

// askedSubmitted is what a submit has requested.
type askedSubmitted struct {
	existing []read.Pending
	pieces   [][]kv.Pending[[]byte] // the first ones of values that were written ahead
	inputs   *edge.Inputs
	modules  neededModules
	names    names
}

func (c *Cluster) askSubmitted(tx kv.Tx, subs []Submission, look, fresh bool) *askedSubmitted {
	asked := &askedSubmitted{
		existing: make([]read.Pending, len(subs)), pieces: make([][]kv.Pending[[]byte], len(subs)),
		inputs: edge.NewInputs(tx, c.keys), modules: neededModules{cluster: c},
	}
	guarded := fresh
	for i := range subs {
		s := &subs[i]
		asked.modules.ask(tx, s.Spec.Function)
		asked.names.ask(tx, c.keys, s)
		if (s.chosen || look) && !fresh {
			asked.existing[i] = read.Record(tx, c.keys, s.ID)
		} else if !guarded {
			guarded = s.Unique == nil // another one may stand for it
			tx.AddReadConflictKey(c.keys.Spec(s.ID))
		}
		for _, ref := range [...]*layout.ChunkRef{s.Spec.ArgsRef, s.Spec.InputsRef} {
			if ref != nil && ref.Count > 0 {
				asked.pieces[i] = append(asked.pieces[i], tx.Get(c.keys.Chunk(s.ID, *ref, 0)))
			}
		}
		asked.inputs.Ask(layout.UnpackIDs(s.Spec.Inputs))
	}
	return asked
}

// require returns an error unless what a submission needs is there.
func (a *askedSubmitted) require(ctx context.Context, s *Submission, i int) error {
	if err := requireArgs(ctx, s, a.pieces[i]); err != nil {
		return err
	}
	return a.modules.require(ctx, s.Spec.Function)
}

// requireArgs returns errArgsSwept unless the first pieces of large arguments and
// of many inputs, where s has such, are there.
func requireArgs(ctx context.Context, s *Submission, firsts []kv.Pending[[]byte]) error {
	for _, first := range firsts {
		value, err := first.Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("future %s: %w", s.ID, errArgsSwept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowOf returns the row that a submission becomes.
func (c *Cluster) rowOf(s *Submission) layout.Row {
	row := layout.Row{ID: s.ID, Spec: &s.Spec}
	if !s.NotBefore.IsZero() && s.NotBefore.After(c.clock.Now()) {
		row.Attempts.Due = layout.Millis(s.NotBefore)
	}
	row.Attempts.Assigned, row.Attempts.Reason = s.Assigned, s.Reason
	return row
}

// areFresh reports whether neighbouring ids are unused, by one read of
// everything between the first and the last one. If it returns false, they may
// still be unused.
func (c *Cluster) areFresh(ctx context.Context, tx kv.Tx, subs []Submission) (bool, error) {
	for i := range subs {
		if !subs[i].chosen || i > 0 && !subs[i].ID.Follows(subs[i-1].ID) {
			return false, nil
		}
	}
	if len(subs) == 1 {
		return false, nil
	}
	first, last := subs[0].ID, subs[len(subs)-1].ID
	between := kv.Range{Begin: c.keys.Row(first), End: kv.AfterPrefix(c.keys.Row(last))}
	page, err := tx.GetRange(between, kv.RangeOptions{Limit: 1}).Wait(ctx)
	return err == nil && len(page.Items) == 0, err
}

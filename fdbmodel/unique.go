package fdbmodel

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Unique has a future be the only one of its kind: no other future with the same name may be
// submitted while it has that. UniquePart is a part of a future that its name is made from,
// Conflict what becomes of a submit while another future has the name, and NotUniqueError
// says which one has it.
type (
	Unique         = unique.Unique
	UniquePart     = unique.Part
	Conflict       = unique.Conflict
	NotUniqueError = unique.TakenError
)

// The parts of a future, and what becomes of a conflict, as in package unique.
const (
	UniqueFunction  = unique.Function
	UniqueQueue     = unique.Queue
	UniqueArguments = unique.Arguments

	ConflictRefuse  = unique.ConflictRefuse
	ConflictReturn  = unique.ConflictReturn
	ConflictReplace = unique.ConflictReplace
)

// ErrNotUnique is returned by submit and retry when another future has the name of
// a unique one. Every NotUniqueError matches it.
var ErrNotUnique = unique.ErrTaken

// UniqueNameOf returns the name that a submission has by its Unique. Its spec must
// have the function and the queue that it is stored with.
func UniqueNameOf(s *Submission) layout.UniqueName {
	return s.Unique.NameOf(unique.Work{Spec: &s.Spec, Args: s.Args, Inputs: s.Inputs})
}

// nameUnique gives the spec of a unique submission its name.
func (s *Submission) nameUnique() error {
	s.Spec.Unique = nil
	if s.Unique == nil {
		return nil
	}
	if s.Spec.Owner != "" {
		return fmt.Errorf("%w: a future of a batch can't be unique", layout.ErrBadSpec)
	}
	if err := s.Unique.Check(); err != nil {
		return err
	}
	s.Spec.Unique = &layout.Unique{
		Name: UniqueNameOf(s), Key: layout.ShowUniqueKey(s.Unique.Key), Until: s.Unique.Until, For: s.Unique.For,
	}
	return nil
}

// holderOf returns the future other than self that has a name, nil for none, and clears the
// keys of those that have given it up: the caller takes the name.
func (w *WriteSet) holderOf(ctx context.Context, name layout.UniqueName, self layout.ID, asked kv.Pending[kv.Page],
) (*unique.Holder, error) {
	holder, former, err := unique.Find(ctx, w.Tx, w.Keys, asked, self, w.Now, w.lanes.Lined)
	for i := range former {
		w.names.Clear(name, former[i].Record.FreeAt, former[i].ID)
	}
	return holder, err
}

// resolveName finds out whether a unique submission may have its name. It returns true if
// another future is the answer. On ConflictReplace it cancels the other one.
func (ins *inserting) resolveName(ctx context.Context, i int) (bool, error) {
	s, answer, names := &ins.subs[i], &ins.answers[i], &ins.asked.names
	if s.Unique == nil {
		return false, nil
	}
	name := s.Spec.Unique.Name
	if first, taken := names.Taken(name); taken {
		return ins.resolveTwice(ctx, first, i)
	}
	// The submission's own id may have the name too: of a future that was removed.
	other, err := ins.w.holderOf(ctx, name, layout.ID{}, names.Asked(name))
	if err != nil {
		return false, err
	}
	if other == nil {
		ins.takeName(i)
		return false, nil
	}
	refusal := other.Refusal(name, s.Unique.OnConflict, ins.w.Now)
	if other.Row != nil {
		if refusal.Differs, err = ins.otherThan(ctx, ins.w.Tx, other.Row, s); err != nil {
			return false, err
		}
	}
	switch {
	case s.Unique.OnConflict == ConflictReturn:
		answer.isOther(other.ID, refusal.State, refusal.Differs)
		return true, nil
	case s.Unique.OnConflict == ConflictReplace && other.Waits() && ins.w.lanes.Lined[other.ID] == nil:
		return false, ins.replace(other.Row, i)
	case ins.w.made[other.ID]:
		refusal.ID = layout.ID{}
	}
	return false, refusal
}

// resolveTwice resolves the name of submission i, which an earlier one of the same transaction has taken, and may have
// ended with. One that waits is replaced, as that of an earlier transaction is, unless it is in line or others of the
// call take its result: those would be left without an input.
func (ins *inserting) resolveTwice(ctx context.Context, first, i int) (bool, error) {
	s, earlier, answer := &ins.subs[i], &ins.answers[first], &ins.answers[i]
	row := ins.seen[ins.subs[first].ID]
	holder := unique.Holder{Record: *layout.UniqueOf(row.Spec), Row: row}
	differs, err := ins.otherThan(ctx, ins.w.Tx, row, s)
	taken := row.Dependants || slices.Contains(layout.UnpackIDs(s.Spec.Inputs), row.ID)
	switch {
	case err != nil:
		return false, err
	case !holder.Holds(ins.w.Now):
		ins.takeName(i)
		return false, nil
	case s.Unique.OnConflict == ConflictReturn:
		answer.isOther(row.ID, earlier.State, differs)
		return true, nil
	case s.Unique.OnConflict == ConflictReplace && holder.Waits() && row.Line == nil && !taken:
		earlier.State, earlier.place = layout.Failed, nil
		return false, ins.replace(row, i)
	}
	refusal := holder.Refusal(s.Spec.Unique.Name, s.Unique.OnConflict, ins.w.Now)
	refusal.Task, refusal.Differs = 1+first, differs
	return false, refusal
}

// isOther has another future be the answer.
func (s *Submitted) isOther(id layout.ID, state layout.State, differs string) {
	s.ID, s.State, s.Existed, s.Differs, s.place = id, state, true, differs, nil
}

// takeName gives submission i its name.
func (ins *inserting) takeName(i int) {
	ins.asked.names.Take(ins.subs[i].Spec.Unique.Name, i)
	ins.w.made.Add(ins.subs[i].ID)
}

// replace cancels a future that waits, and gives its name to submission i.
func (ins *inserting) replace(row *layout.Row, i int) error {
	name, answer := row.Spec.Unique.Name, &ins.answers[i]
	ins.takeName(i)
	answer.Replaced = row.ID
	err := ins.w.replace(ins.asked.inputs, row, ins.subs[i].ID, ins.clock.Now())
	ins.w.names.Clear(name, row.Spec.FreeAt(), row.ID)
	answer.mail = ins.w.mail.Notices
	return err
}

// replace cancels a future that waits, because a new one takes its name.
func (w *WriteSet) replace(inputs *edge.Inputs, row *layout.Row, by layout.ID, now time.Time) error {
	// Others that the transaction submits may take its result: they are told too.
	row.Dependants = true
	request := &layout.CancelRequest{Reason: fmt.Sprintf("replaced by future %s", by), At: layout.Millis(now)}
	after, outcome := state.Next(*row, state.Event{Kind: state.EventCancel, Cancel: request, Now: now})
	if outcome != Applied {
		return fmt.Errorf("future %s is %v: replace is %w", row.ID, row.State(), ErrTransition)
	}
	w.Apply(row, &after)
	inputs.Made(&after)
	return nil
}

// requireName returns a NotUniqueError if a unique future that is over can't start
// again, because another one has its name.
func (w *WriteSet) requireName(ctx context.Context, before, after *layout.Row) error {
	if before.Spec.Unique == nil || !before.State().Terminal() || after.State().Terminal() {
		return nil
	}
	name := before.Spec.Unique.Name
	other, err := w.holderOf(ctx, name, before.ID, unique.Ask(w.Tx, w.Keys, name))
	if err != nil || other == nil {
		return err
	}
	refusal := other.Refusal(name, ConflictRefuse, w.Now)
	if other.Row != nil {
		refusal.Differs = unique.OtherWork(other.Row.Spec, before.Spec)
	}
	return fmt.Errorf("retry of future %s: %w", before.ID, refusal)
}

func errIDInUse(s *Submission, differs string) error {
	if s.Key != "" {
		return fmt.Errorf("%w: %s, by the key %.80q, with other %s: use another key, submit what was submitted before, or "+
			"discard that future once it is over, which frees the key", ErrIDInUse, s.ID, s.Key, differs)
	}
	return fmt.Errorf("%w: %s, with other %s: use another id, submit what was submitted before, or discard that future "+
		"once it is over", ErrIDInUse, s.ID, differs)
}

// answerSame answers with the existing future. It returns ErrIDInUse if s describes another one.
func (c *Cluster) answerSame(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission, answer *Submitted,
) error {
	if differs, err := c.otherThan(ctx, tx, old, s); err != nil || differs != "" {
		return cmp.Or(err, errIDInUse(s, differs))
	}
	answer.Existed, answer.State, answer.place = s.chosen, old.State(), layout.PlaceOf(old)
	answer.Differs = s.otherThan(old, layout.Millis(c.clock.Now()))
	return nil
}

// otherThan names the settings of the existing future that are not those of s.
func (s *Submission) otherThan(old *layout.Row, now int64) string {
	notBefore := int64(0)
	if !s.NotBefore.IsZero() {
		notBefore = layout.Millis(s.NotBefore)
	}
	return unique.OtherSettings(old, &s.Spec, notBefore, now)
}

// otherThan returns what the existing future has that s has not, empty if s
// describes it.
func (c *Cluster) otherThan(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission) (string, error) {
	differs := unique.OtherWork(old.Spec, &s.Spec)
	if differs != "" || !old.Spec.ArgsKey {
		return differs, nil
	}
	args, err := tx.Get(c.keys.Args(old.ID)).Wait(ctx)
	if !bytes.Equal(args, s.Args) {
		differs = unique.DifferentArguments
	}
	return differs, err
}

package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// placeInputs checks the inputs, drops repeated ones, and decides where they are
// stored. A list that was written ahead stays there.
func (s *Submission) placeInputs() error {
	ahead := s.Spec.InputsRef
	if len(s.Inputs) > 0 {
		ahead = nil
	}
	s.Spec.Inputs, s.Spec.InputsRef, s.many = nil, ahead, nil
	hasInputs := ahead != nil || len(s.Inputs) > 0
	if s.Spec.Codec == layout.CodecInputs && (!hasInputs || len(s.Args) > 0 || s.Spec.ArgsRef != nil) {
		return fmt.Errorf("%w: codec inputs: it needs inputs, whose results are the arguments, and no other arguments",
			layout.ErrBadSpec)
	}
	if ahead != nil {
		return s.checkInputsRef(ahead)
	}
	if err := s.addNear(); err != nil || len(s.Inputs) == 0 {
		return err
	}
	seen, inputs := make(map[layout.ID]bool, len(s.Inputs)), make([]layout.ID, 0, len(s.Inputs))
	for _, id := range s.Inputs {
		if !seen[id] {
			seen[id], inputs = true, append(inputs, id)
		}
	}
	switch {
	case seen[s.ID]:
		return fmt.Errorf("%w: %s is its own input", layout.ErrBadSpec, s.ID)
	case s.Assigned != "" || s.Spec.Owner != "":
		return errInputsOfAssigned
	case len(inputs) > layout.MaxInputs:
		return fmt.Errorf("%w: %d inputs: at most %d; let futures between them take some each", ErrTooLarge, len(inputs),
			layout.MaxInputs)
	case len(inputs) > layout.MaxInputsInSpec:
		s.many = inputs
	default:
		s.Spec.Inputs = layout.PackIDs(inputs)
	}
	return nil
}

// checkInputsRef checks a reference to inputs that were written ahead.
func (s *Submission) checkInputsRef(ref *layout.ChunkRef) error {
	n := s.Spec.CountInputs()
	switch {
	case s.Assigned != "" || s.Spec.Owner != "":
		return errInputsOfAssigned
	case n <= layout.MaxInputsInSpec || n > layout.MaxInputs:
		return fmt.Errorf("%w: a reference to %d inputs: it refers to %d to %d of them, fewer stand in the spec",
			layout.ErrBadSpec, n, layout.MaxInputsInSpec+1, layout.MaxInputs)
	case ref.Kind != layout.ChunkInputs || ref.Size != int64(n*len(layout.ID{})) || ref.Count != layout.Pieces(ref.Size):
		return fmt.Errorf("%w: the reference to its %d inputs does not fit a list of so many", layout.ErrBadSpec, n)
	}
	return nil
}

var errInputsOfAssigned = fmt.Errorf("%w: a future with inputs can't be assigned, or belong to a batch",
	layout.ErrBadSpec)

// addNear makes the object that a future is to be near an input of it.
func (s *Submission) addNear() error {
	near := s.Spec.Near
	if near.IsZero() || slices.Contains(s.Inputs, near) {
		return nil
	}
	if s.Spec.Codec == layout.CodecInputs {
		return fmt.Errorf("%w: codec inputs: the object that it is to be near, %s, must be one of its inputs",
			layout.ErrBadSpec, near)
	}
	s.Inputs = append(slices.Clip(s.Inputs), near)
	return nil
}

// insertLinked writes a new future with its edges.
func (w *WriteSet) insertLinked(ctx context.Context, inputs *edge.Inputs, row *layout.Row, args []byte) error {
	resolve, failure, err := inputs.Begin(ctx, row)
	if err != nil {
		return err
	}
	w.insert(row, args)
	switch {
	case failure != nil:
		failed, _ := state.Next(*row, state.Event{Kind: state.EventUpstream, Exception: failure, Now: time.UnixMilli(w.Now)})
		w.Apply(row, &failed)
		*row = failed
	case resolve:
		w.edges.Mark(row.ID, &layout.ResolveRecord{})
	}
	return nil
}

// ResolveEdges resolves dependencies of futures that have ended, or that are to be linked
// to many inputs, where the processes that marked them did not: futures that use the
// result are unblocked, or fail with it. It returns of how many futures, and whether to
// call it again at once. Several processes may run it. Unreadable futures stay and don't
// hold up the others; those that must be near an object whose records can't be read stay
// blocked, and the error, which IsUnreadable or is one of the store, names some: the rest
// is resolved. An unknown commit is retried and harmless.
func (c *Cluster) ResolveEdges(ctx context.Context) (resolved int, more bool, err error) {
	return c.edges.Resolve(ctx)
}

// ResolveMarked resolves dependencies that transactions of this process have marked, of all
// its callers: while one does, the others return at once. It is best effort, and a call
// makes a few transactions at most. Where ctx ends first, the next call goes on. A janitor
// resolves what is left.
func (c *Cluster) ResolveMarked(ctx context.Context) { c.edges.ResolveMarked(ctx) }

// edgeModel is what dependencies need of a cluster.
type edgeModel struct{ *Cluster }

func (m edgeModel) Write(tx kv.Attempt) edge.Changes { return edgeChanges{m.write(tx)} }

func (m edgeModel) Lose(ctx context.Context, id layout.ID, token layout.Token) (reported bool, err error) {
	_, err = m.Change(ctx, kv.Options{Tag: "futura-lose"}, func(_ kv.Attempt, w *WriteSet) error {
		_, err := w.Lose(ctx, id, token, nil)
		return err
	})
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		return true, nil
	case errors.Is(err, ErrUnreachable):
		return false, nil
	}
	return false, err
}

// edgeChanges are what one transaction that resolves dependencies changes.
type edgeChanges struct{ *WriteSet }

func (c edgeChanges) Edges() *index.Edges   { return &c.edges }
func (c edgeChanges) Place(row *layout.Row) { c.places.Put(row) }

func (c edgeChanges) Committed(ctx context.Context, version kv.Version) {
	then := c.postCommit()
	then.marks = nil // the resolver has them
	c.cluster.announce(ctx, version, then)
}

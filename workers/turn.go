package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// errTurnOver is returned to what uses a turn once its function has returned.
var errTurnOver = errors.New("workers: the function has returned, so its turn takes no more")

// turn is what an attempt reads and changes of actors, and submits with its result. It implements
// taskcontext.Turn.
type turn struct {
	job *job

	mu      sync.Mutex
	over    bool
	actors  []*turnActor
	written int // parts of actors
	submits []fdbmodel.Submission
	size    int // of the submissions, in bytes
	// versions is at how many versions of the store states may have been read.
	versions int
	guessed  bool // a state is from memory, and another process may have changed it

	// Set when the function has returned.
	beside *fdbmodel.Beside
}

// turnActor is an actor in a turn.
type turnActor struct {
	state actors.State
	seen  any // what the function sees of it
	end   func() (actors.Change, error)
	parts map[string]actors.Part // that the function has set and removed
	bare  bool                   // it has removed all
}

// turn returns the turn of the attempt.
func (j *job) turn() *turn {
	if j.turnSoFar.Load() == nil {
		j.turnSoFar.CompareAndSwap(nil, &turn{job: j})
	}
	return j.turnSoFar.Load()
}

// overTurn ends the turn of a function that has returned: it counts if err is nil. It returns err, or
// else what is wrong with the turn.
func (j *job) overTurn(err error) error {
	t := j.turnSoFar.Load()
	if t == nil {
		return err
	}
	if ended := t.end(err == nil); err == nil {
		err = ended
	}
	return err
}

// dropTurn forgets the turn of a call before this one, which middleware has made.
func (j *job) dropTurn() { j.turnSoFar.Store(nil) }

// mayTurn returns an error for a job whose end is not that of one claim.
func (j *job) mayTurn() error {
	switch {
	case j.sourced:
		return Permanent(errors.New("workers: a function that a head gave to a peer has no actors, and submits nothing " +
			"with its result: run it on a worker with access to the store"))
	case j.future.Spec.Bundle || j.future.Spec.Member:
		return Permanent(errors.New("workers: a function that takes many futures in one call has no actors, and " +
			"submits nothing with their results"))
	}
	return nil
}

// Actors implements taskcontext.Turn.
func (t *turn) Actors(ctx context.Context, refs []actors.Ref, join taskcontext.JoinActor) ([]any, error) {
	if err := t.job.mayTurn(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil, errTurnOver
	}
	var fresh []actors.Ref
	for _, ref := range refs {
		if t.of(ref) == nil && !slices.Contains(fresh, ref) {
			fresh = append(fresh, ref)
		}
	}
	if len(t.actors)+len(fresh) > actors.MaxTurn {
		return nil, Permanent(fmt.Errorf("%w: a turn over more than %d actors", fdbmodel.ErrTooLarge, actors.MaxTurn))
	}
	states, err := t.read(ctx, fresh)
	if err != nil {
		return nil, unread(fmt.Errorf("the states of actors %v can't be read: %w", fresh[:min(len(fresh), 3)], err))
	}
	for i := range states {
		seen, end, err := join(&states[i])
		if err != nil {
			return nil, err
		}
		t.actors = append(t.actors, &turnActor{state: states[i], seen: seen, end: end})
	}
	seen := make([]any, len(refs))
	for i, ref := range refs {
		seen[i] = t.of(ref).seen
	}
	return seen, nil
}

// of returns an actor of the turn, nil if it has not joined. It is called under mu.
func (t *turn) of(ref actors.Ref) *turnActor {
	for _, of := range t.actors {
		if of.state.Ref == ref {
			return of
		}
	}
	return nil
}

// read returns the states of actors at one version; that of one alone from memory if it is there: the end of the
// attempt finds out whether it still holds.
func (t *turn) read(ctx context.Context, refs []actors.Ref) ([]actors.State, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	m := t.job.membership
	if len(refs) == 1 {
		known := t.job.future.IsSuccessor() && t.job.future.Spec.Lane == refs[0].Lane()
		if state, warm := actors.Of(m.worker.cluster).Warm().Get(refs[0], known); warm {
			t.versions += 2 // it is of an unknown one
			t.guessed = t.guessed || !known
			return []actors.State{state}, nil
		}
	}
	t.versions++
	return actors.Of(m.worker.cluster).ReadFor(ctx, m.reg, &t.job.future, refs...)
}

// Submit implements taskcontext.Turn.
func (t *turn) Submit(subs []fdbmodel.Submission) error {
	if err := t.job.mayTurn(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errTurnOver
	}
	for i := range subs {
		if own := t.job.future.ID; slices.Contains(subs[i].Inputs, own) || subs[i].Spec.Near == own {
			return Permanent(fmt.Errorf("%w: what is sent with the result of future %s can't take that result, or be near it: "+
				"give it the value in its arguments, or submit it in a step or with Client.Submit", layout.ErrBadSpec, own))
		}
	}
	before, taken := slices.Clone(t.submits), t.size
	for i := range subs {
		t.replace(&subs[i])
	}
	size := t.size
	for i := range subs {
		size += subs[i].Size()
	}
	if n := len(t.submits) + len(subs); n > taskcontext.MaxTurnSubmits || size > actors.MaxTurnBytes {
		t.submits, t.size = before, taken
		return Permanent(fmt.Errorf("%w: %d futures of %d bytes submitted with one result: at most %d, and %d bytes; "+
			"submit one that submits the others", fdbmodel.ErrTooLarge, n, size, taskcontext.MaxTurnSubmits,
			actors.MaxTurnBytes))
	}
	t.submits, t.size = append(t.submits, subs...), size
	return nil
}

// replace drops the submission whose place another one of its unique name takes, as it would that of one that an
// earlier turn has submitted. One that others take the result of stays, and is refused. It is called under mu.
func (t *turn) replace(by *fdbmodel.Submission) {
	if by.Unique == nil || by.Unique.OnConflict != fdbmodel.ConflictReplace {
		return
	}
	at := slices.IndexFunc(t.submits, func(s fdbmodel.Submission) bool {
		return s.Unique != nil && s.Unique.OnConflict == fdbmodel.ConflictReplace && s.Spec.Unique.Name == by.Spec.Unique.Name
	})
	takes := func(s fdbmodel.Submission) bool { return slices.Contains(s.Inputs, t.submits[at].ID) }
	if at < 0 || takes(*by) || slices.ContainsFunc(t.submits, takes) {
		return
	}
	t.size -= t.submits[at].Size()
	t.submits = slices.Delete(t.submits, at, at+1)
}

// end encodes what the function has made of actors, if it counts. No more is taken.
func (t *turn) end(counts bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over { // within middleware
		return nil
	}
	t.over = true
	if !counts {
		return nil
	}
	changes := make([]actors.Change, len(t.actors))
	for i, of := range t.actors {
		var err error
		if changes[i], err = of.end(); err != nil {
			return Permanent(fmt.Errorf("the state of actor %s: %w", of.state.Ref, err))
		}
		if len(of.parts) == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(of.parts)) {
			changes[i].Parts = append(changes[i].Parts, of.parts[name])
		}
	}
	all := actors.Of(t.job.membership.worker.cluster)
	beside, after, err := all.Turn(&t.job.future, changes)
	if err != nil {
		return Permanent(err)
	}
	if t.versions == 1 && len(beside.Write) == 0 && len(t.submits) == 0 {
		beside.Expect = nil // it has seen one version of the store, and changes nothing
	}
	guessed := t.guessed
	beside.Done = func(version kv.Version) {
		all.Warm().Keep(after, version)
		if guessed {
			all.Warm().Learn(version != kv.NoVersion)
		}
	}
	beside.Submits = t.submits
	t.beside = beside
	return nil
}

// endTurn has a result write what the turn of its attempt came to.
func (j *job) endTurn(c *fdbmodel.Completion) {
	t := j.turnSoFar.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Beside = t.beside
}

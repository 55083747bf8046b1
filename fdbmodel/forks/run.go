package forks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// run makes the forks of one transaction.
type run struct {
	forks    *Forks
	requests []Request
	preview  bool
	// refused are requests that can't be met, known from an attempt that was given up.
	refused map[int]error
	// tried are the ids that an attempt has submitted.
	tried map[layout.ID]bool
	// stored is how often this run has stored a large value: of one that another has begun to store, the last pieces
	// may be missing.
	stored map[place]int
}

// place is where a large value is.
type place struct {
	fork layout.ID
	ref  layout.ChunkRef
}

// refusal ends an attempt that may have written something for a request that can't be met.
type refusal struct {
	request int
	error
}

// Unwrap returns the reason.
func (r *refusal) Unwrap() error { return r.error }

// absent ends an attempt that needs large values which are not stored yet, or were swept.
type absent struct {
	request int
	values  []value
}

// Error implements error.
func (*absent) Error() string { return "large values of a fork are not stored yet" }

// commit makes forks for the first requests, at least for one, and returns an answer for each of these.
func (r *run) commit(ctx context.Context) (made []Made, err error) {
	for {
		var submitted []fdbmodel.Submitted
		result, err := r.forks.cluster.Transact(ctx, kv.Options{Tag: "futura-fork"}, func(tx kv.Attempt) (err error) {
			made, submitted, err = r.attempt(ctx, tx)
			return err
		})
		var missing *absent
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			r.refused[refused.request] = refused.error
		case errors.As(err, &missing):
			err := r.store(ctx, missing)
			if err != nil && !isRefusal(err) {
				return nil, err
			}
			if err != nil {
				r.refused[missing.request] = err
			}
		case err != nil:
			return nil, err
		default:
			r.forks.cluster.Wake(ctx, result.Version, submitted)
			return made, nil
		}
	}
}

func (r *run) attempt(ctx context.Context, tx kv.Attempt) (made []Made, submitted []fdbmodel.Submitted, err error) {
	size := 0
	for i := range r.requests {
		request := &r.requests[i]
		answer := Made{Source: request.Source, ID: request.ID, Err: r.refused[i]}
		var one *plan
		if answer.Err == nil {
			one, err = r.forks.plan(ctx, tx, request, &answer)
		}
		switch {
		case isRefusal(err):
			answer.Err = err
		case err != nil:
			return nil, nil, err
		}
		if answer.Existed && tx.MaybeCommitted && r.tried[request.ID] {
			answer.Existed = false // an earlier attempt of this call made it
		}
		if one != nil && !r.preview {
			if size += one.size; size > bytesAtOnce && i > 0 {
				return made, submitted, nil
			}
			done, err := r.write(ctx, tx, i, one)
			if err != nil {
				return nil, nil, err
			}
			answer.State, submitted = done.State, append(submitted, done)
		}
		made, err = append(made, answer), nil
	}
	return made, submitted, nil
}

// write submits a fork, and records its steps.
func (r *run) write(ctx context.Context, tx kv.Tx, i int, one *plan) (done fdbmodel.Submitted, err error) {
	f, id := r.forks, one.submission.ID
	var missing []value
	for _, v := range one.values {
		if r.stored[place{id, v.ref}] > 0 {
			first, err := tx.Get(f.keys.Chunk(id, v.ref, 0)).Wait(ctx)
			if err != nil {
				return done, err
			}
			if first != nil {
				continue
			}
		}
		missing = append(missing, v)
	}
	if len(missing) > 0 {
		return done, &absent{i, missing}
	}
	r.tried[id] = true
	answers, err := f.cluster.SubmitTx(ctx, tx, []fdbmodel.Submission{one.submission})
	if err != nil {
		if isRefusal(err) {
			err = &refusal{i, fmt.Errorf("fork of future %s: %w", r.requests[i].Source, err)}
		}
		return done, err
	}
	keys := step.Keys(f.keys)
	for n := range one.steps {
		tx.Set(keys.Step(id, one.steps[n].Name), layout.Encode(&one.steps[n].Record))
	}
	if len(one.steps) > 0 {
		tx.Set(f.keys.State(id, layout.StateSteps), layout.Mark())
	}
	return answers[0], nil
}

// store writes large values of a fork ahead of it. The janitor sweeps them if it never comes.
func (r *run) store(ctx context.Context, missing *absent) error {
	f, request := r.forks, &r.requests[missing.request]
	for _, v := range missing.values {
		at := place{request.ID, v.ref}
		if r.stored[at] == pieces.MaxStored {
			return fmt.Errorf("fork of future %s: %w", request.Source, pieces.Vanished(v.ref.Size))
		}
		content := v.content
		if content == nil {
			var err error
			if content, err = pieces.ReadValue(ctx, f.cluster, f.keys, request.Source, v.ref); err != nil {
				return err
			}
		}
		if _, err := pieces.PutValue(ctx, f.cluster, f.keys, request.ID, v.ref, content); err != nil {
			return err
		}
		r.stored[at]++
	}
	return nil
}

// isRefusal reports whether an error is about one fork, so that others may be made.
func isRefusal(err error) bool {
	for _, one := range []error{ErrUnforkable, ErrNoStep, ErrNothingFailed, ErrAmbiguous, ErrForked,
		fdbmodel.ErrNotFound, fdbmodel.ErrLaneFull} {
		if errors.Is(err, one) {
			return true
		}
	}
	return fdbmodel.IsMistake(err) || layout.IsUnreadable(err)
}

// plan is what a fork is to be.
type plan struct {
	submission fdbmodel.Submission
	steps      []step.Named
	values     []value // that lie outside of the records
	size       int     // of the records, in bytes
}

// value is a large value of a fork: that of its source with the same reference, unless it has content.
type value struct {
	ref     layout.ChunkRef
	content []byte
}

// plan plans a fork, and completes the answer to it. It returns nil for one that exists. It has read
// the source and the fork, so that both are as it found them when the transaction commits.
func (f *Forks) plan(ctx context.Context, tx kv.Tx, r *Request, answer *Made) (*plan, error) {
	asked := [2]read.Pending{read.Record(tx, f.keys, r.ID), read.Record(tx, f.keys, r.Source)}
	existing, _, err := asked[0].Wait(ctx)
	if err != nil {
		return nil, err
	}
	if existing.Spec != nil {
		return nil, f.recognise(&existing, r, answer)
	}
	source, _, err := asked[1].Wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case source.Spec == nil:
		return nil, fmt.Errorf("future %s: %w", r.Source, fdbmodel.ErrNotFound)
	}
	if err := isOver(&source); err != nil {
		return nil, err
	}
	var all []step.Named
	if source.Steps {
		if all, err = step.All(ctx, tx, step.Keys(f.keys), r.Source); err != nil {
			return nil, err
		}
	}
	kept, err := r.From.kept(&source, all)
	if err != nil {
		return nil, err
	}
	answer.Fork = layout.Fork{From: r.Source, Step: r.From.step, Copied: len(kept), Set: len(r.Set), Given: digest(r.Set),
		Name: r.Name}
	if len(kept) > 0 {
		answer.Fork.After = kept[len(kept)-1].Name
	}
	p := &plan{steps: kept}
	for i := range kept {
		if kept[i].Origin == "" {
			kept[i].Origin = step.OriginCopied
		}
	}
	if err := p.set(r, layout.Millis(f.cluster.Now())); err != nil {
		return nil, err
	}
	of := answer.Fork
	if p.submission, err = f.submission(ctx, tx, &source, r, &of); err != nil {
		return nil, err
	}
	if err := p.measure(f.keys); err != nil {
		return nil, err
	}
	return p, nil
}

// recognise completes the answer for an id that is in use.
func (f *Forks) recognise(row *layout.Row, r *Request, answer *Made) error {
	of := row.Spec.Fork
	if of == nil || of.From != r.Source || of.Name != r.Name {
		return fmt.Errorf("future %s: %w", r.ID, fdbmodel.ErrIDInUse)
	}
	if !r.From.agrees(of) {
		return fmt.Errorf("%w: fork %s of future %s went on %s, not from %s: use another name", ErrForked, r.ID, r.Source,
			Text(of), r.From)
	}
	if digest(r.Set) != of.Given {
		return fmt.Errorf("%w: fork %s of future %s was given other values: use another name", ErrForked, r.ID, r.Source)
	}
	answer.Fork, answer.State, answer.Existed = *of, row.State(), true
	return nil
}

// measure finds what lies outside of the records, and how much they take.
func (p *plan) measure(keys layout.Keyspace) error {
	for _, ref := range []*layout.ChunkRef{p.submission.Spec.ArgsRef, p.submission.Spec.InputsRef} {
		if ref != nil {
			p.values = append(p.values, value{ref: *ref})
		}
	}
	steps := 0
	for i := range p.steps {
		s := &p.steps[i]
		if s.ValueRef != nil && s.ValueRef.Count > 0 && !p.has(s.ValueRef) {
			p.values = append(p.values, value{ref: *s.ValueRef})
		}
		// A store counts a key that is written three times: with its value, and as a conflict.
		steps += 200 + len(s.Value) + 3*len(step.Keys(keys).Step(p.submission.ID, s.Name))
	}
	if steps > MaxBytes {
		return fmt.Errorf("%w: %d steps of future %s take %d bytes, and a fork copies at most %d: fork it from an earlier "+
			"step, or retry it", fdbmodel.ErrTooLarge, len(p.steps), p.submission.Spec.Fork.From, steps, MaxBytes)
	}
	p.size = 2000 + steps + len(p.submission.Args) + p.submission.Spec.MetaSize()
	return nil
}

func (p *plan) has(ref *layout.ChunkRef) bool {
	return slices.ContainsFunc(p.values, func(v value) bool { return v.ref == *ref })
}

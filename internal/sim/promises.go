package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/results"
)

// hookProcesses are how many processes make promises and complete them.
const hookProcesses = 3

// simPromise is a promise as the workload knows it.
type simPromise struct {
	submission fdbmodel.Submission
	made       bool
	// tokens are those that were drawn, the last one last. doubts is not 0 while another one may
	// have been drawn since.
	tokens []promises.Token
	doubts int
	// outcome is what it was said to have come to, empty while nobody has said so.
	outcome string
}

// hookProcess is a process that makes promises, and completes those of all.
type hookProcess struct {
	agenda
	world   *world
	process *process
}

// startHooks starts the processes that complete promises, in runs that have some.
func (w *world) startHooks(ctx context.Context) error {
	for _, p := range w.hooks {
		p.process.die()
	}
	w.hooks = nil
	for range hookProcesses {
		if w.options.Promises == 0 {
			break
		}
		p := &hookProcess{world: w}
		if err := p.restart(ctx); err != nil {
			return err
		}
		w.hooks = append(w.hooks, p)
	}
	return nil
}

func (p *hookProcess) restart(ctx context.Context) (err error) {
	p.process, err = p.world.startProcess(ctx, &p.agenda, p)
	return err
}

// step makes a promise, or does something with one.
func (p *hookProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	w := p.world
	next := now.Add(time.Duration(100+w.random.IntN(900)) * time.Millisecond)
	if p.process.dead {
		return next, p.restart(ctx)
	}
	if !w.healing {
		switch w.random.IntN(12) {
		case 0:
			p.process.dieIn = 1 + w.random.IntN(3)
		case 1, 2:
			p.process.stopIn = 1 + w.random.IntN(3)
		}
	}
	all := promises.Of(p.process.cluster)
	if len(w.promises) < w.options.Promises && !w.healing && w.random.IntN(3) == 0 {
		return next, p.add(ctx, all, now)
	}
	if len(w.promises) == 0 {
		return next, nil
	}
	one := w.promises[w.random.IntN(len(w.promises))]
	if !one.made {
		return next, p.make(ctx, all, one)
	}
	if w.healing {
		for _, one := range w.promises {
			if err := p.finish(ctx, all, one); err != nil {
				return next, err
			}
		}
		return next, nil
	}
	return next, p.meddle(ctx, all, one)
}

func (p *hookProcess) add(ctx context.Context, all *promises.Promises, now time.Time) error {
	w := p.world
	ids, err := p.process.cluster.DrawIDs(1)
	if err != nil {
		return err
	}
	one := &simPromise{submission: fdbmodel.Submission{ID: ids[0]}}
	if w.random.IntN(3) == 0 {
		one.submission.Spec.ExpiresAt = layout.Millis(now.Add(time.Duration(1+w.random.IntN(30)) * time.Second))
	}
	w.promises = append(w.promises, one)
	return p.make(ctx, all, one)
}

// make makes a promise, or makes sure that it is there after an unknown result. Its token is
// lost with that.
func (p *hookProcess) make(ctx context.Context, all *promises.Promises, one *simPromise) error {
	made, err := all.Make(ctx, one.submission)
	if err != nil {
		return err
	}
	one.made = true
	if !made.Existed {
		one.tokens = append(one.tokens, made.Token)
	}
	return nil
}

// meddle does what those do that have a token of a promise, or rights.
func (p *hookProcess) meddle(ctx context.Context, all *promises.Promises, one *simPromise) error {
	w, id := p.world, one.submission.ID
	drawn := len(one.tokens)
	value := []string{"yes", "yes", "no", string(bytes.Repeat([]byte("large"), 2000))}[w.random.IntN(4)]
	switch n := w.random.IntN(16); {
	case n == 0:
		outcome, _, err := p.process.cluster.Cancel(ctx, id, "no more")
		if err == nil && outcome == fdbmodel.Applied {
			one.ended(w, "cancelled")
		}
		if errors.Is(err, fdbmodel.ErrNotFound) && w.expires {
			err = nil
		}
		return err
	case n == 1:
		return p.draw(ctx, all, one)
	case n == 2 && drawn > 1 && one.doubts == 0:
		_, err := all.ResolveBy(ctx, one.tokens[w.random.IntN(drawn-1)], promises.Value{Bytes: []byte("old")})
		if err == nil || errors.Is(err, promises.ErrConflict) {
			w.broken = append(w.broken, fmt.Errorf("a token opens promise %s after another one was drawn", id))
		}
		return one.answered(w, "", err, true)
	case n < 5:
		_, err := all.Reject(ctx, id, "rejected")
		return one.answered(w, "rejected", err, false)
	case n < 9 || drawn == 0:
		_, err := all.Resolve(ctx, id, promises.Value{Bytes: []byte(value)})
		return one.answered(w, "value "+value, err, false)
	default:
		doubts := one.doubts
		_, err := all.ResolveBy(ctx, one.tokens[drawn-1], promises.Value{Bytes: []byte(value)})
		mayBeWrong := doubts+one.doubts > 0 || len(one.tokens) != drawn || one.submission.Spec.ExpiresAt != 0 || w.expires
		return one.answered(w, "value "+value, err, mayBeWrong)
	}
}

// draw draws another token. If others do so meanwhile, nobody knows which one counts.
func (p *hookProcess) draw(ctx context.Context, all *promises.Promises, one *simPromise) error {
	drawn := len(one.tokens)
	one.doubts++
	token, err := all.NewToken(ctx, one.submission.ID)
	switch {
	case errors.Is(err, fdbmodel.ErrTransition), errors.Is(err, fdbmodel.ErrNotFound):
		one.doubts--
		return nil
	case err != nil:
		return err
	}
	if len(one.tokens) == drawn {
		one.doubts--
	}
	one.tokens = append(one.tokens, token)
	return nil
}

// answered notes what a completion was answered.
func (one *simPromise) answered(w *world, outcome string, err error, mayBeWrong bool) error {
	switch {
	case err == nil:
		one.ended(w, outcome)
	case errors.Is(err, promises.ErrCancelled):
		one.ended(w, "cancelled")
	case errors.Is(err, promises.ErrExpired):
		one.ended(w, "expired")
	case errors.Is(err, promises.ErrConflict):
	case errors.Is(err, promises.ErrBadToken):
		if !mayBeWrong {
			w.broken = append(w.broken, fmt.Errorf("the token of promise %s does not open it", one.submission.ID))
		}
	case errors.Is(err, fdbmodel.ErrNotFound):
		if !w.expires {
			w.broken = append(w.broken, fmt.Errorf("promise %s is gone", one.submission.ID))
		}
	default:
		return err
	}
	return nil
}

// ended notes what a promise was said to have come to: it is always the same.
func (one *simPromise) ended(w *world, outcome string) {
	if one.outcome != "" && one.outcome != outcome {
		w.broken = append(w.broken, fmt.Errorf("promise %s came to %.20q and to %.20q", one.submission.ID, one.outcome,
			outcome))
	}
	one.outcome = outcome
}

// finish resolves a promise that is left, without faults.
func (p *hookProcess) finish(ctx context.Context, all *promises.Promises, one *simPromise) error {
	if !one.made || one.outcome != "" {
		return nil
	}
	_, err := all.Resolve(ctx, one.submission.ID, promises.Value{Bytes: []byte("end")})
	if errors.Is(err, promises.ErrConflict) || errors.Is(err, fdbmodel.ErrNotFound) && p.world.expires {
		one.outcome, err = "unknown", nil // its first answer was lost
		return nil
	}
	return one.answered(p.world, "value end", err, false)
}

// promisesAreOver reports whether all promises were completed.
func (w *world) promisesAreOver() bool {
	return !slices.ContainsFunc(w.promises, func(one *simPromise) bool { return !one.made || one.outcome == "" })
}

// checkPromises requires that each promise is what it was said to be.
func (w *world) checkPromises(ctx context.Context) error {
	defer w.calm()()
	var problems []error
	for _, one := range w.promises {
		row, err := w.reader.Get(ctx, one.submission.ID)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound) && (w.expires || !one.made):
		case err != nil:
			problems = append(problems, err)
		case one.outcome != "" && one.outcome != "unknown":
			is, err := w.outcomeOfPromise(ctx, &row)
			if err != nil || is != one.outcome {
				problems = append(problems, fmt.Errorf("promise %s is %v, %.20q, and was said to be %.20q: %v", row.ID, row.State(),
					is, one.outcome, err))
			}
		}
	}
	return errors.Join(problems...)
}

func (w *world) outcomeOfPromise(ctx context.Context, row *layout.Row) (string, error) {
	switch {
	case row.State() == layout.Realized:
		value, err := results.Of(w.reader).Value(ctx, row.ID, row.Result)
		return "value " + string(value), err
	case row.State() != layout.Failed:
		return row.State().String(), nil
	case row.Exception.Kind == layout.KindError:
		return row.Exception.Message, nil
	}
	return string(row.Exception.Kind), nil
}

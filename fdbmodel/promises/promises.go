// Package promises has futures that no worker runs, and that somebody completes: the holder of
// ordinary rights by their id, or anyone by a token of that promise alone.
package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// What a promise that can't be completed answers. Nothing was changed.
var (
	// ErrConflict is returned when a promise was completed before, and otherwise: with
	// another value, or the other way.
	ErrConflict = errors.New("the promise was completed otherwise")
	// ErrExpired is returned when the time of a promise was over before it was completed.
	ErrExpired = errors.New("the promise has expired")
	// ErrCancelled is returned for a promise that was cancelled.
	ErrCancelled = errors.New("the promise was cancelled")
	// ErrNoPromise is returned for a future that is not a promise.
	ErrNoPromise = errors.New("the future is not a promise")
)

// Promises are the promises of one cluster. Its methods may be called from many goroutines.
type Promises struct {
	cluster *fdbmodel.Cluster
	keys    Keys
}

// Of returns the promises of a cluster.
func Of(c *fdbmodel.Cluster) *Promises { return &Promises{cluster: c, keys: Keys(c.Keys())} }

// Made is the answer to Make.
type Made struct {
	fdbmodel.Submitted
	// Token opens the promise. It is zero if the promise existed before: see NewToken.
	Token Token
}

// Make makes a promise and returns once it is durable. The submission is completed as one of a
// Promise. Its errors are those of Submit. An unknown commit is retried, with the same id and
// token.
func (p *Promises) Make(ctx context.Context, s fdbmodel.Submission) (made Made, err error) {
	s.Promise = true
	if s.ID.IsZero() && s.Key == "" {
		drawn, err := p.cluster.DrawIDs(1)
		if err != nil {
			return made, err
		}
		s.ID = drawn[0]
	}
	token := draw(layout.ID{})
	var answers []fdbmodel.Submitted
	result, err := p.cluster.Transact(ctx, kv.Options{Tag: "futura-promise"}, func(tx kv.Attempt) error {
		var err error
		if answers, err = p.cluster.SubmitTx(ctx, tx, []fdbmodel.Submission{s}); err != nil {
			return err
		}
		made = Made{Submitted: answers[0]}
		token.ID = made.ID
		if !made.Existed {
			made.Token = token
			p.write(tx, &token)
			return nil
		}
		if !tx.MaybeCommitted {
			return nil
		}
		record, err := p.record(ctx, tx, made.ID)
		if err == nil && token.opens(&record) { // an earlier attempt of this call made it
			made.Existed, made.Token = false, token
		}
		return err
	})
	if err != nil {
		return Made{}, err
	}
	p.cluster.Wake(ctx, result.Version, answers)
	return made, nil
}

// NewToken draws another token of a promise. From then on the former one opens nothing. It
// returns ErrNotFound, ErrNoPromise, and ErrTransition for a promise that is over. An unknown
// commit is retried, with the same token.
func (p *Promises) NewToken(ctx context.Context, id layout.ID) (Token, error) {
	token := draw(id)
	_, err := p.cluster.Transact(ctx, kv.Options{Tag: "futura-token"}, func(tx kv.Attempt) error {
		row, err := read.Existing(ctx, tx, p.cluster.Keys(), id)
		switch {
		case err != nil:
			return err
		case !row.Spec.IsPromise():
			return notPromise(id)
		case row.State().Terminal():
			return fmt.Errorf("promise %s is %s: a new token is %w", id, row.State(), fdbmodel.ErrTransition)
		}
		p.write(tx, &token)
		return nil
	})
	if err != nil {
		return Token{}, err
	}
	return token, nil
}

func (p *Promises) write(tx kv.Tx, token *Token) {
	tx.Set(p.keys.Promise(token.ID), layout.Encode(&Record{Digest: token.digest(), At: layout.Millis(p.cluster.Now())}))
}

// record returns what opens a promise, empty if nothing does.
func (p *Promises) record(ctx context.Context, tx kv.Reader, id layout.ID) (record Record, err error) {
	key := p.keys.Promise(id)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value != nil {
		err = layout.Decode(key, value, &record)
	}
	return record, err
}

// Drawn returns when the token of a promise was drawn, the zero time if no token opens it.
func (p *Promises) Drawn(ctx context.Context, id layout.ID) (at time.Time, err error) {
	err = p.cluster.View(ctx, func(tx kv.Attempt) error {
		record, err := p.record(ctx, tx, id)
		if at = (time.Time{}); err == nil && record.At > 0 {
			at = time.UnixMilli(record.At)
		}
		return err
	})
	return at, err
}

// Open returns the promise that a token opens. It returns ErrBadToken.
func (p *Promises) Open(ctx context.Context, token Token) (row layout.Row, err error) {
	err = p.cluster.View(ctx, func(tx kv.Attempt) error {
		row, err = p.opened(ctx, tx, &token)
		return err
	})
	return row, err
}

// opened reads the promise that a token opens. Whatever is wrong with a token, it reads the
// same.
func (p *Promises) opened(ctx context.Context, tx kv.Tx, token *Token) (layout.Row, error) {
	asked := read.Record(tx, p.cluster.Keys(), token.ID)
	record, err := p.record(ctx, tx, token.ID)
	if err != nil {
		return layout.Row{}, err
	}
	row, _, err := asked.Wait(ctx)
	if err != nil {
		return layout.Row{}, err
	}
	if !token.opens(&record) || row.Spec == nil || !row.Spec.IsPromise() {
		return layout.Row{}, ErrBadToken
	}
	return row, nil
}

func notPromise(id layout.ID) error {
	return fmt.Errorf("future %s: %w: what a worker runs completes itself", id, ErrNoPromise)
}

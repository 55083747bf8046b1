package futures

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/names"
)

// Names of the model for unique futures.
type (
	// Unique has a future be the only one with a key, or of a function and arguments:
	// until it ends, until a worker claims it, for a period, or for ever.
	Unique = fdbmodel.Unique
	// UniquePart is a part of a future that makes it unique.
	UniquePart = fdbmodel.UniquePart
	// Conflict says what becomes of a submit while another future has its place.
	Conflict = fdbmodel.Conflict
	// NotUniqueError says which other future there is, or which earlier task of the same call, and what
	// it has that differs.
	// Errors.Is holds for ErrNotUnique.
	NotUniqueError = fdbmodel.NotUniqueError
)

// What a future may be unique by, until when, and what becomes of a conflict.
const (
	UniqueFunction  = fdbmodel.UniqueFunction  // an alias counts as the module that it stands for
	UniqueQueue     = fdbmodel.UniqueQueue     // the queue
	UniqueArguments = fdbmodel.UniqueArguments // with their codec, argv, the environment and the inputs

	UntilEnd   = layout.UntilEnd   // until it is realized or has failed
	UntilClaim = layout.UntilClaim // until a worker claims it
	UntilEver  = layout.UntilEver  // for ever, even after it was removed

	ConflictRefuse  = fdbmodel.ConflictRefuse  // the submit returns a NotUniqueError
	ConflictReturn  = fdbmodel.ConflictReturn  // the submit returns the other future, also if it was removed
	ConflictReplace = fdbmodel.ConflictReplace // the other one is cancelled, if no worker has claimed it
)

// ErrNotUnique is returned by Submit and Retry when another future has the key of a
// unique one. Every NotUniqueError matches it.
var ErrNotUnique = fdbmodel.ErrNotUnique

// WithUnique has the future be the only one of its kind; see Task.Unique.
func WithUnique(u Unique) Option { return func(t *Task) { t.Unique = &u } }

// UniqueHolder returns the future that keeps a task like t from being submitted, as the
// error that Submit would return now. T needs Unique, and of the rest what makes it
// unique: nothing but the key, if that is all. It returns ErrNotFound if there is none.
func (c *Client) UniqueHolder(ctx context.Context, t Task) (*NotUniqueError, error) {
	name, err := c.uniqueName(ctx, &t)
	if err != nil {
		return nil, err
	}
	return names.Of(c.cluster).Holder(ctx, name)
}

// ReleaseUnique has the future that UniqueHolder returns give up what makes it unique,
// and returns it: a key that is kept for ever, or for a period, is free again. It
// returns ErrTransition if that future is not over, and ErrNotFound if there is none;
// after an unknown commit that may be because the release committed.
func (c *Client) ReleaseUnique(ctx context.Context, t Task) (*NotUniqueError, error) {
	name, err := c.uniqueName(ctx, &t)
	if err != nil {
		return nil, err
	}
	return names.Of(c.cluster).Release(ctx, name)
}

func (c *Client) uniqueName(ctx context.Context, t *Task) (layout.UniqueName, error) {
	if err := c.usable(); err != nil {
		return "", err
	}
	if t.Unique == nil {
		return "", fmt.Errorf("%w: the task does not say by what it is unique", layout.ErrBadSpec)
	}
	s, err := c.submission(ctx, t)
	if err != nil {
		return "", err
	}
	return names.Of(c.cluster).Of(ctx, s)
}

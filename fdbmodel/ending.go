package fdbmodel

import (
	"context"
	"errors"
	"math"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Load reads the large values that an ending refers to, so that its result and
// its failure are whole. It returns ErrNotFound for a value that was removed
// meanwhile. A standard error that was, which a retry does, is empty.
func (c *Cluster) Load(ctx context.Context, e *layout.Ending) error {
	return c.LoadUpTo(ctx, e, math.MaxInt64)
}

// LoadUpTo is Load without the value of a result that has more than most bytes, or
// that is an object: to look at a future is no reason to make a lost result again.
func (c *Cluster) LoadUpTo(ctx context.Context, e *layout.Ending, most int64) (err error) {
	if e.Result != nil {
		result := *e.Result
		apart := result.ValueRef != nil && result.ValueRef.Size <= most
		if apart || result.Object != "" && most == math.MaxInt64 {
			if result.Value, err = c.ResultValue(ctx, e.ID, &result); err != nil {
				return err
			}
			result.ValueRef, result.Object = nil, ""
		}
		if err := c.loadStderr(ctx, e.ID, &result.Stderr, &result.StderrRef); err != nil {
			return err
		}
		e.Result = &result
	}
	if e.Failure != nil {
		failure := *e.Failure
		if err := c.loadStderr(ctx, e.ID, &failure.Stderr, &failure.StderrRef); err != nil {
			return err
		}
		e.Failure = &failure
	}
	return nil
}

func (c *Cluster) loadStderr(ctx context.Context, id layout.ID, stderr *[]byte, ref **layout.ChunkRef) (err error) {
	if *stderr, err = c.Stderr(ctx, id, *stderr, *ref); errors.Is(err, ErrNotFound) {
		*stderr, err = nil, nil
	}
	*ref = nil
	return err
}

package results

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Store writes a large result of the attempt that holds token. It counts
// once a Completion of that token names the reference. An unknown commit is
// retried and harmless: only the holder of the token writes there. While the store
// can only be read, Store waits until ctx ends.
func (r *Results) Store(ctx context.Context, id layout.ID, token layout.Token, value []byte,
) (layout.ChunkRef, error) {
	ref := layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String()}
	return pieces.PutValue(ctx, fdbmodel.Patient{Cluster: r.cluster}, r.keys, id, ref, value)
}

// StoreStderr writes a long standard error stream of the attempt that holds
// token, as Store does.
func (r *Results) StoreStderr(ctx context.Context, id layout.ID, token layout.Token, value []byte,
) (layout.ChunkRef, error) {
	ref := layout.ChunkRef{Kind: layout.ChunkStderr, Token: token.String()}
	return pieces.PutValue(ctx, fdbmodel.Patient{Cluster: r.cluster}, r.keys, id, ref, value)
}

// Value returns a result's bytes, wherever they are stored. For an object it
// returns ErrLost, having reported the loss, and fdbmodel.ErrUnreachable.
func (r *Results) Value(ctx context.Context, id layout.ID, result *layout.Result) ([]byte, error) {
	switch {
	case result.Object != "":
		if result.Size < 0 || result.Size > layout.MaxPut {
			return nil, fmt.Errorf("%w: the result of future %s has %d bytes, and at most %d are read into memory: "+
				"open it as a stream", fdbmodel.ErrTooLarge, id, result.Size, layout.MaxPut)
		}
		open := r.Open(id, result)
		defer open.Close()
		value := make([]byte, result.Size)
		if err := open.ReadAt(ctx, value, 0); err != nil {
			return nil, err
		}
		return value, nil
	case result.ValueRef != nil:
		return pieces.ReadValue(ctx, r.cluster, r.keys, id, *result.ValueRef)
	}
	return result.Value, nil
}

// Stderr returns the last of an attempt's standard error, wherever it is
// stored.
func (r *Results) Stderr(ctx context.Context, id layout.ID, inline []byte, ref *layout.ChunkRef) ([]byte, error) {
	if ref != nil {
		return pieces.ReadValue(ctx, r.cluster, r.keys, id, *ref)
	}
	return inline, nil
}

// Load reads the large values that an ending refers to, so that its result and
// its failure are whole. It returns ErrNotFound for a value that was removed
// meanwhile. A standard error that was, which a retry does, is empty.
func (r *Results) Load(ctx context.Context, e *layout.Ending) error {
	return r.LoadUpTo(ctx, e, math.MaxInt64)
}

// LoadUpTo is Load without the value of a result that has more than most bytes, or
// that is an object: to look at a future is no reason to make a lost result again.
func (r *Results) LoadUpTo(ctx context.Context, e *layout.Ending, most int64) (err error) {
	if e.Result != nil {
		result := *e.Result
		apart := result.ValueRef != nil && result.ValueRef.Size <= most
		if apart || result.Object != "" && most == math.MaxInt64 {
			if result.Value, err = r.Value(ctx, e.ID, &result); err != nil {
				return err
			}
			result.ValueRef, result.Object = nil, ""
		}
		if err := r.loadStderr(ctx, e.ID, &result.Stderr, &result.StderrRef); err != nil {
			return err
		}
		e.Result = &result
	}
	if e.Failure != nil {
		failure := *e.Failure
		if err := r.loadStderr(ctx, e.ID, &failure.Stderr, &failure.StderrRef); err != nil {
			return err
		}
		e.Failure = &failure
	}
	return nil
}

func (r *Results) loadStderr(ctx context.Context, id layout.ID, stderr *[]byte, ref **layout.ChunkRef) (err error) {
	if *stderr, err = r.Stderr(ctx, id, *stderr, *ref); errors.Is(err, fdbmodel.ErrNotFound) {
		*stderr, err = nil, nil
	}
	*ref = nil
	return err
}

package fdbmodel

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// PutArgs writes arguments of up to MaxPut bytes for a future that is submitted
// later with the returned reference as Spec.ArgsRef. Without that submit they
// are swept after an hour. It returns ErrTooLarge. An unknown commit is retried
// and harmless: the keys of the pieces depend on their content only.
func (c *Cluster) PutArgs(ctx context.Context, id layout.ID, args []byte) (layout.ChunkRef, error) {
	ref := layout.ChunkRef{Kind: layout.ChunkArgs, Token: unique.ArgsToken(args)}
	return pieces.PutValue(ctx, c, c.keys, id, ref, args)
}

// putInputs writes a list of inputs that is too long for a spec.
func (c *Cluster) putInputs(ctx context.Context, id layout.ID, inputs []layout.ID) (layout.ChunkRef, error) {
	packed := layout.PackIDs(inputs)
	sum := sha256.Sum256(packed)
	ref := layout.ChunkRef{Kind: layout.ChunkInputs, Token: fmt.Sprintf("%x", sum[:16])}
	return pieces.PutValue(ctx, c, c.keys, id, ref, packed)
}

// Args returns a future's arguments, wherever they are stored.
func (c *Cluster) Args(ctx context.Context, id layout.ID, spec *layout.Spec) ([]byte, error) {
	switch {
	case spec.ArgsRef != nil:
		return pieces.ReadValue(ctx, c, c.keys, id, *spec.ArgsRef)
	case spec.ArgsKey:
		var args []byte
		err := c.View(ctx, func(tx kv.Attempt) error {
			var err error
			args, err = tx.Snapshot().Get(c.keys.Args(id)).Wait(ctx)
			if err == nil && args == nil {
				err = fmt.Errorf("%w: arguments of future %s", ErrNotFound, id)
			}
			return err
		})
		return args, err
	default:
		return spec.Args, nil
	}
}

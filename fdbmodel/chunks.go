package fdbmodel

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// PutArgs writes arguments of up to MaxPut bytes for a future that is submitted
// later with the returned reference as Spec.ArgsRef. Without that submit they
// are swept after an hour. It returns ErrTooLarge. An unknown commit is retried
// and harmless: the keys of the pieces depend on their content only.
func (c *Cluster) PutArgs(ctx context.Context, id layout.ID, args []byte) (layout.ChunkRef, error) {
	ref := layout.ChunkRef{Kind: layout.ChunkArgs, Token: argsToken(args)}
	return c.putChunks(ctx, id, ref, args)
}

// putInputs writes a list of inputs that is too long for a spec.
func (c *Cluster) putInputs(ctx context.Context, id layout.ID, inputs []layout.ID) (layout.ChunkRef, error) {
	packed := layout.PackIDs(inputs)
	sum := sha256.Sum256(packed)
	ref := layout.ChunkRef{Kind: layout.ChunkInputs, Token: fmt.Sprintf("%x", sum[:16])}
	return c.putChunks(ctx, id, ref, packed)
}

// PutResult writes a large result of the attempt that holds token. It counts
// once a Completion of that token names the reference. An unknown commit is
// retried and harmless: only the holder of the token writes there.
func (c *Cluster) PutResult(ctx context.Context, id layout.ID, token layout.Token, value []byte,
) (layout.ChunkRef, error) {
	return c.putChunks(ctx, id, layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String()}, value)
}

// PutStderr writes a long standard error stream of the attempt that holds
// token, as PutResult does.
func (c *Cluster) PutStderr(ctx context.Context, id layout.ID, token layout.Token, value []byte,
) (layout.ChunkRef, error) {
	return c.putChunks(ctx, id, layout.ChunkRef{Kind: layout.ChunkStderr, Token: token.String()}, value)
}

func (c *Cluster) putChunks(ctx context.Context, id layout.ID, ref layout.ChunkRef, value []byte,
) (layout.ChunkRef, error) {
	if len(value) > layout.MaxPut {
		return ref, fmt.Errorf("%w: %d bytes, at most %d: store the data elsewhere and pass where",
			ErrTooLarge, len(value), layout.MaxPut)
	}
	ref.Size, ref.Count = int64(len(value)), layout.Pieces(int64(len(value)))
	return ref, pieces.Put(ctx, c, value, func(i int) []byte { return c.keys.Chunk(id, ref, i) })
}

// readChunks returns a large value of a future. ErrNotFound says that the
// future was discarded meanwhile.
func (c *Cluster) readChunks(ctx context.Context, id layout.ID, ref layout.ChunkRef) ([]byte, error) {
	value, err := pieces.Read(ctx, c, ref.Size, func(i int) []byte { return c.keys.Chunk(id, ref, i) })
	if err != nil {
		err = fmt.Errorf("%s of future %s: %w", ref.Kind, id, err)
	}
	return value, err
}

// Args returns a future's arguments, wherever they are stored.
func (c *Cluster) Args(ctx context.Context, id layout.ID, spec *layout.Spec) ([]byte, error) {
	switch {
	case spec.ArgsRef != nil:
		return c.readChunks(ctx, id, *spec.ArgsRef)
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

// ResultValue returns a result's bytes, wherever they are stored. For an object it
// returns ErrLost and ErrUnreachable.
func (c *Cluster) ResultValue(ctx context.Context, id layout.ID, r *layout.Result) ([]byte, error) {
	switch {
	case r.Object != "":
		return c.objectValue(ctx, id, r)
	case r.ValueRef != nil:
		return c.readChunks(ctx, id, *r.ValueRef)
	}
	return r.Value, nil
}

// Stderr returns the last of an attempt's standard error, wherever it is
// stored.
func (c *Cluster) Stderr(ctx context.Context, id layout.ID, inline []byte, ref *layout.ChunkRef) ([]byte, error) {
	if ref != nil {
		return c.readChunks(ctx, id, *ref)
	}
	return inline, nil
}

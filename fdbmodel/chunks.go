package fdbmodel

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	chunksPerTx = 10 // pieces of one transaction
	readAhead   = 8  // pieces that are requested at once
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
	return ref, c.putPieces(ctx, value, func(i int) []byte { return c.keys.Chunk(id, ref, i) })
}

func (c *Cluster) putPieces(ctx context.Context, value []byte, key func(i int) []byte) error {
	count := layout.Pieces(int64(len(value)))
	for first := 0; first < count; first += chunksPerTx {
		_, err := c.Transact(ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
			for i := first; i < min(first+chunksPerTx, count); i++ {
				tx.Set(key(i), value[i*layout.ChunkSize:min((i+1)*layout.ChunkSize, len(value))])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readPieces reassembles a large value. A missing piece is ErrNotFound.
func (c *Cluster) readPieces(ctx context.Context, size int64, key func(i int) []byte) ([]byte, error) {
	if size < 0 || size > layout.MaxPut {
		return nil, fmt.Errorf("%w: reference to %d bytes", layout.ErrBadRecord, size)
	}
	value := make([]byte, size)
	if err := c.fillPieces(ctx, value, layout.Pieces(size), 0, key); err != nil {
		return nil, err
	}
	return value, nil
}

// readChunks returns a large value of a future. ErrNotFound says that the
// future was discarded meanwhile.
func (c *Cluster) readChunks(ctx context.Context, id layout.ID, ref layout.ChunkRef) ([]byte, error) {
	value, err := c.readPieces(ctx, ref.Size, func(i int) []byte { return c.keys.Chunk(id, ref, i) })
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

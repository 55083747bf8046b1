package fdbmodel

import (
	"context"
	"fmt"
	"io"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// maxLeftUploads is how many uploads of one future's results are looked at.
const maxLeftUploads = 8

// Resume writes to an upload that has nothing yet what another claim of the future has left
// of a large result: as many pieces as it stored, if these may be the beginning of a value
// of size bytes, and of several the longest. It returns how many bytes those are. Nothing
// says that they are of the same value, so the caller compares a hash of the whole, and
// calls Rewind if that differs. What was left stays for SweepChunks. The errors are those of
// Write and of reads; after one, Written says how much counts. It costs two reads for each
// of up to eight such uploads, one where there are none, and beyond that what copying takes.
func (u *ResultUpload) Resume(ctx context.Context, size int64) (int64, error) {
	if n := u.Written(); n > 0 {
		return 0, fmt.Errorf("%s: %d bytes are written already: resume before the first Write", ofResult(u.id), n)
	}
	left, err := u.left(ctx, min(size, layout.MaxPut))
	if err != nil || left.Size == 0 {
		return 0, err
	}
	key := func(i int) []byte { return u.cluster.keys.Chunk(u.id, left, i) }
	return io.Copy(&u.Upload, pieces.Stored(u.cluster, ofResult(u.id), left.Size, key).Reader(ctx))
}

// left returns the longest beginning of a result of size bytes that is stored, of no bytes
// if there is none.
func (u *ResultUpload) left(ctx context.Context, size int64) (longest layout.ChunkRef, err error) {
	err = u.cluster.View(ctx, func(tx kv.Attempt) error {
		longest = layout.ChunkRef{}
		return u.cluster.uploads(ctx, tx, u.id, func(one layout.ChunkRef, whole bool) {
			if (whole || one.Size == size) && one.Size <= size && one.Size > longest.Size {
				longest = one
			}
		})
	})
	return longest, err
}

// uploads visits the results of a future that are stored from their first piece on, some if
// there are many. whole tells that the last piece has a piece's size.
func (c *Cluster) uploads(ctx context.Context, tx kv.Attempt, id layout.ID, visit func(one layout.ChunkRef, whole bool),
) error {
	kind := tuple.AppendString(c.keys.ChunksOfFuture(id), layout.ChunkResult)
	all := kv.Prefix(kind)
	for range maxLeftUploads {
		first, _, err := pieceAt(ctx, tx, all, kind, false)
		if err != nil || first.Token == "" {
			return err
		}
		stored := kv.Prefix(c.keys.Chunks(id, first))
		one, whole, err := pieceAt(ctx, tx, stored, kind, true)
		if err != nil {
			return err
		}
		if first.Count == 1 {
			visit(one, whole)
		}
		all.Begin = stored.End
	}
	return nil
}

// isHolders reports whether a value belongs to the claim of a future.
func isHolders(row *layout.Row, ref layout.ChunkRef) bool {
	return row.State() == layout.Claimed && row.Claim.Token.String() == ref.Token
}

// isLeft reports whether a value is what an attempt of a future has left for the next one.
func isLeft(row *layout.Row, ref layout.ChunkRef) bool {
	ending := row.Ending()
	return row.Spec != nil && ref.Kind == layout.ChunkResult && !ending.Over() && !isHolders(row, ref)
}

// isSurplus reports whether a value that was left is of no use, since another one that is
// stored has as much, or since it has no beginning.
func (c *Cluster) isSurplus(ctx context.Context, tx kv.Attempt, row *layout.Row, ref layout.ChunkRef) (bool, error) {
	if !isLeft(row, ref) {
		return false, nil
	}
	var longest layout.ChunkRef
	err := c.uploads(ctx, tx, row.ID, func(one layout.ChunkRef, _ bool) {
		if one.Size > longest.Size || one.Size == longest.Size && isHolders(row, one) {
			longest = one
		}
	})
	return longest.Token != ref.Token, err
}

// pieceAt returns the first or last piece of a range of results, as a reference to all up to
// it, which has no token if there is none, and whether it has a piece's size.
func pieceAt(ctx context.Context, tx kv.Attempt, r kv.Range, kind []byte, last bool) (ref layout.ChunkRef, whole bool,
	err error,
) {
	page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1, Reverse: last}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return ref, false, err
	}
	key := page.Items[0].Key
	rest := tuple.NewReader(key[len(kind):])
	token, i := rest.Text(), rest.Int()
	if err := rest.Err(); err != nil || i < 0 || i >= int64(layout.Pieces(layout.MaxPut)) {
		return ref, false, fmt.Errorf("%s: %w: no piece of a result", tuple.String(key), layout.ErrBadRecord)
	}
	n := len(page.Items[0].Value)
	ref = layout.ChunkRef{Kind: layout.ChunkResult, Token: token, Size: i*layout.ChunkSize + int64(n), Count: int(i) + 1}
	return ref, n == layout.ChunkSize, nil
}

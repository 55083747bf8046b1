package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

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
	err := pieces.EachResult(ctx, tx.Snapshot(), c.keys, row.ID, func(one layout.ChunkRef, _ bool) {
		if one.Size > longest.Size || one.Size == longest.Size && isHolders(row, one) {
			longest = one
		}
	})
	return longest.Token != ref.Token, err
}

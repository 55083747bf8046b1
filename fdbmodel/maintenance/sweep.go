package maintenance

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// orphanAge is how old a future's id must be before chunks without a future
// are swept: large arguments are written before their future is.
const orphanAge = time.Hour

// SweepChunks removes chunks of a shard that no record refers to: arguments
// that were written ahead of a submit that never came, and results of attempts
// that lost their claim. Of these the longest stays as long as the future is not
// over, for Resume, unless the claim has as much. It examines the chunks of one
// future after cursor and returns the next cursor, nil at the end. A key that
// can't be read stays and does not hold up the others. An unknown commit is retried and harmless.
func (j Janitor) SweepChunks(ctx context.Context, shard int, cursor []byte) (next []byte, removed int, err error) {
	prefix := j.keys.ChunksOf(shard)
	r := kv.Prefix(prefix)
	if cursor != nil {
		r.Begin = cursor
	}
	_, err = j.cluster.Transact(ctx, kv.Options{Tag: "futura-sweep", NoSync: true}, func(tx kv.Attempt) error {
		next, removed = nil, 0
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		rest := tuple.NewReader(page.Items[0].Key[len(prefix):])
		id := layout.ID(rest.UUID())
		ref := layout.ChunkRef{Kind: rest.Text(), Token: rest.Text()}
		if rest.Err() != nil { // an audit reports it
			next = kv.After(page.Items[0].Key)
			return nil
		}
		pieces := kv.Prefix(j.keys.Chunks(id, ref))
		next = pieces.End
		row, _, err := read.Record(tx, j.keys, id).Wait(ctx)
		if layout.IsUnreadable(err) {
			return nil
		}
		if err != nil {
			return err
		}
		referred := row.RefersTo(ref)
		if ref.Kind == layout.ChunkStep && row.Steps {
			if referred, err = step.IsReferred(tx, step.Keys(j.keys), id, ref)(ctx); err != nil {
				return err
			}
		}
		if referred || j.MayRefer(&row, ref) {
			if surplus, err := j.isSurplus(ctx, tx, &row, ref); err != nil || !surplus {
				return err
			}
		}
		tx.ClearRange(pieces)
		removed = 1
		return nil
	})
	return next, removed, err
}

// MayRefer reports whether a record may yet refer to a chunk.
func (j Janitor) MayRefer(row *layout.Row, ref layout.ChunkRef) bool {
	if row.Spec != nil && ref.Kind != layout.ChunkArgs && ref.Kind != layout.ChunkInputs {
		return isHolders(row, ref) || isLeft(row, ref)
	}
	drawn := row.ID.Time() // of values that are put, results too are written ahead
	return row.Spec == nil && !drawn.IsZero() && j.cluster.Now().Sub(drawn) < orphanAge
}

// isHolders reports whether a value belongs to the claim of a future.
func isHolders(row *layout.Row, ref layout.ChunkRef) bool {
	claim := ref.Token
	if ref.Kind == layout.ChunkStep {
		_, claim = step.NameIn(ref)
	}
	return row.State() == layout.Claimed && row.Claim.Token.String() == claim
}

// isLeft reports whether a value is what an attempt of a future has left for the next one.
func isLeft(row *layout.Row, ref layout.ChunkRef) bool {
	ending := row.Ending()
	return row.Spec != nil && ref.Kind == layout.ChunkResult && !ending.Over() && !isHolders(row, ref)
}

// isSurplus reports whether a value that was left is of no use, since another one that is
// stored has as much, or since it has no beginning.
func (j Janitor) isSurplus(ctx context.Context, tx kv.Attempt, row *layout.Row, ref layout.ChunkRef) (bool, error) {
	if !isLeft(row, ref) {
		return false, nil
	}
	var longest layout.ChunkRef
	err := pieces.EachResult(ctx, tx.Snapshot(), j.keys, row.ID, func(one layout.ChunkRef, _ bool) {
		if one.Size > longest.Size || one.Size == longest.Size && isHolders(row, one) {
			longest = one
		}
	})
	return longest.Token != ref.Token, err
}

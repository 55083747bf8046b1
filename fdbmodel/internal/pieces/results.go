package pieces

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// maxResults is how many results of one future are looked at.
const maxResults = 8

// EachResult visits the results of a future that are stored from their first piece on, some if
// there are many. whole tells that the last piece has a piece's size. It costs two reads for
// each of up to eight, and one where there are none.
func EachResult(ctx context.Context, tx kv.Reader, k layout.Keyspace, id layout.ID,
	visit func(one layout.ChunkRef, whole bool),
) error {
	kind := tuple.AppendString(k.ChunksOfFuture(id), layout.ChunkResult)
	all := kv.Prefix(kind)
	for range maxResults {
		first, _, err := pieceAt(ctx, tx, all, kind, false)
		if err != nil || first.Token == "" {
			return err
		}
		stored := kv.Prefix(k.Chunks(id, first))
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

// pieceAt returns the first or last piece of a range of results, as a reference to all up to
// it, which has no token if there is none, and whether it has a piece's size.
func pieceAt(ctx context.Context, tx kv.Reader, r kv.Range, kind []byte, last bool) (ref layout.ChunkRef, whole bool,
	err error,
) {
	page, err := tx.GetRange(r, kv.RangeOptions{Limit: 1, Reverse: last}).Wait(ctx)
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

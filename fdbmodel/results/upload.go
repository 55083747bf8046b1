package results

import (
	"context"
	"fmt"
	"io"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Upload begins a large result of the attempt that holds token, which Store
// writes all at once. It is written until ctx ends. What was written counts once a
// Completion of that token names End's reference. Once the claim has ended without, the next
// one may Resume it, and it is swept at the end of the future at the latest. An unknown
// commit is retried and harmless: only the holder of the token writes there. A later upload
// of the attempt replaces the one before. While the store can only be read, its calls wait.
func (r *Results) Upload(ctx context.Context, id layout.ID, token layout.Token) *Upload {
	ref := layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String()}
	key := func(i int) []byte { return r.keys.Chunk(id, ref, i) }
	return &Upload{results: r, id: id, ref: ref,
		Upload: pieces.NewUpload(ctx, fdbmodel.Patient{Cluster: r.cluster}, ofResult(id), layout.MaxPut, key)}
}

func ofResult(id layout.ID) string { return "result of future " + id.String() }

// Upload is a large result that is stored as it is written.
type Upload struct {
	pieces.Upload
	results *Results
	id      layout.ID
	ref     layout.ChunkRef
}

// End stores the rest, and returns the reference to the whole. It may be called again
// after an error, which is that of Write. After it nothing may be written.
func (u *Upload) End() (layout.ChunkRef, error) {
	u.ref.Size, u.ref.Count = u.Written(), layout.Pieces(u.Written())
	return u.ref, u.Flush()
}

// Resume writes to an upload that has nothing yet what another claim of the future has left
// of a large result: as many pieces as it stored, if these may be the beginning of a value
// of size bytes, and of several the longest. It returns how many bytes those are. Nothing
// says that they are of the same value, so the caller compares a hash of the whole, and
// calls Rewind if that differs. What was left stays for SweepChunks. The errors are those of
// Write and of reads; after one, Written says how much counts. It costs two reads for each
// of up to eight such uploads, one where there are none, and beyond that what copying takes.
func (u *Upload) Resume(ctx context.Context, size int64) (int64, error) {
	if n := u.Written(); n > 0 {
		return 0, fmt.Errorf("%s: %d bytes are written already: resume before the first Write", ofResult(u.id), n)
	}
	left, err := u.left(ctx, min(size, layout.MaxPut))
	if err != nil || left.Size == 0 {
		return 0, err
	}
	key := func(i int) []byte { return u.results.keys.Chunk(u.id, left, i) }
	return io.Copy(&u.Upload, pieces.Stored(u.results.cluster, ofResult(u.id), left.Size, key).Reader(ctx))
}

// left returns the longest beginning of a result of size bytes that is stored, of no bytes
// if there is none.
func (u *Upload) left(ctx context.Context, size int64) (longest layout.ChunkRef, err error) {
	err = u.results.cluster.View(ctx, func(tx kv.Attempt) error {
		longest = layout.ChunkRef{}
		return pieces.EachResult(ctx, tx.Snapshot(), u.results.keys, u.id, func(one layout.ChunkRef, whole bool) {
			if (whole || one.Size == size) && one.Size <= size && one.Size > longest.Size {
				longest = one
			}
		})
	})
	return longest, err
}

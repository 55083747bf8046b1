package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Upload is a large value that is stored as it is written.
type Upload = pieces.Upload

// UploadResult begins a large result of the attempt that holds token, which PutResult
// writes all at once. It is written until ctx ends. What was written counts once a
// Completion of that token names End's reference. Once the claim has ended without, the next
// one may Resume it, and it is swept at the end of the future at the latest. An unknown
// commit is retried and harmless: only the holder of the token writes there. A later upload
// of the attempt replaces the one before.
func (c *Cluster) UploadResult(ctx context.Context, id layout.ID, token layout.Token) *ResultUpload {
	ref := layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String()}
	key := func(i int) []byte { return c.keys.Chunk(id, ref, i) }
	return &ResultUpload{cluster: c, id: id, ref: ref,
		Upload: pieces.NewUpload(ctx, c, ofResult(id), layout.MaxPut, key)}
}

func ofResult(id layout.ID) string { return "result of future " + id.String() }

// ResultUpload is the upload of a result.
type ResultUpload struct {
	Upload
	cluster *Cluster
	id      layout.ID
	ref     layout.ChunkRef
}

// End stores the rest, and returns the reference to the whole. It may be called again
// after an error, which is that of Write. After it nothing may be written.
func (u *ResultUpload) End() (layout.ChunkRef, error) {
	u.ref.Size, u.ref.Count = u.Written(), layout.Pieces(u.Written())
	return u.ref, u.Flush()
}

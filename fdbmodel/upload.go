package fdbmodel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// uploadMemory is the most of an upload that is in memory: one transaction.
const uploadMemory = chunksPerTx * layout.ChunkSize

// Upload is a large value that is stored as it is written, so that less than 1 MB of it
// is in memory. One goroutine uses it.
type Upload struct {
	cluster *Cluster
	ctx     context.Context
	key     func(piece int) []byte
	of      string
	most    int64
	size    int64
	tail    []byte // of size, what is not stored yet
}

// UploadResult begins a large result of the attempt that holds token, which PutResult
// writes all at once. It is written until ctx ends. What was written counts once a
// Completion of that token names End's reference. Once the claim has ended without, the next
// one may Resume it, and it is swept at the end of the future at the latest. An unknown
// commit is retried and harmless: only the holder of the token writes there. A later upload
// of the attempt replaces the one before.
func (c *Cluster) UploadResult(ctx context.Context, id layout.ID, token layout.Token) *ResultUpload {
	ref := layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String()}
	return &ResultUpload{id: id, ref: ref, Upload: Upload{cluster: c, ctx: ctx, most: layout.MaxPut,
		of:  "result of future " + id.String(),
		key: func(i int) []byte { return c.keys.Chunk(id, ref, i) }}}
}

// ResultUpload is the upload of a result.
type ResultUpload struct {
	Upload
	id  layout.ID
	ref layout.ChunkRef
}

// End stores the rest, and returns the reference to the whole. It may be called again
// after an error, which is that of Write. After it nothing may be written.
func (u *ResultUpload) End() (layout.ChunkRef, error) {
	u.ref.Size, u.ref.Count = u.size, layout.Pieces(u.size)
	return u.ref, u.flush()
}

// Drop removes what is stored of a result that nobody is to have, rather than leave it to
// be swept. After it nothing may be written. An unknown commit is retried and harmless.
func (u *ResultUpload) Drop() error {
	stored := layout.Pieces(u.size - int64(len(u.tail)))
	u.tail = nil
	if stored == 0 {
		return nil
	}
	_, err := u.cluster.Transact(u.ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
		tx.ClearRange(kv.Range{Begin: u.key(0), End: u.key(stored)})
		return nil
	})
	return err
}

// UploadModule begins a module, which PutModule stores all at once, by its content id. It
// is written until ctx ends. Only End finds out whether the bytes are those of the id, so
// this is for a cluster whose modules one process stores; another one's End might count
// bytes that are not verified.
func (c *Cluster) UploadModule(ctx context.Context, cid string) *ModuleUpload {
	return &ModuleUpload{cid: cid, hash: sha256.New(), Upload: Upload{cluster: c, ctx: ctx, most: MaxModule,
		of: "module " + cid, key: func(i int) []byte { return c.keys.CodeBody(cid, i) }}}
}

// ModuleUpload is the upload of a module.
type ModuleUpload struct {
	Upload
	cid  string
	hash hash.Hash
}

// Write implements io.Writer, as Upload does.
func (u *ModuleUpload) Write(p []byte) (int, error) {
	n, err := u.Upload.Write(p)
	_, _ = u.hash.Write(p[:n]) // never fails
	return n, err
}

// End stores the rest, and makes what was written a module of the cluster. It returns
// layout.ErrBadRecord, and stores nothing, if the bytes have another content id, and
// ErrNotFound if RemoveModule has removed some meanwhile. An unknown commit is retried and
// harmless.
func (u *ModuleUpload) End() (layout.Module, error) {
	c := u.cluster
	info := layout.Module{CID: u.cid, Size: u.size, StoredAt: layout.Millis(c.clock.Now())}
	if found := cidOf([sha256.Size]byte(u.hash.Sum(nil))); found != u.cid || u.size == 0 {
		return info, fmt.Errorf("%s: %w: its %d bytes have the id %s", u.of, layout.ErrBadRecord, u.size, found)
	}
	if err := u.flush(); err != nil {
		return info, err
	}
	removed, err := c.putInfo(u.ctx, info, "")
	if err == nil && removed {
		err = fmt.Errorf("%s: %w: it was removed meanwhile: upload it again", u.of, ErrNotFound)
	}
	return info, err
}

// Write implements io.Writer. It returns ErrTooLarge, with nothing written, beyond MaxPut
// bytes, and the error of the store or of the upload's context. After an error Written
// says how much counts; a later Write goes on there.
func (u *Upload) Write(p []byte) (n int, err error) {
	if int64(len(p)) > u.most-u.size {
		return 0, fmt.Errorf("%w: %s: more than %d bytes", ErrTooLarge, u.of, u.most)
	}
	for len(p) > 0 {
		if len(u.tail) == uploadMemory {
			if err := u.flush(); err != nil {
				return n, err
			}
		}
		part := p[:min(len(p), uploadMemory-len(u.tail))]
		if need := len(u.tail) + len(part); need > cap(u.tail) {
			u.tail = append(make([]byte, 0, min(max(need, 2*cap(u.tail)), uploadMemory)), u.tail...)
		}
		u.tail = append(u.tail, part...)
		u.size += int64(len(part))
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// flush stores what is in memory. It may be called again after an error.
func (u *Upload) flush() error {
	if len(u.tail) == 0 {
		return nil
	}
	first := int((u.size - int64(len(u.tail))) / layout.ChunkSize)
	_, err := u.cluster.Transact(u.ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
		// The late twin of an attempt can't undo what a later upload writes there.
		tx.AddReadConflictKey(u.key(first))
		for i := range layout.Pieces(int64(len(u.tail))) {
			tx.Set(u.key(first+i), u.tail[i*layout.ChunkSize:min((i+1)*layout.ChunkSize, len(u.tail))])
		}
		return nil
	})
	if err == nil {
		u.tail = u.tail[:0]
	}
	return err
}

// Written is how many bytes the upload has.
func (u *Upload) Written() int64 { return u.size }

// Reader returns what is written so far, which it reads from the store but for the end,
// until ctx ends. It is of no use after the next Write. Pieces that were swept, or that a
// later upload replaces, end it with ErrNotFound, or layout.ErrBadRecord.
func (u *Upload) Reader(ctx context.Context) io.Reader { return &uploadReader{ctx: ctx, upload: u} }

// uploadReader reads an upload.
type uploadReader struct {
	ctx    context.Context
	upload *Upload
	at     int64
	piece  []byte // the rest of what was read last
}

// Read implements io.Reader.
func (r *uploadReader) Read(p []byte) (int, error) {
	u := r.upload
	stored := u.size - int64(len(u.tail))
	switch {
	case len(r.piece) > 0:
	case r.at < stored:
		r.piece = make([]byte, min(readAhead*layout.ChunkSize, stored-r.at))
		first := int(r.at / layout.ChunkSize)
		if err := u.cluster.fillPieces(r.ctx, r.piece, layout.Pieces(stored), first, u.key); err != nil {
			r.piece = nil
			return 0, fmt.Errorf("%s: %w", u.of, err)
		}
	case r.at < u.size:
		r.piece = u.tail[r.at-stored:]
	default:
		return 0, io.EOF
	}
	n := copy(p, r.piece)
	r.piece, r.at = r.piece[n:], r.at+int64(n)
	return n, nil
}

package pieces

import (
	"context"
	"fmt"
	"io"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// uploadMemory is the most of an upload that is in memory: one transaction.
const uploadMemory = perTx * layout.ChunkSize

// Upload is a large value that is stored as it is written, so that less than 1 MB of it
// is in memory. One goroutine uses it.
type Upload struct {
	store Store
	ctx   context.Context
	of    string
	most  int64
	key   func(piece int) []byte
	size  int64
	tail  []byte // of size, what is not stored yet
}

// NewUpload begins an upload of at most so many bytes, which is written until ctx ends. key is
// that of a piece, and of names it in errors.
func NewUpload(ctx context.Context, s Store, of string, most int64, key func(piece int) []byte) Upload {
	return Upload{store: s, ctx: ctx, of: of, most: most, key: key}
}

// Stored returns an upload of which size bytes are stored, to be read.
func Stored(s Store, of string, size int64, key func(piece int) []byte) *Upload {
	return &Upload{store: s, of: of, size: size, key: key}
}

// Rewind forgets what was written: the next Write is the first one, and replaces it.
func (u *Upload) Rewind() { u.size, u.tail = 0, u.tail[:0] }

// Write implements io.Writer. It returns layout.ErrTooLarge, with nothing written, beyond the
// most bytes, and the error of the store or of the upload's context. After an error Written
// says how much counts; a later Write goes on there.
func (u *Upload) Write(p []byte) (n int, err error) {
	if int64(len(p)) > u.most-u.size {
		return 0, fmt.Errorf("%w: %s: more than %d bytes", layout.ErrTooLarge, u.of, u.most)
	}
	for len(p) > 0 {
		if len(u.tail) == uploadMemory {
			if err := u.Flush(); err != nil {
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

// Flush stores what is in memory. It may be called again after an error.
func (u *Upload) Flush() error {
	if len(u.tail) == 0 {
		return nil
	}
	first := int((u.size - int64(len(u.tail))) / layout.ChunkSize)
	_, err := u.store.Transact(u.ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
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
// later upload replaces, end it with layout.ErrNotFound, or layout.ErrBadRecord.
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
		if err := Fill(r.ctx, u.store, r.piece, layout.Pieces(stored), first, u.key); err != nil {
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

// Drop removes what is stored, rather than leave it to be swept. After it nothing may be
// written. An unknown commit is retried and harmless.
func (u *Upload) Drop() error {
	stored := layout.Pieces(u.size - int64(len(u.tail)))
	u.tail = nil
	if stored == 0 {
		return nil
	}
	_, err := u.store.Transact(u.ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
		tx.ClearRange(kv.Range{Begin: u.key(0), End: u.key(stored)})
		return nil
	})
	return err
}

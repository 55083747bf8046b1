package modules

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Upload begins a module, which Put stores all at once, by its content id. It
// is written until ctx ends. Only End finds out whether the bytes are those of the id, so
// this is for a cluster whose modules one process stores; another one's End might count
// bytes that are not verified.
func (s *Modules) Upload(ctx context.Context, cid string) *Upload {
	key := func(i int) []byte { return s.keys.ModulePiece(cid, i) }
	return &Upload{modules: s, ctx: ctx, cid: cid, hash: sha256.New(),
		Upload: pieces.NewUpload(ctx, s.cluster, "module "+cid, MaxSize, key)}
}

// Upload is the upload of a module.
type Upload struct {
	pieces.Upload
	modules *Modules
	ctx     context.Context
	cid     string
	hash    hash.Hash
}

// Write implements io.Writer, as Upload does.
func (u *Upload) Write(p []byte) (int, error) {
	n, err := u.Upload.Write(p)
	_, _ = u.hash.Write(p[:n]) // never fails
	return n, err
}

// End stores the rest, and makes what was written a module of the cluster. It returns
// layout.ErrBadRecord, and stores nothing, if the bytes have another content id, and
// fdbmodel.ErrNotFound if Remove has removed some meanwhile. An unknown commit is retried and
// harmless.
func (u *Upload) End() (layout.Module, error) {
	info := layout.Module{CID: u.cid, Size: u.Written(), StoredAt: layout.Millis(u.modules.cluster.Now())}
	if found := cidOf([sha256.Size]byte(u.hash.Sum(nil))); found != u.cid || u.Written() == 0 {
		return info, fmt.Errorf("module %s: %w: its %d bytes have the id %s", u.cid, layout.ErrBadRecord, u.Written(),
			found)
	}
	if err := u.Flush(); err != nil {
		return info, err
	}
	removed, err := u.modules.putInfo(u.ctx, info, "")
	if err == nil && removed {
		err = fmt.Errorf("module %s: %w: it was removed meanwhile: upload it again", u.cid, fdbmodel.ErrNotFound)
	}
	return info, err
}

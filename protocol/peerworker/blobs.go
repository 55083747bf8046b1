package peerworker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// blobs are the results that heads fetch by their content ids, until they have
// acknowledged them.
type blobs struct {
	worker *Worker
	mu     sync.Mutex
	known  map[blobName][]blobSource // equal results of several futures
}

// blobName is a content id, with the head that may fetch it.
type blobName struct{ head, id string }

type blobSource struct {
	future layout.ID
	result layout.Result
	value  []byte // of a result that is in memory, nil for others
}

func newBlobs(w *Worker) *blobs { return &blobs{worker: w, known: map[blobName][]blobSource{}} }

// add makes a result known by its content id.
func (b *blobs) add(ctx context.Context, head string, id layout.ID, r *layout.Result) (cid string, err error) {
	content := newBlob(ctx, b.worker.node.cluster.OpenResult(id, r))
	defer content.reader.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", err
	}
	name := blobName{head, p2p.BlobID([sha256.Size]byte(hash.Sum(nil)))}
	b.drop(name, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[name] = append(b.known[name], blobSource{future: id, result: *r})
	return name.id, nil
}

// hold makes a result that is in memory known by its content id.
func (b *blobs) hold(head string, id layout.ID, value []byte) *protocol.Blob {
	name := blobName{head, p2p.BlobID(sha256.Sum256(value))}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[name] = append(b.known[name], blobSource{future: id, value: value})
	return &protocol.Blob{ID: name.id, Size: int64(len(value))}
}

// heldBlob is a blob in memory.
type heldBlob struct{ *bytes.Reader }

// Close implements io.Closer.
func (heldBlob) Close() error { return nil }

// drop says that a future's result is not fetched any more.
func (b *blobs) drop(name blobName, future layout.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.known[name], func(s blobSource) bool { return s.future == future })
	if b.known[name] = left; len(left) == 0 {
		delete(b.known, name)
	}
}

// open opens a blob for the head that it is for.
func (b *blobs) open(ctx context.Context, head, id string) (io.ReadSeekCloser, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sources := b.known[blobName{head, id}]
	if len(sources) == 0 {
		return nil, 0, ErrNoBlob
	}
	last := sources[len(sources)-1]
	if last.value != nil {
		return heldBlob{bytes.NewReader(last.value)}, int64(len(last.value)), nil
	}
	reader := b.worker.node.cluster.OpenResult(last.future, &last.result)
	return newBlob(ctx, reader), reader.Size(), nil
}

// blob is the content of a result, of which one piece is in memory. One goroutine
// uses it.
type blob struct {
	ctx    context.Context
	reader *fdbmodel.ResultReader
	at     int64
	piece  []byte
	from   int64 // where piece begins
}

// blobPiece is about how much is read at a time.
const blobPiece = 512 << 10

func newBlob(ctx context.Context, r *fdbmodel.ResultReader) *blob {
	return &blob{ctx: ctx, reader: r, piece: make([]byte, 0, r.Unit()*max(1, blobPiece/r.Unit()))}
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	if b.at >= b.reader.Size() {
		return 0, io.EOF
	}
	if b.at < b.from || b.at >= b.from+int64(len(b.piece)) {
		b.from = b.at / b.reader.Unit() * b.reader.Unit()
		b.piece = b.piece[:min(int64(cap(b.piece)), b.reader.Size()-b.from)]
		if err := b.reader.ReadAt(b.ctx, b.piece, b.from); err != nil {
			b.piece = b.piece[:0]
			return 0, err
		}
	}
	n := copy(p, b.piece[b.at-b.from:])
	b.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (b *blob) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.reader.Size()
	}
	if offset < 0 {
		return b.at, fmt.Errorf("a blob from byte %d on", offset)
	}
	b.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (b *blob) Close() error {
	b.reader.Close()
	return nil
}

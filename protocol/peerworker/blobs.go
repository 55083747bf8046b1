package peerworker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
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
	spool  *spool // of one that is in a file, nil for others
}

func newBlobs(w *Worker) *blobs { return &blobs{worker: w, known: map[blobName][]blobSource{}} }

// add makes a result known by its content id.
func (b *blobs) add(ctx context.Context, head string, id layout.ID, r *layout.Result) (cid string, err error) {
	content := newBlob(ctx, results.Of(b.worker.node.cluster).Open(id, r))
	defer content.close()
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

// hold makes a result that is no record known by its content id. It is in value, or was
// written to a spool. A value goes to one too, if there is room for one.
func (b *blobs) hold(head string, id layout.ID, value []byte, at *spool) *protocol.Blob {
	if at == nil {
		at = spooled(value)
	}
	size, hash := int64(len(value)), sha256.Sum256(value)
	if at != nil {
		size, hash, value = at.size, at.sum(), nil
	}
	name := blobName{head, p2p.BlobID(hash)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[name] = append(b.known[name], blobSource{future: id, value: value, spool: at})
	return &protocol.Blob{ID: name.id, Size: size}
}

// drop says that a future's result is not fetched any more.
func (b *blobs) drop(name blobName, future layout.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.known[name], func(s blobSource) bool {
		if s.future == future && s.spool != nil {
			s.spool.close()
		}
		return s.future == future
	})
	if b.known[name] = left; len(left) == 0 {
		delete(b.known, name)
	}
}

// open opens a blob for the head that it is for.
func (b *blobs) open(ctx context.Context, head, id string) (io.ReadSeekCloser, int64, error) {
	b.mu.Lock()
	sources := b.known[blobName{head, id}]
	b.mu.Unlock()
	if len(sources) == 0 {
		return nil, 0, ErrNoBlob
	}
	var opened *blob
	switch last := sources[len(sources)-1]; {
	case last.spool != nil:
		opened = &blob{ReadSeeker: last.spool.reader(), size: last.spool.size}
	case last.value != nil:
		opened = &blob{ReadSeeker: bytes.NewReader(last.value), size: int64(len(last.value))}
	default:
		opened = newBlob(ctx, results.Of(b.worker.node.cluster).Open(last.future, &last.result))
	}
	opened.report = b.worker.transferring(TransferResult, blobName{head, id})
	return opened, opened.size, nil
}

// blob is the content of a result.
type blob struct {
	io.ReadSeeker
	size  int64
	close func()
	// report, if it is not nil, is told of each mebibyte, and of the end.
	report         func(done, total int64)
	done, reported int64
}

func newBlob(ctx context.Context, r *results.Reader) *blob {
	return &blob{ReadSeeker: results.NewSeeker(ctx, r), size: r.Size(), close: r.Close}
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	n, err := b.ReadSeeker.Read(p)
	b.done += int64(n)
	if b.report != nil && (b.done-b.reported >= 1<<20 || b.done == b.size && b.reported < b.done) {
		b.reported = b.done
		b.report(b.done, b.size)
	}
	return n, err
}

// Seek implements io.Seeker.
func (b *blob) Seek(offset int64, whence int) (at int64, err error) {
	at, err = b.ReadSeeker.Seek(offset, whence)
	b.done, b.reported = at, at
	return at, err
}

// Close implements io.Closer.
func (b *blob) Close() error {
	if b.close != nil {
		b.close()
	}
	return nil
}

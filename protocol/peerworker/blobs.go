package peerworker

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"sync"

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

// blobSource is a result that is in a file, or in memory if there was no room for one.
type blobSource struct {
	item  layout.ID
	spool *spool
	value []byte
}

// content is the whole result.
func (s *blobSource) content() *io.SectionReader {
	if s.spool != nil {
		return s.spool.reader()
	}
	return io.NewSectionReader(bytes.NewReader(s.value), 0, int64(len(s.value)))
}

func newBlobs(w *Worker) *blobs { return &blobs{worker: w, known: map[blobName][]blobSource{}} }

// hold makes a result known by its content id. It is in value, or was written to a spool. A value
// goes to one too, if there is room for one.
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
	b.known[name] = append(b.known[name], blobSource{item: id, value: value, spool: at})
	return &protocol.Blob{ID: name.id, Size: size}
}

// drop says that an item's result is not fetched any more.
func (b *blobs) drop(name blobName, item layout.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.known[name], func(s blobSource) bool {
		if s.item == item && s.spool != nil {
			s.spool.close()
		}
		return s.item == item
	})
	if b.known[name] = left; len(left) == 0 {
		delete(b.known, name)
	}
}

// close ends the use of all results.
func (b *blobs) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sources := range b.known {
		for _, s := range sources {
			if s.spool != nil {
				s.spool.close()
			}
		}
	}
	clear(b.known)
}

// last returns where a blob is, nil if it is not here.
func (b *blobs) last(name blobName) *blobSource {
	b.mu.Lock()
	defer b.mu.Unlock()
	sources := b.known[name]
	if len(sources) == 0 {
		return nil
	}
	last := sources[len(sources)-1]
	return &last
}

// find returns the blob of an item, nil if it is not here. Equal ones of others may go earlier.
func (b *blobs) find(name blobName, item layout.ID) *blobSource {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.known[name] {
		if s.item == item {
			return &s
		}
	}
	return nil
}

// open opens a blob for the head that it is for.
func (b *blobs) open(head, id string) (io.ReadSeekCloser, int64, error) {
	name := blobName{head, id}
	found := b.last(name)
	if found == nil {
		return nil, 0, ErrNoBlob
	}
	content := found.content()
	return &blob{ReadSeeker: content, size: content.Size(), report: b.worker.transferring(TransferResult, name)},
		content.Size(), nil
}

// blob is a result on its way to a head.
type blob struct {
	io.ReadSeeker
	size int64
	// report is told of each mebibyte, and of the end.
	report         func(done, total int64)
	done, reported int64
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	n, err := b.ReadSeeker.Read(p)
	b.done += int64(n)
	if b.done-b.reported >= 1<<20 || b.done == b.size && b.reported < b.done {
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
func (b *blob) Close() error { return nil }

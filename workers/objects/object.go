package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Object is content that is open for reading. Its ReadAt and Bytes may be called
// from many goroutines, the others from one at a time.
type Object struct {
	ref     Ref
	pieces  []Hash
	content content
	onDisk  bool
	release func() error
	offset  int64

	mu     sync.Mutex
	closed bool
	buffer *[]byte // a verified piece
	piece  int     // its number
}

// Ref is the object's name.
func (o *Object) Ref() Ref { return o.ref }

// Size is the length of the content in bytes.
func (o *Object) Size() int64 { return o.ref.Size }

// Pieces are the hashes of the pieces. They must not be changed. An object that
// was mapped from another process has none.
func (o *Object) Pieces() []Hash { return o.pieces }

// Bytes is the whole content without a copy, false if it is not in one part of the
// memory: on disk, or on systems that can't map files. It must not be changed, and
// not be used after Close.
func (o *Object) Bytes() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false
	}
	return o.content.view()
}

// ReadAt implements io.ReaderAt. It returns ErrDamaged for content that the disk
// has changed.
func (o *Object) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("objects: offset %d is negative", offset)
	}
	wanted := len(p)
	if left := max(0, o.ref.Size-offset); int64(wanted) > left {
		p = p[:left]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, ErrClosed
	}
	if !o.onDisk && len(p) > 0 {
		if err := o.content.read(p, offset); err != nil {
			return 0, err
		}
		n = len(p)
	}
	for n < len(p) {
		piece := int((offset + int64(n)) / PieceSize)
		if err := o.load(piece); err != nil {
			return n, err
		}
		within := int((offset + int64(n)) % PieceSize)
		n += copy(p[n:], (*o.buffer)[within:o.ref.PieceLength(piece)])
	}
	if n < wanted {
		return n, io.EOF
	}
	return n, nil
}

// load reads a piece from disk and verifies it.
func (o *Object) load(piece int) error {
	if o.buffer != nil && o.piece == piece {
		return nil
	}
	if o.buffer == nil {
		o.buffer = getBuffer()
	}
	o.piece = -1
	p := (*o.buffer)[:o.ref.PieceLength(piece)]
	if err := o.content.read(p, int64(piece)*PieceSize); err != nil {
		return err
	}
	if err := o.ref.VerifyPiece(o.pieces, piece, p); err != nil {
		return err
	}
	o.piece = piece
	return nil
}

// Read implements io.Reader.
func (o *Object) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.ReadAt(p, o.offset)
	o.offset += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (o *Object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.offset
	case io.SeekEnd:
		offset += o.ref.Size
	default:
		return 0, fmt.Errorf("objects: no such whence: %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("objects: offset %d is negative", offset)
	}
	o.offset = offset
	return offset, nil
}

// WriteTo implements io.WriterTo.
func (o *Object) WriteTo(w io.Writer) (n int64, err error) {
	buffer := getBuffer()
	defer putBuffer(buffer)
	for o.offset < o.ref.Size {
		length := int(min(PieceSize-o.offset%PieceSize, o.ref.Size-o.offset))
		got, err := o.ReadAt((*buffer)[:length], o.offset)
		if err != nil {
			return n, err
		}
		put, err := w.Write((*buffer)[:got])
		n, o.offset = n+int64(put), o.offset+int64(put)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close lets go of the content. It may be called more than once.
func (o *Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	if o.buffer != nil {
		putBuffer(o.buffer)
		o.buffer = nil
	}
	return o.release()
}

// File is the file in memory that has the content and nothing else, for another
// process to map, false if there is none. It is closed with the object.
func (o *Object) File() (*os.File, bool) {
	m, ok := o.content.(*memoryFile)
	if !ok {
		return nil, false
	}
	return m.file, true
}

// Map returns the content that another process has in a file in memory. It closes
// the file, also on failure, and calls release when the object is closed. It
// returns ErrDamaged for a file that has another size or that its owner could
// still change; the hash is not computed.
func Map(f *os.File, ref Ref, release func() error) (*Object, error) {
	if err := isSealed(f, ref.Size); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrDamaged, ref, err), f.Close())
	}
	m := &memoryFile{file: f, size: ref.Size}
	if _, ok := m.view(); !ok {
		return nil, errors.Join(fmt.Errorf("objects: map %s: %w", ref, m.failed), f.Close())
	}
	return &Object{ref: ref, content: m, release: func() error { return errors.Join(m.drop(), release()) }}, nil
}

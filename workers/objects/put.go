package objects

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
)

// PutOptions of Put. The zero value is right for a stream of unknown length.
type PutOptions struct {
	// Size is about how long the stream is, in bytes: room for that is taken first.
	// Defaults to unknown.
	Size int64
	// Reservation is room to put the object into. What it needs beyond that is
	// taken from the store. Defaults to none.
	Reservation *Reservation
	// Kept is called once the object is one of the store's, before others can
	// delete it; also if it was one before. It must not use the store. Defaults to
	// none.
	Kept func(Ref)
}

// buffers are of PieceSize bytes.
var buffers = sync.Pool{New: func() any { b := make([]byte, PieceSize); return &b }}

func getBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func putBuffer(b *[]byte) { buffers.Put(b) }

// Put stores what r has to say until its end, and returns its name. It returns
// ErrFull if there is no room, and keeps nothing then, nor after another error. An
// end of ctx is noticed between pieces: it does not end a Read of r. Content that
// the store has is not stored twice.
func (s *Store) Put(ctx context.Context, r io.Reader, o PutOptions) (Ref, error) {
	first := getBuffer()
	n, ended, err := ReadPiece(r, *first)
	if err != nil || ended {
		defer putBuffer(first)
		if err != nil {
			return Ref{}, err
		}
		return s.PutBytes(ctx, (*first)[:n], o)
	}
	p := &put{stage: stage{store: s, reservation: o.Reservation, kept: o.Kept}, places: make(chan struct{}, parallel())}
	if err := p.begin(ctx, max(o.Size, PieceSize), -1); err != nil {
		putBuffer(first)
		return Ref{}, err
	}
	p.fill(*first, func() { putBuffer(first) })
	for !ended && err == nil && !p.hasFailed() {
		if err = ctx.Err(); err != nil {
			break
		}
		next := getBuffer()
		if n, ended, err = ReadPiece(r, *next); err == nil && n > 0 {
			err = p.grow(ctx, n)
		}
		if err != nil || n == 0 {
			putBuffer(next)
			break
		}
		p.fill((*next)[:n], func() { putBuffer(next) })
	}
	return p.finish(err)
}

// ReadPiece fills b from r, as far as there is something, and reports whether r
// has ended. Unlike io.ReadFull it tells the end from a reader that fails with
// io.ErrUnexpectedEOF, as one does whose connection was cut.
func ReadPiece(r io.Reader, b []byte) (n int, ended bool, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	switch {
	case err == io.EOF:
		return n, true, nil
	case n == len(b):
		return n, false, nil
	default:
		return n, false, err
	}
}

// PutBytes is Put of what is in memory. It keeps a copy.
func (s *Store) PutBytes(ctx context.Context, b []byte, o PutOptions) (Ref, error) {
	size := int64(len(b))
	p := &put{stage: stage{store: s, reservation: o.Reservation, kept: o.Kept}}
	if err := p.begin(ctx, size, size); err != nil {
		return Ref{}, err
	}
	if size <= PieceSize {
		return p.finish(p.writeFailed(p.fillOne(b)))
	}
	p.places = make(chan struct{}, parallel())
	for len(b) > 0 && ctx.Err() == nil {
		n := min(len(b), PieceSize)
		p.fill(b[:n], func() {})
		b = b[n:]
	}
	return p.finish(ctx.Err())
}

// parallel is how many pieces of an object are hashed at a time.
func parallel() int { return min(runtime.GOMAXPROCS(0), 4) }

// put is an object on its way into the store, piece by piece.
type put struct {
	stage
	size   int64
	places chan struct{} // of pieces that are hashed at a time
	work   sync.WaitGroup

	mu     sync.Mutex
	pieces []Hash
	failed error
}

// fillOne adds the only piece.
func (p *put) fillOne(b []byte) error {
	if p.size = int64(len(b)); p.size == 0 {
		return nil
	}
	p.pieces = []Hash{HashPiece(b)}
	return p.content.write(0, b)
}

// fill adds the next piece, for which there is room, and calls done when it has
// been read.
func (p *put) fill(b []byte, done func()) {
	p.places <- struct{}{}
	p.mu.Lock()
	piece := len(p.pieces)
	p.pieces = append(p.pieces, Hash{})
	p.mu.Unlock()
	p.size += int64(len(b))
	p.work.Go(func() {
		hash := HashPiece(b)
		err := p.content.write(piece, b)
		done()
		p.mu.Lock()
		p.pieces[piece] = hash
		p.failed = errors.Join(p.failed, err)
		p.mu.Unlock()
		<-p.places
	})
}

// hasFailed reports whether finish will return an error of a write.
func (p *put) hasFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed != nil
}

// grow takes room for n more bytes.
func (p *put) grow(ctx context.Context, n int) error {
	size := p.size + int64(n)
	if size > MaxSize {
		return p.store.full(size)
	}
	enough, err := p.extend(ctx, size)
	if err != nil || enough {
		return err
	}
	p.work.Wait()
	if p.failed != nil {
		return nil // finish says it
	}
	return p.toDisk(ctx, Ref{Size: p.size}, size)
}

// finish ends the object: it is one of the store's unless there was an error.
func (p *put) finish(err error) (Ref, error) {
	p.work.Wait()
	if err = errors.Join(err, p.writeFailed(p.failed)); err != nil {
		return Ref{}, errors.Join(err, p.abandon())
	}
	ref := RefOf(p.size, p.pieces)
	return ref, p.commit(ref, p.pieces)
}

package results

import (
	"context"
	"fmt"
	"io"
)

// Sections is what is read in parts that begin and end at multiples of a unit: a
// Reader, a modules.Reader.
type Sections interface {
	Size() int64
	Unit() int64
	ReadAt(ctx context.Context, p []byte, offset int64) error
}

// seekPiece is about how many bytes a Seeker reads at a time.
const seekPiece = 512 << 10

// Seeker is an io.ReadSeeker of sections, of which it has about 512 KiB in memory. One
// goroutine uses it.
type Seeker struct {
	ctx   context.Context
	of    Sections
	at    int64
	piece []byte
	from  int64 // where piece begins
}

// NewSeeker returns a seeker that reads until ctx ends. What it reads stays the caller's to
// close.
func NewSeeker(ctx context.Context, of Sections) *Seeker { return &Seeker{ctx: ctx, of: of} }

// Read implements io.Reader.
func (s *Seeker) Read(p []byte) (int, error) {
	if s.at >= s.of.Size() {
		return 0, io.EOF
	}
	if s.at < s.from || s.at >= s.from+int64(len(s.piece)) {
		if s.piece == nil {
			most := s.of.Unit() * max(1, seekPiece/s.of.Unit())
			s.piece = make([]byte, 0, min(most, s.of.Size()))
		}
		s.from = s.at / s.of.Unit() * s.of.Unit()
		s.piece = s.piece[:min(int64(cap(s.piece)), s.of.Size()-s.from)]
		if err := s.of.ReadAt(s.ctx, s.piece, s.from); err != nil {
			s.piece = s.piece[:0]
			return 0, err
		}
	}
	n := copy(p, s.piece[s.at-s.from:])
	s.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (s *Seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.of.Size()
	}
	if offset < 0 {
		return s.at, fmt.Errorf("a position of %d bytes: at least 0", offset)
	}
	s.at = offset
	return offset, nil
}

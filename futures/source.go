package futures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// source is a value to put, which is offered to one worker after the other.
type source struct {
	io.Reader
	from   io.Reader
	seeker io.Seeker // nil if it can't be read again
	start  int64     // of what is behind the head
	head   []byte    // was read before it is offered
	json   bool      // it must be JSON
	read   int64     // since the last offer began
	failed error
}

// newSource returns a source that nothing was read of.
func newSource(r io.Reader) *source {
	s := &source{from: r}
	seeker, ok := r.(io.Seeker)
	if !ok {
		return s
	}
	// That of a pipe returns an error.
	if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
		s.seeker, s.start = seeker, at
	}
	return s
}

// begin begins the first offer, with what was read of it before.
func (s *source) begin(head []byte) {
	s.head = head
	s.start += int64(len(head))
	s.offer()
}

// offer makes it readable from the beginning.
func (s *source) offer() {
	s.read = 0
	s.Reader = io.MultiReader(bytes.NewReader(s.head), s.from)
	if s.json {
		s.Reader = &jsonReader{from: s.Reader}
	}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.read += int64(n); err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// again begins another offer after one that failed with an error. It returns that
// error, with what was read, if there can be none.
func (s *source) again(ctx context.Context, err error) error {
	switch {
	case s.failed != nil || ctx.Err() != nil:
		return err
	case s.read <= int64(len(s.head)):
	case s.seeker == nil:
		return fmt.Errorf("%w; no other worker was asked: %d bytes of the value were read, and its reader can't go back "+
			"(io.Seeker); put it again", err, s.read)
	default:
		if _, failed := s.seeker.Seek(s.start, io.SeekStart); failed != nil {
			return fmt.Errorf("%w; no other worker was asked: the value can't be read again: %w", err, failed)
		}
	}
	s.offer()
	return nil
}

package futures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
)

// streamWindow is how much of a result a Stream asks for at a time, in bytes. It has
// at most two of them in memory.
const streamWindow = 4 << 20

// StreamMemory is the most memory that a Stream takes, in bytes.
const StreamMemory = 2*streamWindow + 1<<20

// ErrChanged is returned by a Stream of a result that was lost after parts of it were
// read, and is another one since it was made again.
var ErrChanged = errors.New("the result was lost while it was read, and made again it is another one")

// Stream reads a result of any size, in order or from any offset, with at most
// StreamMemory bytes of it in memory. What comes from a worker is verified piece by
// piece; after a cut it goes on from the next copy, or waits until the result was
// made again. It implements io.ReadSeekCloser and io.WriterTo, and belongs to one
// goroutine, but for Close. It has to be closed.
type Stream struct {
	client *Client
	id     ID
	result *layout.Result
	ctx    context.Context
	cancel context.CancelFunc
	reader *results.Reader

	mu     sync.Mutex // of what follows, and of reader and result
	offset int64      // of the next Read
	window window
	ahead  chan window // where a window is fetched, nil if none is
	begun  bool        // something was read
	closed bool
}

// window is a part of a result.
type window struct {
	at      int64
	content []byte
	err     error
}

// Open waits until the future is over, as Await does, and opens its result as a
// stream. It returns the errors of Await, but no ErrTooLarge. All reads end with ctx.
func (f *Future) Open(ctx context.Context) (*Stream, error) {
	c := f.client
	for {
		row, err := c.cluster.Get(ctx, f.id)
		if err != nil {
			return nil, err
		}
		e := row.Ending()
		switch {
		case e.Over() && e.Failure != nil:
			if err := results.Of(c.cluster).Load(ctx, &e); err != nil {
				return nil, err
			}
			return nil, settled(&e, row.Spec.Function).Err
		case e.Over():
			return c.stream(ctx, f.id, e.Result)
		}
		// Its own handle: this one may have seen an end before.
		own := c.Future(f.id)
		interrupted, ended := own.awaitEnd(ctx)
		if interrupted != nil {
			return nil, own.unsettled(ctx, interrupted)
		}
		if ended != nil && !errors.Is(ended, ErrTooLarge) {
			return nil, ended
		}
	}
}

func (c *Client) stream(ctx context.Context, id ID, r *layout.Result) (*Stream, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	s := &Stream{client: c, id: id, result: r, reader: results.Of(c.cluster).Open(id, r)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// Size is how many bytes the result has.
func (s *Stream) Size() int64 { return s.reader.Size() }

// Codec is the encoding of the result.
func (s *Stream) Codec() string { return s.result.Codec }

// ExitCode is that of a WASM module.
func (s *Stream) ExitCode() int { return s.result.ExitCode }

// Tag names the content: of two results with the same tag, the bytes are the same.
func (s *Stream) Tag() string {
	if s.result.Object != "" {
		return s.result.Object
	}
	return s.id.String() + "-" + s.result.Token.String()
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 && !s.closed {
		return 0, nil
	}
	rest, err := s.next()
	if err != nil {
		return 0, err
	}
	n := copy(p, rest)
	s.offset += int64(n)
	return n, nil
}

// WriteTo implements io.WriterTo.
func (s *Stream) WriteTo(w io.Writer) (written int64, err error) {
	for {
		s.mu.Lock()
		rest, err := s.next()
		s.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(rest)
		s.mu.Lock()
		s.offset, written = s.offset+int64(n), written+int64(n)
		s.mu.Unlock()
		if err != nil {
			return written, err
		}
	}
}

// Seek implements io.Seeker. It reads nothing.
func (s *Stream) Seek(offset int64, whence int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, s.errClosed()
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.offset
	case io.SeekEnd:
		offset += s.Size()
	default:
		return 0, fmt.Errorf("futures: no such whence: %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("futures: offset %d is negative", offset)
	}
	s.offset = offset
	return offset, nil
}

// Close ends the stream: reads and seeks then return fs.ErrClosed, and one of another goroutine that is under way ends.
// It may be called more than once.
func (s *Stream) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.window = true, window{}
	if s.ahead != nil {
		<-s.ahead
		s.ahead = nil
	}
	s.reader.Close()
	return nil
}

// next returns what is in memory from the offset on, at least a byte.
func (s *Stream) next() ([]byte, error) {
	if s.closed {
		return nil, s.errClosed()
	}
	if s.offset >= s.Size() {
		return nil, io.EOF
	}
	if !s.window.has(s.offset) {
		if err := s.turn(); err != nil {
			return nil, err
		}
	}
	s.begun = true
	return s.window.content[s.offset-s.window.at:], nil
}

func (s *Stream) errClosed() error {
	return fmt.Errorf("futures: the stream of the result of future %s: %w", s.id, fs.ErrClosed)
}

func (w *window) has(offset int64) bool {
	return offset >= w.at && offset < w.at+int64(len(w.content))
}

// turn makes the window with the offset the present one, and begins to fetch the one
// after it.
func (s *Stream) turn() error {
	var w window
	spare := s.window.content
	s.window = window{}
	if s.ahead != nil {
		w = <-s.ahead
		s.ahead = nil
	}
	if w.err != nil || !w.has(s.offset) {
		w = s.fetch(s.start(), w.content)
	}
	if w.err != nil {
		return w.err
	}
	s.window = w
	if after := w.at + int64(len(w.content)); after < s.Size() {
		ahead := make(chan window, 1)
		s.ahead = ahead
		go func() { ahead <- s.read(after, spare) }()
	}
	return nil
}

// start is where the window with the offset begins.
func (s *Stream) start() int64 { return s.offset / s.reader.Unit() * s.reader.Unit() }

// read reads a window once, into a buffer if that is large enough.
func (s *Stream) read(at int64, buffer []byte) window {
	unit := s.reader.Unit()
	n := min(max(streamWindow/unit, 1)*unit, s.Size()-at)
	if int64(cap(buffer)) < n {
		buffer = make([]byte, n)
	}
	w := window{at: at, content: buffer[:n]}
	w.err = s.reader.ReadAt(s.ctx, w.content, at)
	return w
}

// fetch reads a window, and waits for workers that can't be reached and for a result
// that is made again.
func (s *Stream) fetch(at int64, buffer []byte) window {
	c := s.client
	for wait := unreachableWait; ; wait = min(2*wait, mostUnreachableWait) {
		w := s.read(at, buffer)
		var err error
		switch {
		case w.err == nil || s.ctx.Err() != nil || c.usable() != nil:
			return w
		case errors.Is(w.err, results.ErrLost):
			if err = s.reopen(); err == nil && s.offset >= s.Size() {
				err = io.EOF
			}
			at = s.start()
		case errors.Is(w.err, fdbmodel.ErrUnreachable):
			c.options.Logger.Warn("futures: a result can't be read; retrying", "future", s.id, "error", w.err)
			err = s.pause(wait)
		default:
			return w
		}
		if err != nil {
			return window{err: err}
		}
		buffer = w.content
	}
}

func (s *Stream) pause(d time.Duration) error {
	clk := s.client.cluster.Clock()
	return clock.Sleep(s.ctx, clk, d)
}

// reopen waits until the result was made again. It goes on with that if it is the
// same, or nothing of it was read.
func (s *Stream) reopen() error {
	other, err := s.client.Future(s.id).Open(s.ctx)
	if err != nil {
		return err
	}
	if s.begun && (other.Tag() != s.Tag() || other.Size() != s.Size()) {
		return errors.Join(fmt.Errorf("future %s: %w", s.id, ErrChanged), other.Close())
	}
	s.reader.Close()
	s.result, s.reader = other.result, other.reader
	other.cancel()
	return nil
}

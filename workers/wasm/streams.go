package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tetratelabs/wazero/sys"
)

// ErrStream is returned for a call whose Input, Output or Host failed, with its error.
var ErrStream = errors.New("wasm: what the function reads, writes or asks failed")

// streamFrom is how much standard output is kept before it is streamed, unless its bound is below.
const streamFrom = mebibyte

// streams holds what a function writes while it runs. Another goroutine may
// read it meanwhile.
type streams struct {
	ctx       context.Context
	maxStdout int64
	maxStderr int64
	output    io.Writer // takes standard output from streamFrom on, if not nil
	host      asker     // answers what the function asks

	mu       sync.Mutex
	stdout   []byte        // its beginning, once it is streamed
	streamed int64         // of standard output
	stderr   []byte        // its end counts, at most 2 maxStderr bytes
	written  int64         // to standard error, in all
	overflow bool          // of standard output
	failed   error         // of input, output or host
	hasRead  bool          // standard input; only for the function's own goroutine
	hasAsked bool          // its host; the same
	memory   *linearMemory // nil unless the function runs
	peak     uint64        // the most memory that it had, once it has ended
}

func newStreams(ctx context.Context, limits limits, output io.Writer, host asker) *streams {
	return &streams{ctx: ctx, maxStdout: limits.maxOutput, maxStderr: limits.stderrTail, output: output, host: host}
}

// leave ends the function from within a call of the host: the engine takes this
// value for a call of proc_exit.
func leave() { panic(sys.NewExitError(1)) }

// The files of a function.
type (
	stdinReader struct {
		*streams
		from io.Reader
	}
	stdoutWriter struct{ *streams }
	stderrWriter struct{ *streams }
)

// Read ends the function when there is no more input though it has not ended.
func (s stdinReader) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		leave()
	}
	s.hasRead = true
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail(err)
	}
	return n, err
}

// fail ends the function.
func (s *streams) fail(err error) {
	s.mu.Lock()
	s.failed = fmt.Errorf("%w: %w", ErrStream, err)
	s.mu.Unlock()
	leave()
}

// Write ends the function when its output is beyond the bound.
func (s stdoutWriter) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		leave()
	}
	if s.output != nil && (s.streamed > 0 || int64(len(s.stdout)+len(p)) > min(streamFrom, s.maxStdout)) {
		s.stream(p)
		return len(p), nil
	}
	s.mu.Lock()
	room := s.maxStdout - int64(len(s.stdout))
	s.overflow = s.overflow || int64(len(p)) > room
	s.stdout = append(s.stdout, p[:min(int64(len(p)), room)]...)
	overflow := s.overflow
	s.mu.Unlock()
	if overflow {
		leave()
	}
	return len(p), nil
}

// stream passes p on, after all that was written before. Only the function writes, so
// that nothing but what others read is under mu.
func (s *streams) stream(p []byte) {
	parts := [...][]byte{s.stdout, p}
	if s.streamed > 0 {
		parts[0] = nil
	}
	for i, part := range parts {
		if len(part) == 0 {
			continue
		}
		if _, err := s.output.Write(part); err != nil {
			s.fail(err)
		}
		s.mu.Lock()
		s.stdout = s.stdout[:min(len(s.stdout), maxKeptOnOverflow)]
		if i > 0 {
			s.stdout = append(s.stdout, part[:min(len(part), maxKeptOnOverflow-len(s.stdout))]...)
		}
		s.streamed += int64(len(part))
		s.mu.Unlock()
	}
}

// Write keeps the end of what was written.
func (s stderrWriter) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		leave()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += int64(len(p))
	tail := p[max(0, int64(len(p))-s.maxStderr):]
	if int64(len(s.stderr)+len(tail)) > 2*s.maxStderr {
		keep := s.maxStderr - int64(len(tail))
		s.stderr = append(s.stderr[:0], s.stderr[int64(len(s.stderr))-keep:]...)
	}
	s.stderr = append(s.stderr, tail...)
	return len(p), nil
}

// used reports whether the function has read, written or asked anything.
func (s *streams) used() bool { return s.hasRead || s.hasAsked || len(s.stdout) > 0 || s.written > 0 }

// use notes the memory of a function that begins, nil for one that has ended.
func (s *streams) use(memory *linearMemory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil {
		s.peak = s.memory.peak.Load()
	}
	s.memory = memory
}

// fill copies the state of the streams and the most memory so far into r. The slices are shared with the
// streams: they stay as they are only once the function has ended.
func (s *streams) fill(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stdout, r.streamed = s.stdout, s.streamed
	if s.overflow || s.streamed > 0 {
		r.stdout = r.stdout[:min(len(r.stdout), maxKeptOnOverflow)]
	}
	r.stderr = s.stderr[max(0, int64(len(s.stderr))-s.maxStderr):]
	r.stderrTruncated = s.written > s.maxStderr
	if r.peak = s.peak; s.memory != nil {
		r.peak = s.memory.peak.Load()
	}
}

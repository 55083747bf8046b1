package wasm

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero/sys"
)

// streams holds what a function writes while it runs. Another goroutine may
// read it meanwhile.
type streams struct {
	ctx       context.Context
	maxStdout int64
	maxStderr int64

	mu       sync.Mutex
	stdout   []byte
	stderr   []byte // its end counts, at most 2 maxStderr bytes
	written  int64  // to standard error, in all
	overflow bool   // of standard output
}

func newStreams(ctx context.Context, limits limits) *streams {
	return &streams{ctx: ctx, maxStdout: limits.maxOutput, maxStderr: limits.stderrTail}
}

// leave ends the function from within a call of the host: the engine takes this
// value for a call of proc_exit.
func leave() { panic(sys.NewExitError(1)) }

// stdoutWriter and stderrWriter are the two files of a function.
type (
	stdoutWriter struct{ *streams }
	stderrWriter struct{ *streams }
)

// Write ends the function when its output is beyond the bound.
func (s stdoutWriter) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		leave()
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

// fill copies the state of the streams into r. The slices are shared with the
// streams: they stay as they are only once the function has ended.
func (s *streams) fill(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stdout = s.stdout
	if s.overflow {
		r.stdout = r.stdout[:min(len(r.stdout), maxKeptOnOverflow)]
	}
	r.stderr = s.stderr[max(0, int64(len(s.stderr))-s.maxStderr):]
	r.stderrTruncated = s.written > s.maxStderr
}

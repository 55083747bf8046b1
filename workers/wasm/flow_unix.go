//go:build unix

package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// flow is the parent's side of the streams of a call.
type flow struct {
	input  io.Reader
	output io.Writer
	buffer []byte
	over   bool  // of input
	failed error // of either
}

// newFlow returns nil for a call that streams nothing.
func newFlow(ctx context.Context, c *call) *flow {
	if c.input == nil && c.output == nil {
		return nil
	}
	f := &flow{output: c.output}
	if c.input != nil {
		f.input = c.input(ctx)
	}
	return f
}

func (f *flow) failure() error {
	if f == nil {
		return nil
	}
	return f.failed
}

// serve reports whether a frame belongs to the streams. A call whose stream has failed is
// halted, and what it still writes is dropped.
func (f *flow) serve(w *worker, kind byte, content []byte) bool {
	var err error
	switch {
	case kind == frameMore && f.input != nil:
		if f.failed == nil {
			err = f.more(w)
		}
	case kind == frameOutput && f.output != nil:
		if f.failed == nil {
			_, err = f.output.Write(content)
		}
	default:
		return false
	}
	if err != nil {
		f.failed = fmt.Errorf("%w: %w", ErrStream, err)
		w.halt()
	}
	return true
}

// more sends the next input. That the child is gone is found out by reading from it.
func (f *flow) more(w *worker) error {
	if f.buffer == nil {
		f.buffer = make([]byte, framePart)
	}
	n := 0
	for n == 0 && !f.over {
		read, err := f.input.Read(f.buffer)
		n, f.over = read, errors.Is(err, io.EOF)
		if err != nil && !f.over {
			return err
		}
	}
	_ = writeFrame(w.input, frameInput, f.buffer[:n])
	return nil
}

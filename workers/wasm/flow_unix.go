//go:build unix

package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// flow is the parent's side of the streams of a call, and of what it asks.
type flow struct {
	ctx     context.Context
	input   io.Reader
	output  io.Writer
	answers answers
	asked   []byte // with the present question, so far
	buffer  []byte
	over    bool  // of input
	taken   int64 // by output
	failed  error // of any
}

func newFlow(ctx context.Context, c *call) *flow {
	f := &flow{ctx: ctx, output: c.output, answers: answers{host: c.host}}
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
			var n int
			n, err = f.output.Write(content)
			f.taken += int64(n)
		}
	case kind == frameAsk || kind == frameFetch:
		switch {
		case f.failed != nil || f.ctx.Err() != nil: // the call is being halted
		case kind == frameAsk:
			err = f.ask(w, content)
		default:
			err = f.fetch(w, content)
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

// ask takes a part of a question, and answers after the last one.
func (f *flow) ask(w *worker, body []byte) error {
	part, err := decodeAsk(body)
	if err != nil || len(part.value) > maxAsked-len(f.asked) {
		return errFrame
	}
	if f.asked = append(f.asked, part.value...); part.left > 0 {
		return nil
	}
	size, err := f.answers.ask(f.ctx, part.function, part.name, f.asked)
	if f.asked = nil; err != nil {
		return err
	}
	_ = writeFrame(w.input, frameAnswer, binary.AppendUvarint(nil, uint64(size+1)))
	return nil
}

// fetch sends a part of the answer.
func (f *flow) fetch(w *worker, body []byte) error {
	frame := &content{bytes: body}
	most := frame.number()
	if frame.err != nil {
		return frame.err
	}
	n, _ := f.answers.read(f.space()[:min(most, framePart)])
	_ = writeFrame(w.input, frameAnswer, f.buffer[:n])
	return nil
}

func (f *flow) space() []byte {
	if f.buffer == nil {
		f.buffer = make([]byte, framePart)
	}
	return f.buffer
}

// more sends the next input. That the child is gone is found out by reading from it.
func (f *flow) more(w *worker) error {
	f.space()
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

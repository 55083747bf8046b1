//go:build unix

package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// childInput is the standard input of a call, which the parent has.
type childInput struct {
	child *child
	rest  []byte // in the buffer of the child's frames
	over  bool
}

// Read implements io.Reader.
func (i *childInput) Read(p []byte) (int, error) {
	if len(i.rest) == 0 && !i.over && len(p) > 0 {
		if err := i.more(); err != nil {
			return 0, err
		}
	}
	if i.over {
		return 0, io.EOF
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// more asks the parent. No other request comes while a call runs.
func (i *childInput) more() error {
	c := i.child
	c.mu.Lock()
	err := writeFrame(c.answers, frameMore, nil)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	kind, content, err := c.frames.next()
	if err != nil {
		return err
	}
	if kind != frameInput {
		return fmt.Errorf("%w: kind %q instead of input", errFrame, kind)
	}
	i.rest, i.over = content, len(content) == 0
	return nil
}

// childOutput sends the standard output of a call to the parent.
type childOutput struct{ child *child }

// Write implements io.Writer.
func (o *childOutput) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		part := p[written:min(len(p), written+framePart)]
		if err := o.child.send(frameOutput, nil, part); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

// send sends a part by a buffer that stays, since nothing is collected during a call.
func (c *child) send(kind byte, head, part []byte) error {
	frame := binary.LittleEndian.AppendUint32(c.part[:0], uint32(len(head)+len(part)))
	c.part = append(append(append(frame, kind), head...), part...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.answers.Write(c.part)
	return err
}

// childHost asks the parent what a call asks.
type childHost struct {
	child *child
	head  []byte
}

// ask implements asker.
func (h *childHost) ask(_ context.Context, function, name string, value []byte) (size int64, err error) {
	for more := true; more; {
		part := value[:min(len(value), framePart)]
		value = value[len(part):]
		more = len(value) > 0
		h.head = appendAsk(h.head[:0], &askPart{function: function, name: name, left: uint64(len(value))})
		if err := h.child.send(frameAsk, h.head, part); err != nil {
			return 0, err
		}
	}
	body, err := h.answer()
	frame := &content{bytes: body}
	if size = int64(frame.number()) - 1; err == nil {
		err = frame.err
	}
	return size, err
}

// read implements asker.
func (h *childHost) read(p []byte) (n int, err error) {
	for n < len(p) {
		h.head = binary.AppendUvarint(h.head[:0], uint64(min(len(p)-n, framePart)))
		if err := h.child.send(frameFetch, h.head, nil); err != nil {
			return n, err
		}
		part, err := h.answer()
		if err != nil || len(part) == 0 {
			return n, err
		}
		n += copy(p[n:], part)
	}
	return n, nil
}

// answer waits for the parent. No other request comes while a call runs.
func (h *childHost) answer() ([]byte, error) {
	if in := h.child.input; in != nil {
		in.rest = bytes.Clone(in.rest) // the answer comes by the same buffer
	}
	kind, body, err := h.child.frames.next()
	if err == nil && kind != frameAnswer {
		err = fmt.Errorf("%w: kind %q instead of an answer", errFrame, kind)
	}
	return body, err
}

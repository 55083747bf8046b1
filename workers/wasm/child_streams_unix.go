//go:build unix

package wasm

import (
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
type childOutput struct {
	child *child
	frame []byte // of all parts, since nothing is collected during a call
}

// Write implements io.Writer.
func (o *childOutput) Write(p []byte) (int, error) {
	if o.frame == nil {
		o.frame = make([]byte, 0, frameHeader+framePart)
	}
	written := 0
	for written < len(p) {
		part := p[written:min(len(p), written+framePart)]
		frame := binary.LittleEndian.AppendUint32(o.frame[:0], uint32(len(part)))
		frame = append(append(frame, frameOutput), part...)
		if err := o.child.send(frame); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

func (c *child) send(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.answers.Write(frame)
	return err
}

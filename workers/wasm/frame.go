package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A frame is 4 bytes of length, little endian, one byte of kind, and as many
// bytes of content as the length says.
const frameHeader = 5

// Kinds of frames: requests of the parent, then answers of the child.
const (
	frameSetup   = 's' // settings; answered by frameStatus
	frameCompile = 'c' // a module; answered by frameCode or frameStatus
	frameLoad    = 'l' // a module under a number, and its code; answered by frameStatus
	frameDrop    = 'd' // the number of a module that is not needed any more; not answered
	frameRun     = 'r' // a call of a module; answered by frameResult, after any number of frames of its streams and host
	frameInput   = 'i' // the next standard input of the call, empty at its end; not answered
	frameAnswer  = 'n' // one more than the size of what the host has, 0 for none, or a part of that; not answered
	frameStatus  = 'k' // kind and message of a failure, empty if there was none
	frameCode    = 'o' // a module's code
	frameMore    = 'm' // the call needs more standard input; answered by frameInput
	frameOutput  = 'w' // the next standard output of the call
	frameAsk     = 'a' // what the call asks its host, in parts; the last one is answered by frameAnswer
	frameFetch   = 'f' // how much of what the host has the call reads next; answered by frameAnswer
	frameResult  = 'e' // how a call ended
	frameHalted  = 'h' // what a call has written and used until it was halted
)

// framePart is how much of a stream one frame has at most, in bytes. It fits the buffer of
// a reader.
const framePart = 60 * kibibyte

var errFrame = errors.New("wasm: malformed frame")

// writeFrame writes a frame whose content is head followed by tails. A small
// frame is one write.
func writeFrame(w io.Writer, kind byte, head []byte, tails ...[]byte) error {
	size := len(head)
	for _, tail := range tails {
		size += len(tail)
	}
	frame := make([]byte, frameHeader, frameHeader+min(size, 64*kibibyte))
	binary.LittleEndian.PutUint32(frame, uint32(size))
	frame[4] = kind
	frame = append(frame, head...)
	for _, tail := range tails {
		if len(tail) <= 32*kibibyte {
			frame = append(frame, tail...)
			continue
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
		if _, err := w.Write(tail); err != nil {
			return err
		}
		frame = frame[:0]
	}
	if len(frame) == 0 {
		return nil
	}
	_, err := w.Write(frame)
	return err
}

// frameReader reads frames of at most maxSize bytes of content.
type frameReader struct {
	r       io.Reader
	maxSize int64
	buffer  []byte // what was read and not yet returned is buffer[from:to]
	from    int
	to      int
}

func newFrameReader(r io.Reader, maxSize int64) *frameReader {
	return &frameReader{r: r, maxSize: maxSize, buffer: make([]byte, 64*kibibyte)}
}

// next returns the next frame. The content is valid until the next call. It
// returns io.EOF where a frame would begin, io.ErrUnexpectedEOF within one.
func (f *frameReader) next() (kind byte, content []byte, err error) {
	if err := f.fill(frameHeader); err != nil {
		return 0, nil, err
	}
	header := f.buffer[f.from : f.from+frameHeader]
	size := int64(binary.LittleEndian.Uint32(header))
	kind = header[4]
	if size > f.maxSize {
		return 0, nil, fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, size, f.maxSize)
	}
	f.from += frameHeader
	if size > int64(len(f.buffer)) {
		content, err = f.large(int(size))
		return kind, content, err
	}
	if err := f.fill(int(size)); err != nil {
		return 0, nil, noEOF(err)
	}
	content = f.buffer[f.from : f.from+int(size)]
	f.from += int(size)
	return kind, content, nil
}

// fill reads until n bytes are there, n being at most the size of the buffer.
func (f *frameReader) fill(n int) error {
	if f.from == f.to {
		f.from, f.to = 0, 0
	}
	if f.from+n > len(f.buffer) {
		f.to = copy(f.buffer, f.buffer[f.from:f.to])
		f.from = 0
	}
	for f.to-f.from < n {
		read, err := f.r.Read(f.buffer[f.to:])
		f.to += read
		if err != nil && f.to-f.from < n {
			if f.to > f.from {
				return noEOF(err)
			}
			return err
		}
	}
	return nil
}

// large reads content that the buffer can't hold. Memory grows with what really
// arrives.
func (f *frameReader) large(size int) ([]byte, error) {
	var content bytes.Buffer
	content.Write(f.buffer[f.from:f.to])
	f.from, f.to = 0, 0
	if _, err := io.CopyN(&content, f.r, int64(size-content.Len())); err != nil {
		return nil, noEOF(err)
	}
	return content.Bytes(), nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Contents of frames are sequences of varints and of strings led by their
// length.

func appendString[T string | []byte](to []byte, text T) []byte {
	to = binary.AppendUvarint(to, uint64(len(text)))
	return append(to, text...)
}

func appendStrings(to []byte, texts []string) []byte {
	to = binary.AppendUvarint(to, uint64(len(texts)))
	for _, text := range texts {
		to = appendString(to, text)
	}
	return to
}

// content takes the content of a frame apart. After an error every method
// returns zero values.
type content struct {
	bytes []byte
	err   error
}

func (c *content) number() uint64 {
	value, n := binary.Uvarint(c.bytes)
	if n <= 0 {
		c.bytes, c.err = nil, errFrame
		return 0
	}
	c.bytes = c.bytes[n:]
	return value
}

func (c *content) slice() []byte {
	size := c.number()
	if size > uint64(len(c.bytes)) {
		c.bytes, c.err = nil, errFrame
		return nil
	}
	taken := c.bytes[:size:size]
	c.bytes = c.bytes[size:]
	return taken
}

// fixed takes bytes whose number is known.
func (c *content) fixed(to []byte) {
	if len(to) > len(c.bytes) {
		c.bytes, c.err = nil, errFrame
		return
	}
	c.bytes = c.bytes[copy(to, c.bytes):]
}

func (c *content) text() string { return string(c.slice()) }

func (c *content) texts() []string {
	n := c.number()
	if n > uint64(len(c.bytes)) {
		c.bytes, c.err = nil, errFrame
		return nil
	}
	texts := make([]string, 0, n)
	for ; n > 0 && c.err == nil; n-- {
		texts = append(texts, c.text())
	}
	return texts
}

func (c *content) rest() []byte {
	rest := c.bytes
	c.bytes = nil
	return rest
}

// What a call streams.
const (
	streamsInput = 1 << iota
	streamsOutput
)

func (c *call) streaming() (flags uint64) {
	if c.input != nil {
		flags |= streamsInput
	}
	if c.output != nil {
		flags |= streamsOutput
	}
	return flags
}

// encodeRun returns the head of frameRun; standard input follows it.
func encodeRun(number uint64, c *call) []byte {
	head := make([]byte, 0, 256)
	head = binary.AppendUvarint(head, number)
	head = binary.AppendUvarint(head, c.memoryLimit)
	head = binary.AppendUvarint(head, c.streaming())
	head = appendString(head, c.program)
	head = appendString(head, c.method)
	head = appendStrings(head, c.args)
	return appendStrings(head, c.env)
}

func decodeRun(from []byte) (number uint64, made *call, streaming uint64, err error) {
	frame := &content{bytes: from}
	number = frame.number()
	made = &call{memoryLimit: frame.number()}
	streaming = frame.number()
	made.program, made.method, made.args, made.env = frame.text(), frame.text(), frame.texts(), frame.texts()
	made.stdin = frame.rest()
	if len(made.env)%2 != 0 || streaming&^(streamsInput|streamsOutput) != 0 {
		return 0, nil, 0, errFrame
	}
	return number, made, streaming, frame.err
}

// askPart is a part of a question to the host of a call.
type askPart struct {
	function, name string
	left           uint64 // bytes of the value that follow in further parts
	value          []byte
}

// appendAsk appends the head of frameAsk; the value follows it.
func appendAsk(to []byte, p *askPart) []byte {
	return binary.AppendUvarint(appendString(appendString(to, p.function), p.name), p.left)
}

func decodeAsk(from []byte) (askPart, error) {
	frame := &content{bytes: from}
	p := askPart{function: frame.text(), name: frame.text(), left: frame.number()}
	p.value = frame.rest()
	return p, frame.err
}

// encodeResult returns the head of frameResult; stderr and stdout follow it.
func encodeResult(r *result) []byte {
	head := make([]byte, 0, 64)
	head = appendString(head, r.kind)
	head = appendString(head, r.message)
	head = binary.AppendVarint(head, int64(r.exitCode))
	head = binary.AppendUvarint(head, uint64(r.duration))
	head = binary.AppendUvarint(head, r.peak)
	head = binary.AppendUvarint(head, uint64(r.cpuUser))
	head = binary.AppendUvarint(head, uint64(r.cpuSys))
	truncated := uint64(0)
	if r.stderrTruncated {
		truncated = 1
	}
	head = binary.AppendUvarint(head, truncated)
	return binary.AppendUvarint(head, uint64(len(r.stderr)))
}

// decodeResult returns a result whose streams are copies.
func decodeResult(from []byte) (result, error) {
	frame := &content{bytes: from}
	r := result{kind: frame.text(), message: frame.text()}
	zigzag := frame.number()
	r.exitCode = int(int64(zigzag>>1) ^ -int64(zigzag&1))
	r.duration = time.Duration(frame.number())
	r.peak = frame.number()
	r.cpuUser, r.cpuSys = time.Duration(frame.number()), time.Duration(frame.number())
	r.stderrTruncated = frame.number() == 1
	r.stderr = bytes.Clone(frame.slice())
	r.stdout = bytes.Clone(frame.rest())
	return r, frame.err
}

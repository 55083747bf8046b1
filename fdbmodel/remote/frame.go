package remote

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// errFrameTooLarge is returned for a frame that is longer than the reader
// allows.
func errFrameTooLarge(size uint32, limit int) error {
	return fmt.Errorf("%w: a frame of %d bytes, at most %d are allowed", errMalformed, size, limit)
}

// readFrame reads one frame into new memory.
func readFrame(r *bufio.Reader, limit int) (kind byte, body []byte, err error) {
	var head [lengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 {
		return 0, nil, fmt.Errorf("%w: an empty frame", errMalformed)
	}
	if uint64(size) > uint64(limit) {
		return 0, nil, errFrameTooLarge(size, limit)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return frame[0], frame[1:], nil
}

func appendFrame(b []byte, kind byte, head, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(head)+len(body)))
	b = append(b, kind)
	b = append(b, head...)
	return append(b, body...)
}

// outbox is the writing half of a connection. Whoever finds nobody writing
// writes for all, so that frames of many senders share a system call.
type outbox struct {
	conn    net.Conn
	timeout time.Duration

	mu      sync.Mutex
	room    sync.Cond
	pending []byte
	spare   []byte
	writing bool
	err     error
}

const (
	// maxPending is what may wait to be written before senders have to wait.
	maxPending = 4 << 20
	// maxSpare is the largest buffer that is kept for later.
	maxSpare = 1 << 20
)

func (o *outbox) init(conn net.Conn, timeout time.Duration) {
	o.conn, o.timeout = conn, timeout
	o.room.L = &o.mu
}

// send passes a frame on. An error says that the frame was not accepted, or
// that writing failed with this frame or an earlier one.
func (o *outbox) send(kind byte, head, body []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.pending) > maxPending {
		o.room.Wait()
	}
	if o.err != nil {
		return o.err
	}
	o.pending = appendFrame(o.pending, kind, head, body)
	if o.writing {
		return nil
	}
	o.writing = true
	for o.err == nil && len(o.pending) > 0 {
		o.write()
	}
	o.writing = false
	return o.err
}

// write writes what is pending, without the lock.
func (o *outbox) write() {
	b := o.pending
	o.pending = o.spare[:0]
	timeout := o.timeout
	o.mu.Unlock()
	err := o.conn.SetWriteDeadline(time.Now().Add(timeout))
	if err == nil {
		_, err = o.conn.Write(b)
	}
	o.mu.Lock()
	o.spare = nil
	if cap(b) <= maxSpare {
		o.spare = b[:0]
	}
	if err != nil && o.err == nil {
		// Part of a frame may be written, so nothing can follow it.
		o.err = err
		_ = o.conn.Close()
	}
	o.room.Broadcast()
}

// hurry bounds the present write and those that come.
func (o *outbox) hurry(timeout time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timeout = timeout
	_ = o.conn.SetWriteDeadline(time.Now().Add(timeout))
}

// fail makes everything that is sent from now on fail.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.room.Broadcast()
}

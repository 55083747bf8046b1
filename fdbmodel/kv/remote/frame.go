package remote

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// readFrame reads one frame into new memory.
func readFrame(r *bufio.Reader, limit int) (kind byte, body []byte, err error) {
	size, err := readSize(r, limit)
	if err != nil {
		return 0, nil, err
	}
	return readRest(r, size)
}

// readSize reads the size of the frame that comes next.
func readSize(r *bufio.Reader, limit int) (int, error) {
	var head [lengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 {
		return 0, fmt.Errorf("%w: an empty frame", errMalformed)
	}
	if uint64(size) > uint64(limit) {
		return 0, fmt.Errorf("%w: a frame of %d bytes, at most %d are allowed", errMalformed, size, limit)
	}
	return int(size), nil
}

// readRest reads a frame of that size.
func readRest(r *bufio.Reader, size int) (kind byte, body []byte, err error) {
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

// inbox is the reading half of a connection. It waits for a frame as long as it
// takes, and for its end no longer than the timeout.
type inbox struct {
	conn    net.Conn
	r       *bufio.Reader
	limit   int
	timeout time.Duration
}

// next reads one frame. It calls admit, if that is set, before it takes memory
// for the frame.
func (i *inbox) next(admit func(size int) error) (kind byte, body []byte, err error) {
	size, err := readSize(i.r, i.limit)
	if err == nil && admit != nil {
		err = admit(size)
	}
	if err != nil {
		return 0, nil, err
	}
	if i.r.Buffered() >= size {
		return readRest(i.r, size)
	}
	if err := i.conn.SetReadDeadline(time.Now().Add(i.timeout)); err != nil {
		return 0, nil, err
	}
	kind, body, err = readRest(i.r, size)
	if err == nil {
		err = i.conn.SetReadDeadline(time.Time{})
	}
	return kind, body, err
}

// outbox is the writing half of a connection. A sender that finds no other one
// writing writes for all, so that frames of many senders share a system call.
type outbox struct {
	conn    net.Conn
	timeout time.Duration
	limit   int // what may wait to be written before senders have to wait

	// busy is how many goroutines wait for an answer to what they have sent, or are about to answer: besides those,
	// nobody sends much. A sender that counts itself is alone.
	busy  atomic.Int32
	alone int32

	mu      sync.Mutex
	room    sync.Cond
	pending []byte
	spare   []byte
	writing bool
	missed  uint // looks for other senders since the last one that found one
	err     error
}

const (
	// fewBytes is how many bytes a sender writes without looking for more.
	fewBytes = 4 << 10
	// fewMissed is after how many looks in a row that found no other sender only each seldom-th is made.
	fewMissed = 3
	seldom    = 8
)

// maxSpare is the largest buffer that is kept for later.
const maxSpare = 256 << 10

func (o *outbox) init(conn net.Conn, timeout time.Duration, limit int) {
	o.conn, o.timeout, o.limit = conn, timeout, limit
	o.room.L = &o.mu
}

// await returns when there is room for a frame, or why there will be none.
func (o *outbox) await() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaitRoom()
	return o.err
}

// hasRoom reports whether await would return at once, with no error.
func (o *outbox) hasRoom() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err == nil && len(o.pending) <= o.limit
}

func (o *outbox) awaitRoom() {
	for o.err == nil && len(o.pending) > o.limit {
		o.room.Wait()
	}
}

// send passes a frame on. An error says that the frame was not accepted, or
// that writing failed with this frame or an earlier one.
func (o *outbox) send(kind byte, head, body []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaitRoom()
	return o.accept(kind, head, body, func() {})
}

// push is send that waits for no room. It calls accepted, with the lock, when
// body may be used again.
func (o *outbox) push(kind byte, head, body []byte, accepted func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accept(kind, head, body, accepted)
}

func (o *outbox) accept(kind byte, head, body []byte, accepted func()) error {
	if o.err != nil {
		accepted()
		return o.err
	}
	o.pending = appendFrame(o.pending, kind, head, body)
	accepted()
	if o.writing {
		return nil
	}
	o.writing = true
	for o.err == nil && len(o.pending) > 0 {
		o.gather()
		o.write()
	}
	o.writing = false
	return o.err
}

// gather lets goroutines that are ready to run add their frames to a few, without the lock: those of a commit of many
// end together, and each would find no other one writing. Where a few looks in a row found none, it looks seldom.
// Source: the writing loop of grpc-go.
func (o *outbox) gather() {
	own := len(o.pending)
	if own >= fewBytes || o.busy.Load() <= o.alone {
		return
	}
	if o.missed++; o.missed > fewMissed && o.missed%seldom != 0 {
		return
	}
	o.mu.Unlock()
	runtime.Gosched()
	o.mu.Lock()
	if len(o.pending) > own {
		o.missed = 0
	}
}

// write writes what is pending, without the lock.
func (o *outbox) write() {
	b := o.pending
	o.pending = o.spare[:0]
	err := o.conn.SetWriteDeadline(time.Now().Add(o.timeout)) // with the lock: none that hurry has set is put off
	o.mu.Unlock()
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

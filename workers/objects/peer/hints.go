package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/futura-run/futura/workers/objects"
)

// MaxHint is the maximum size of a hint, in bytes.
const MaxHint = 4 << 10

// Hints are what a process does with the hints of others. Its methods are called from
// many goroutines, and don't wait.
type Hints interface {
	// Hint is called with what a client hints at, at most MaxHint bytes that it keeps
	// no longer than the call, and for how many futures. It returns how many workers
	// look because of it.
	Hint(message []byte, n int) (heeded int)
	// Listen has news called when there are some for who, until stop is called.
	Listen(who Owner, news func()) (stop func())
}

// A connection for hints begins with opHints and its reply, statusOK. From then on the
// client sends hints, each a head and the message, and the server answers each with a
// reply that has its number. A hint without a message is for nothing but the answer.
// In between the server sends news.
const hintHead = 8 // the length of the message, how many futures, and a number

// hintShare is the part of the connections that may be for hints, so that there are
// some for objects.
const hintShare = 4

// Kinds of replies on a connection for hints: the upper 16 bits of their values. The
// next 16 are how many workers look, the lower 32 the number.
const (
	replyHint = iota + 1
	replyNews
)

func hintReply(kind, heeded int, number uint32) reply {
	return reply{status: statusOK, value: uint64(kind)<<48 | uint64(uint16(heeded))<<32 | uint64(number)}
}

func (r reply) hint() (kind, heeded int, number uint32) {
	return int(r.value >> 48), int(uint16(r.value >> 32)), uint32(r.value)
}

// hints receives the hints of a client until the connection ends.
func (c *link) hints(r request) error {
	hints := c.server.options.Hints
	if hints == nil {
		return c.say(reply{status: statusNoHints})
	}
	select {
	case c.server.hinting <- struct{}{}:
		defer func() { <-c.server.hinting }()
	default:
		return c.say(reply{status: statusBusy})
	}
	news, over := make(chan struct{}, 1), make(chan struct{})
	// A client that has the reply misses no news.
	stop := hints.Listen(Owner(r.hash), func() {
		select {
		case news <- struct{}{}:
		default: // some are on their way
		}
	})
	if err := c.say(reply{status: statusOK}); err != nil {
		stop()
		return err
	}
	var saying sync.Mutex
	say := func(r reply) error {
		saying.Lock()
		defer saying.Unlock()
		return c.say(r)
	}
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			select {
			case <-news:
				if say(hintReply(replyNews, 0, 0)) != nil {
					_ = c.Close() // the reader ends
					return
				}
			case <-over:
				return
			}
		}
	})
	err := c.receiveHints(hints, say)
	stop()
	close(over)
	_ = c.Close() // what is being said ends
	telling.Wait()
	return err
}

func (c *link) receiveHints(hints Hints, say func(reply) error) error {
	o := &c.server.options
	message := make([]byte, MaxHint)
	for {
		if err := c.SetReadDeadline(time.Now().Add(o.IdleTimeout)); err != nil {
			return err
		}
		var head [hintHead]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		length, n := binary.BigEndian.Uint16(head[:]), binary.BigEndian.Uint16(head[2:])
		if length > MaxHint {
			return fmt.Errorf("%w: a hint of %d bytes, at most %d", ErrMalformed, length, MaxHint)
		}
		heeded := 0
		if length > 0 {
			if err := c.SetReadDeadline(time.Now().Add(o.PieceTimeout)); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, message[:length]); err != nil {
				return err
			}
			heeded = hints.Hint(message[:length], int(n))
		}
		if err := say(hintReply(replyHint, heeded, binary.BigEndian.Uint32(head[4:]))); err != nil {
			return err
		}
	}
}

// Hinting is a connection for hints. Its methods may be called from many goroutines.
type Hinting struct {
	source *source
	news   func()
	beat   time.Duration
	over   chan struct{}
	ending sync.Once
	loops  sync.WaitGroup

	mu      sync.Mutex
	number  uint32
	waiting map[uint32]chan int
}

// hintBeat is how often a connection for hints is used at least. One on which nothing
// arrives for three times as long is at its end.
const hintBeat = 20 * time.Second

// OpenHints makes a connection for hints to the process at an address, which has news
// called when it has some for who. news must not wait. It returns an error if that
// process takes no hints.
func (c *Client) OpenHints(ctx context.Context, address string, who Owner, news func()) (*Hinting, error) {
	s, err := c.dialNew(ctx, address)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // what is under way ends
		if err = s.ask(request{op: opHints, hash: objects.Hash(who)}); err == nil {
			_, err = s.reply()
		}
		if !stop() {
			err = errors.Join(ctx.Err(), err)
		}
		if err == nil {
			err = s.SetDeadline(time.Time{})
		}
		if err != nil {
			_ = s.Close() // the error is what counts
		}
	}
	if err != nil {
		return nil, fmt.Errorf("objects: hints: %w", sourceError(address, err))
	}
	h := &Hinting{source: s, news: news, beat: hintBeat, over: make(chan struct{}), waiting: map[uint32]chan int{}}
	h.loops.Go(h.receive)
	h.loops.Go(h.keepAlive)
	return h, nil
}

// Hint sends a hint for n futures, and returns how many workers look because of it. It
// returns ctx's error when that ends first; the hint may then still be heeded.
func (h *Hinting) Hint(ctx context.Context, message []byte, n int) (heeded int, err error) {
	if len(message) == 0 || len(message) > MaxHint {
		return 0, fmt.Errorf("objects: a hint of %d bytes: from 1 to %d are possible", len(message), MaxHint)
	}
	number, answer, err := h.send(message, n)
	if err != nil {
		return 0, err
	}
	defer h.forget(number)
	select {
	case heeded = <-answer:
		return min(heeded, n), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-h.over:
		return 0, io.ErrUnexpectedEOF
	}
}

// Done is closed when the connection has ended.
func (h *Hinting) Done() <-chan struct{} { return h.over }

// Close ends the connection.
func (h *Hinting) Close() {
	h.end()
	h.loops.Wait()
}

func (h *Hinting) end() {
	h.ending.Do(func() {
		close(h.over)
		_ = h.source.Close() // what is under way ends
	})
}

// sendTimeout bounds how long a hint takes to be sent. A client that does not read
// hints is as good as gone.
const sendTimeout = time.Second

func (h *Hinting) send(message []byte, n int) (number uint32, answer chan int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	number, answer = h.number, make(chan int, 1)
	frame := make([]byte, hintHead, hintHead+len(message))
	binary.BigEndian.PutUint16(frame, uint16(len(message)))
	binary.BigEndian.PutUint16(frame[2:], uint16(min(n, 1<<16-1)))
	binary.BigEndian.PutUint32(frame[4:], number)
	h.waiting[number] = answer
	err = h.source.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = h.source.Write(append(frame, message...))
	}
	if err != nil {
		delete(h.waiting, number)
		h.end()
	}
	return number, answer, err
}

func (h *Hinting) forget(number uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, number)
}

// receive passes on answers and news until the connection ends.
func (h *Hinting) receive() {
	defer h.end()
	for {
		if h.source.SetReadDeadline(time.Now().Add(3*h.beat)) != nil {
			return
		}
		var b [replySize]byte
		if _, err := io.ReadFull(h.source, b[:]); err != nil {
			return
		}
		r, err := decodeReply(&b)
		if err != nil || r.status != statusOK {
			return
		}
		switch kind, heeded, number := r.hint(); kind {
		case replyNews:
			h.news()
		case replyHint:
			h.answered(number, heeded)
		}
	}
}

func (h *Hinting) answered(number uint32, heeded int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if answer := h.waiting[number]; answer != nil {
		delete(h.waiting, number)
		answer <- heeded
	}
}

// keepAlive has the server answer from time to time.
func (h *Hinting) keepAlive() {
	beat := time.NewTicker(h.beat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if number, _, err := h.send(nil, 0); err == nil {
				h.forget(number)
			}
		case <-h.over:
			return
		}
	}
}

package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/futura-run/futura/internal/clock"
)

// pace reads and writes a stream, and moves its deadline with its bytes. It is used by
// one goroutine at a time.
type pace struct {
	stream  network.Stream
	timeout time.Duration
	rate    int64     // bytes per second
	stretch int64     // bytes after which time is counted anew, 0 for never
	end     time.Time // of a stretch without bytes
	bytes   int64     // of this stretch
	// For a message that others may wait for: the longest time without a byte, 0 for any, and
	// the end of all of it, zero for none.
	silence time.Duration
	last    time.Time
}

func (h *Host) newPace(s network.Stream) *pace {
	timeout := h.limits.MessageTimeout
	return &pace{stream: s, timeout: timeout, end: time.Now().Add(timeout), rate: h.limits.MinRate}
}

// allow grants some more time.
func (p *pace) allow(more time.Duration) { p.end = p.end.Add(more) }

// hurry has each read bring a byte within half of the timeout from now on, beside some more
// time, and all of them be read within as much if that time was spent on a turn.
func (p *pace) hurry(more time.Duration, inTurn bool) {
	p.allow(more)
	p.silence = p.timeout / 2
	if inTurn {
		p.last = time.Now().Add(p.silence)
	}
}

// deadline is when the next bytes are due at the latest.
func (p *pace) deadline() time.Time {
	due := p.end.Add(time.Duration(float64(p.bytes) / float64(p.rate) * float64(time.Second)))
	if p.silence > 0 {
		due = clock.Earlier(due, time.Now().Add(p.silence))
	}
	return clock.Earlier(due, p.last)
}

func (p *pace) moved(n int) {
	p.bytes += int64(n)
	if p.stretch > 0 && p.bytes >= p.stretch {
		p.bytes, p.end = 0, time.Now().Add(p.timeout)
	}
}

// Read implements io.Reader.
func (p *pace) Read(b []byte) (int, error) {
	if err := p.stream.SetReadDeadline(p.deadline()); err != nil {
		return 0, err
	}
	n, err := p.stream.Read(b)
	p.moved(n)
	return n, err
}

// Write implements io.Writer, in pieces that have a deadline each.
func (p *pace) Write(b []byte) (written int, err error) {
	const piece = 64 << 10
	for {
		if err := p.stream.SetDeadline(p.deadline()); err != nil {
			return written, err
		}
		n, err := p.stream.Write(b[written:min(len(b), written+piece)])
		written += n
		p.moved(n)
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

package peerworker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/protocol"
)

// Bounds of what a head asks for.
const (
	defaultHeartbeat = time.Second
	minHeartbeat     = 50 * time.Millisecond
	maxHeartbeat     = time.Minute
	// idleHello is how often the worker says hello that has nothing else to tell: a head that
	// took it for lost would not say so.
	idleHello = time.Minute
)

// link is what the worker has with one head.
type link struct {
	worker *Worker
	head   string

	mu   sync.Mutex
	peer Peer
	// up is set from the head's answer to Hello until the connection breaks.
	up        bool
	again     bool // say hello again
	heartbeat time.Duration
	said      time.Time     // when the head last answered Hello, or a report
	reported  time.Time     // when it was last told of all chunks
	fresh     chan struct{} // has room for one signal: a chunk has begun that it was told nothing of
	changed   chan struct{} // closed at each change
	// stop ends run.
	stop context.CancelFunc
}

func newLink(w *Worker, head string) *link {
	return &link{worker: w, head: head, heartbeat: defaultHeartbeat, changed: make(chan struct{}),
		fresh: make(chan struct{}, 1)}
}

// change has everybody look again. It is called under mu.
func (l *link) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// update takes what the network says of the head.
func (l *link) update(p Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Session != l.peer.Session || !p.Connected {
		l.up = false
	}
	l.peer = p
	l.change()
}

// greetAgain has the worker say hello, because the head does not know it.
func (l *link) greetAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.again {
		l.again, l.up = true, false
		l.change()
	}
}

// errGone says that nothing is to be sent any more.
var errGone = errors.New("the chunk is forgotten")

// awaitUp returns nil once the head has answered Hello, and errGone once gone is closed.
func (l *link) awaitUp(ctx context.Context, gone <-chan struct{}) error {
	for {
		l.mu.Lock()
		up, changed := l.up, l.changed
		l.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-changed:
		case <-gone:
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waitOrChange waits for d, or until something changes with the head.
func (l *link) waitOrChange(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	changed := l.changed
	l.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// run keeps the head informed, until ctx ends.
func (l *link) run(ctx context.Context) {
	pause := retryMin
	for ctx.Err() == nil {
		l.mu.Lock()
		peer, changed, up := l.peer, l.changed, l.up
		l.mu.Unlock()
		switch {
		case !peer.Connected || !peer.Futura:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		case up:
			l.report(ctx, peer)
		default:
			err := l.greet(ctx, peer)
			if err == nil {
				pause = retryMin
				continue
			}
			if ctx.Err() == nil {
				l.worker.log.Warn("the head has not taken this worker", "head", l.head, "error", err, "again in", pause)
			}
			_ = l.waitOrChange(ctx, pause)
			pause = min(2*pause, retryMax)
		}
	}
}

// greet says hello, and heeds the answer.
func (l *link) greet(ctx context.Context, peer Peer) error {
	l.mu.Lock()
	l.again = false
	l.mu.Unlock()
	m, err := l.worker.hello(ctx, l.head)
	if err != nil {
		return err
	}
	answer, err := l.worker.call(ctx, l.head, m)
	if err != nil {
		return err
	}
	r, ok := answer.(*protocol.HelloResponse)
	if !ok {
		return fmt.Errorf("it answered Hello with %s", answer.Type())
	}
	if r.Code != protocol.CodeOK {
		return fmt.Errorf("it answered %s: %.200q", r.Code, r.Message)
	}
	for _, id := range r.Unknown {
		if c := l.worker.chunk(chunkName{l.head, id}); c != nil {
			c.drop("the head does not know its chunk")
		}
	}
	for _, c := range l.worker.chunksOf(l.head) {
		if !c.isReleased() { // of an earlier process: the head may not want it any more
			if _, err := l.tell(ctx, c); err != nil {
				return err
			}
		}
		c.release()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer.Session != peer.Session || !l.peer.Connected || l.again {
		return nil // it has to be said again
	}
	l.heartbeat = defaultHeartbeat
	if r.HeartbeatMS > 0 {
		l.heartbeat = min(max(time.Duration(min(r.HeartbeatMS, int64(maxHeartbeat/time.Millisecond)))*time.Millisecond,
			minHeartbeat), maxHeartbeat)
	}
	l.said, l.reported = time.Now(), time.Now()
	if !l.up {
		l.up = true
		l.change()
		l.worker.greeted(l.head)
	}
	return nil
}

// firstReport is how long after its begin the head is told of a chunk that goes on: a head
// that does not know this worker yet may give to others what it hears nothing of.
const firstReport = 100 * time.Millisecond

// awaitReport waits until all chunks are to be reported, or those that have begun since.
func (l *link) awaitReport(ctx context.Context) (all bool, err error) {
	l.mu.Lock()
	changed, due := l.changed, l.reported.Add(l.heartbeat)
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-changed:
		return true, nil
	case <-l.fresh:
		return false, l.waitOrChange(ctx, firstReport)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// report tells the head of each chunk that runs, or has results that the head has not
// taken, soon after its begin and once in a heartbeat, while the link is up.
func (l *link) report(ctx context.Context, peer Peer) {
	all, err := l.awaitReport(ctx)
	if err != nil {
		return
	}
	l.mu.Lock()
	said := l.said
	if all {
		l.reported = time.Now()
	}
	l.mu.Unlock()
	told := false
	for _, c := range l.worker.chunksOf(l.head) {
		if known := c.reported.Swap(true); known && !all {
			continue
		}
		heard, err := l.tell(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.worker.log.Debug("the head has not heard of a chunk's progress", "head", l.head, "error", err)
			return
		}
		told = told || heard
	}
	switch {
	case told:
		l.mu.Lock()
		l.said = time.Now()
		l.mu.Unlock()
	case time.Since(said) >= idleHello && !l.worker.stopping.Load():
		if err := l.greet(ctx, peer); err != nil {
			l.greetAgain()
		}
	}
}

// tell tells the head how far a chunk is, with its items if the head does not know it, and heeds the answer. It
// reports whether there was something to tell.
func (l *link) tell(ctx context.Context, c *chunk) (told bool, err error) {
	p, goesOn := c.progress()
	if !goesOn {
		return false, nil
	}
	ack, err := l.acked(ctx, p)
	if err == nil && ack.Code == protocol.CodeConflict && c.isToProve() {
		p.Order = c.proof()
		if ack, err = l.acked(ctx, p); err == nil && ack.Code == protocol.CodeUnavailable {
			err = fmt.Errorf("it does not say whether it wants a chunk: %.200q", ack.Message)
		}
		if err == nil {
			c.proved = time.Now()
		}
	}
	if err != nil {
		return false, err
	}
	l.heed(ctx, c, ack)
	if ack.Code == protocol.CodeNotAuthorized {
		return false, fmt.Errorf("it does not know this worker: %.200q", ack.Message)
	}
	return true, nil
}

// acked sends a message that the head answers by Ack.
func (l *link) acked(ctx context.Context, m protocol.Message) (*protocol.Ack, error) {
	answer, err := l.worker.call(ctx, l.head, m)
	if err != nil {
		return nil, err
	}
	ack, ok := answer.(*protocol.Ack)
	if !ok {
		return nil, fmt.Errorf("it answered %s with %s", m.Type(), answer.Type())
	}
	return ack, nil
}

// heed does what the answer to a message on a chunk asks for.
func (l *link) heed(ctx context.Context, c *chunk, ack *protocol.Ack) {
	if open := c.openAmong(ack.Unwanted); len(open) > 0 {
		c.cancel(ctx, open, unwanted)
	}
	switch ack.Code {
	case protocol.CodeNotAuthorized:
		l.greetAgain()
	case protocol.CodeGone, protocol.CodeNotFound:
		c.drop(unwanted)
	}
}

const unwanted = "the head does not want it"

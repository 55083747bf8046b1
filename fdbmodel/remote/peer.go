package remote

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// peer is a client's connection as the server sees it.
type peer struct {
	server *server
	conn   net.Conn
	out    outbox
	ctx    context.Context
	cancel context.CancelFunc
	// running is the goroutines of the connection.
	running sync.WaitGroup
	frames  atomic.Uint64
	id      string

	// What follows belongs to whoever reads, and then to serve.
	goodbye   bool
	cause     error
	readEnded chan struct{}

	turn chan struct{} // passes the reading on
	idle atomic.Int32  // goroutines that wait for it

	mu      sync.Mutex
	txs     map[uint64]*work
	watches map[uint64]kv.Watch
	queued  int
	room    sync.Cond
	closed  bool
}

// maxQueued bounds the bytes of a connection that wait for their transactions.
const maxQueued = 32 << 20

// readBuffer is the size of a connection's buffer for reading, in bytes.
const readBuffer = 64 << 10

// serve answers one connection until it ends.
func (s *server) serve(conn net.Conn) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	// Whoever reads or writes is ended by closing the connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if !s.enter(&s.strangers, maxStrangers) {
		s.options.Logger.Warn("too many wait to show their token", "from", conn.RemoteAddr().String())
		return
	}
	r := bufio.NewReaderSize(conn, readBuffer)
	id, err := s.welcome(conn, r)
	s.leave(&s.strangers)
	if err != nil {
		s.options.Logger.Warn("a client was refused", "from", conn.RemoteAddr().String(), "error", err)
		return
	}
	defer s.leave(&s.connections)
	p := newPeer(ctx, cancel, s, conn, id)
	s.come(id)
	s.options.Logger.Debug("a client has come", "connection", id)
	p.running.Go(p.watchOver)
	p.running.Go(func() { p.read(r) })
	<-p.readEnded
	p.end()
	s.options.Logger.Debug("a connection has ended", "connection", id, "cause", p.cause)
	s.goAway(id, p.goodbye)
}

func newPeer(ctx context.Context, cancel context.CancelFunc, s *server, conn net.Conn, id string) *peer {
	p := &peer{server: s, conn: conn, ctx: ctx, cancel: cancel, id: id, readEnded: make(chan struct{}),
		turn: make(chan struct{}), txs: map[uint64]*work{}, watches: map[uint64]kv.Watch{}}
	p.room.L = &p.mu
	p.out.init(conn, s.options.WriteTimeout)
	return p
}

// maxStrangers bounds the connections that have not shown their token yet.
const maxStrangers = 256

// welcome lets a client in that knows the token, and counts it.
func (s *server) welcome(conn net.Conn, r *bufio.Reader) (id string, err error) {
	if err := conn.SetDeadline(time.Now().Add(s.options.HandshakeTimeout)); err != nil {
		return "", err
	}
	kind, body, err := readFrame(r, maxHello)
	if err != nil {
		return "", err
	}
	h, err := decodeHello(kind, body)
	if err != nil {
		return "", err
	}
	w := welcome{version: protocolVersion}
	switch {
	case s.options.Token != "" && !sameToken(s.options.Token, h.token):
		w.refusal, err = refusedToken, ErrBadToken
	case h.version != protocolVersion:
		w.refusal, err = refusedVersion, fmt.Errorf("%w: %d", ErrBadVersion, h.version)
	case !s.enter(&s.connections, s.options.MaxConnections):
		w.refusal, w.text = refusedFull, fmt.Sprintf("%d connections are open, no more are allowed", s.options.MaxConnections)
		err = errors.New(w.text)
	default:
		w.opening = opening(s.db)
	}
	_, failed := conn.Write(appendFrame(nil, frameHello, w.encode(), nil))
	if err != nil {
		return "", err
	}
	if failed == nil {
		failed = conn.SetDeadline(time.Time{})
	}
	if failed != nil {
		s.leave(&s.connections)
	}
	return h.id, failed
}

// opening names the opening of a store, if it has a name.
func opening(db kv.Database) string {
	switch db := db.(type) {
	case kv.Local:
		return db.Opening()
	case kv.Shared:
		return db.SharedOpening()
	}
	return ""
}

// end ends everything of the connection and waits for it.
func (p *peer) end() {
	p.cancel()
	_ = p.conn.Close()
	p.out.fail(net.ErrClosed)
	p.mu.Lock()
	p.closed = true
	txs, watches := p.txs, p.watches
	p.txs, p.watches = nil, nil
	p.room.Broadcast()
	p.mu.Unlock()
	for _, w := range watches {
		w.Cancel()
	}
	for _, t := range txs {
		t.abandon()
	}
	p.running.Wait()
}

// watchOver ends a connection that gives no sign of life, and transactions that
// were left alone.
func (p *peer) watchOver() {
	o := p.server.options
	interval := max(min(o.IdleTimeout, o.TransactionTimeout)/3, time.Millisecond)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	// Looks are counted, not time: a process that was stopped has not looked.
	seen, still := p.frames.Load(), time.Duration(0)
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-ticker.C:
			p.expire(now)
		}
		if now := p.frames.Load(); now != seen {
			seen, still = now, 0
			continue
		}
		if still += interval; still >= o.IdleTimeout {
			o.Logger.Warn("a client gives no sign of life", "connection", p.id)
			_ = p.conn.Close()
			return
		}
	}
}

// expire ends transactions that were left alone.
func (p *peer) expire(now time.Time) {
	p.mu.Lock()
	var old []*work
	for _, t := range p.txs {
		if now.Sub(t.usedAt()) > p.server.options.TransactionTimeout {
			old = append(old, t)
		}
	}
	p.mu.Unlock()
	for _, t := range old {
		if t.giveUp() {
			p.failTx(t.number, fmt.Errorf("%w: it was left alone for %v", kv.ErrTooOld, p.server.options.TransactionTimeout))
		}
	}
}

// maxIdle bounds the goroutines of a connection that wait for their turn to
// read.
const maxIdle = 16

// read takes frames until the connection ends. Whoever has read a batch does
// it, and leaves the reading to another goroutine: an answer then needs no
// switch between goroutines.
func (p *peer) read(r *bufio.Reader) {
	for {
		t := p.readWork(r)
		if t == nil {
			close(p.readEnded)
			return
		}
		select {
		case p.turn <- struct{}{}:
		default:
			p.running.Go(func() { p.read(r) })
		}
		t.run()
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case <-p.turn:
			p.idle.Add(-1)
		case <-p.readEnded:
			return
		}
	}
}

// readWork reads up to a batch that nobody does yet. It returns nil where the
// connection ends.
func (p *peer) readWork(r *bufio.Reader) *work {
	for {
		kind, body, err := readFrame(r, p.server.options.MaxFrame)
		if err != nil {
			p.cause = err
			return nil
		}
		p.frames.Add(1)
		t, err := p.take(kind, body)
		if err != nil {
			p.server.options.Logger.Warn("a client was cut off", "connection", p.id, "error", err)
		}
		if err != nil || p.goodbye {
			p.cause = err
			return nil
		}
		if t != nil {
			return t
		}
	}
}

// take handles one frame. It returns a transaction that has something to do and
// that nobody runs. An error ends the connection.
func (p *peer) take(kind byte, body []byte) (*work, error) {
	d := &decoder{b: body}
	switch kind {
	case frameBatch:
		return p.takeBatch(d)
	case frameCancelTx:
		number := d.uvarint()
		if t := p.find(number); t != nil {
			t.abandon()
		}
	case frameCancelWatch:
		p.cancelWatch(d.uvarint())
	case framePing:
		_ = p.out.send(framePong, nil, nil)
	case frameGoodbye:
		p.goodbye = true
	default:
		return nil, fmt.Errorf("%w: a frame of kind %d", errMalformed, kind)
	}
	return nil, d.end()
}

func (p *peer) takeBatch(d *decoder) (*work, error) {
	number, flags := d.uvarint(), d.byte()
	if flags&^(flagBegin|flagNoSync) != 0 {
		d.fail()
	}
	if flags&flagBegin != 0 {
		tag := string(d.bytes())
		if d.err != nil {
			return nil, d.err
		}
		if err := p.begin(number, kv.Options{NoSync: flags&flagNoSync != 0, Tag: tag}); err != nil {
			return nil, err
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	t := p.find(number)
	if t == nil {
		p.failTx(number, fmt.Errorf("%w: the server has ended it", kv.ErrTooOld))
		return nil, nil
	}
	if !p.reserve(len(d.b)) {
		return nil, net.ErrClosed
	}
	if !t.push(d.b) {
		return nil, nil
	}
	return t, nil
}

// begin starts a transaction, or fails it if there are too many.
func (p *peer) begin(number uint64, o kv.Options) error {
	p.mu.Lock()
	if p.txs[number] != nil {
		p.mu.Unlock()
		return fmt.Errorf("%w: transaction %d begins twice", errMalformed, number)
	}
	n, limit := len(p.txs), p.server.options.MaxTransactions
	if n < limit {
		p.txs[number] = newWork(p, number, o)
	}
	p.mu.Unlock()
	if n >= limit {
		p.failTx(number, fmt.Errorf("%w: the connection has %d transactions open, no more are allowed",
			kv.ErrUnavailable, limit))
	}
	return nil
}

func (p *peer) find(number uint64) *work {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.txs[number]
}

func (p *peer) forget(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.txs, number)
}

// reserve waits until n bytes more may wait for their transactions, and tells
// whether the connection is still there.
func (p *peer) reserve(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.queued > maxQueued && !p.closed {
		p.room.Wait()
	}
	p.queued += n
	return !p.closed
}

func (p *peer) release(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued -= n
	p.room.Signal()
}

// failTx tells the client that a transaction has ended.
func (p *peer) failTx(number uint64, err error) {
	_ = p.out.send(frameTxFailed, appendError(binary.AppendUvarint(nil, number), err), nil)
}

// addWatch tells the client when w ends.
func (p *peer) addWatch(id uint64, w kv.Watch) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		w.Cancel()
		return
	}
	p.watches[id] = w
	p.running.Add(1)
	p.mu.Unlock()
	go func() {
		defer p.running.Done()
		<-w.Done()
		p.mu.Lock()
		_, wanted := p.watches[id]
		delete(p.watches, id)
		p.mu.Unlock()
		if !wanted {
			return
		}
		head := binary.AppendUvarint(nil, id)
		if err := w.Err(); err != nil {
			head = appendError(head, err)
		}
		_ = p.out.send(frameWatchEnded, head, nil)
	}()
}

func (p *peer) cancelWatch(id uint64) {
	p.mu.Lock()
	w := p.watches[id]
	delete(p.watches, id)
	p.mu.Unlock()
	if w != nil {
		w.Cancel()
	}
}

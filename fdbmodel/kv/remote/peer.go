package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// peer is a client's connection as the server sees it.
type peer struct {
	server *server
	conn   net.Conn
	in     inbox
	out    outbox
	ctx    context.Context
	cancel context.CancelFunc
	// running is the goroutines of the connection.
	running sync.WaitGroup
	frames  atomic.Uint64
	waiting atomic.Bool   // it is the server that keeps the client waiting
	ponging atomic.Bool   // a sign of life is being sent
	reads   chan struct{} // has a value for each batch that reads
	id      string

	// What follows belongs to read, and then to serve.
	goodbye   bool
	cause     error
	readEnded chan struct{}

	turn  chan struct{} // passes the reading on
	idle  atomic.Int32  // goroutines that wait for it
	batch atomic.Uint64 // odd while the goroutine that has read a batch has the reading, and runs the batch

	mu      sync.Mutex
	txs     map[uint64]*work
	watches map[uint64]kv.Watch
	queued  int   // bytes of frames that wait for their transactions
	held    int64 // bytes of transactions
	watched int64 // bytes of watches
	room    sync.Cond
	closed  bool
}

// readBuffer is the size of a connection's buffer for reading, in bytes.
const readBuffer = 32 << 10

// serve answers one connection until it ends.
func (s *server) serve(raw net.Conn) {
	defer s.unauthenticated.remove(raw)
	conn := raw
	if s.options.TLS != nil {
		conn = tls.Server(raw, s.options.TLS)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	// Closing the connection ends its reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	hello := bufio.NewReaderSize(conn, maxHello)
	id, err := s.welcome(conn, hello)
	s.unauthenticated.remove(raw)
	if errors.Is(err, errSilent) || s.ctx.Err() != nil {
		return
	}
	if err != nil {
		s.log.Warn("a client was refused", "from", conn.RemoteAddr(), "error", err)
		return
	}
	defer s.leave()
	p := newPeer(ctx, cancel, s, conn, id)
	p.in.r = bufio.NewReaderSize(hello, readBuffer)
	ended := make(chan struct{})
	defer close(ended)
	s.come(id, &slot{peer: p, ended: ended})
	s.options.Logger.Debug("a client connected", "connection", id)
	p.running.Go(p.watchOver)
	p.running.Go(p.read)
	<-p.readEnded
	p.end()
	s.options.Logger.Debug("a connection ended", "connection", id, "cause", p.cause)
	s.goAway(id, p.goodbye)
}

func newPeer(ctx context.Context, cancel context.CancelFunc, s *server, conn net.Conn, id string) *peer {
	p := &peer{server: s, conn: conn, ctx: ctx, cancel: cancel, id: id, readEnded: make(chan struct{}),
		reads: make(chan struct{}, maxReads), turn: make(chan struct{}), txs: map[uint64]*work{},
		watches: map[uint64]kv.Watch{}}
	p.room.L = &p.mu
	p.in = inbox{conn: conn, limit: s.options.MaxFrame, timeout: s.options.IdleTimeout}
	p.out.init(conn, s.options.WriteTimeout, maxUnread)
	p.out.alone = 1
	return p
}

// errSilent is the end of a connection that sent nothing, such as that of a command
// which looks whether a server is there, or that was gone before the answer. It was not refused.
var errSilent = errors.New("nothing was sent")

// welcome lets a client in that knows the token, and counts it.
func (s *server) welcome(conn net.Conn, r *bufio.Reader) (id string, err error) {
	if err := conn.SetDeadline(time.Now().Add(s.options.HandshakeTimeout)); err != nil {
		return "", err
	}
	if _, err := r.Peek(1); errors.Is(err, io.EOF) {
		return "", errSilent
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
	case !s.enter():
		w.refusal, w.text = refusedFull, fmt.Sprintf("%d connections are open, as many as allowed", s.options.MaxConnections)
		err = errors.New(w.text)
	default:
		w.opening = kv.TraitsOf(s.db).Opening
	}
	_, failed := conn.Write(appendFrame(nil, frameHello, w.encode(), nil))
	if err != nil {
		return "", err
	}
	if failed == nil {
		failed = conn.SetDeadline(time.Time{})
	}
	if failed != nil {
		s.leave()
		return "", errSilent
	}
	return h.id, nil
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
		t.abandon(nil)
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
		if now := p.frames.Load(); now != seen || p.waiting.Load() {
			seen, still = now, 0
			continue
		}
		if still += interval; still >= o.IdleTimeout {
			p.server.log.Warn("a client gives no sign of life", "connection", p.id)
			_ = p.conn.Close()
			return
		}
	}
}

// expire ends transactions that were left alone.
func (p *peer) expire(now time.Time) {
	p.mu.Lock()
	open := slices.Collect(maps.Values(p.txs))
	p.mu.Unlock()
	for _, t := range open {
		if now.Sub(t.usedAt()) > p.server.options.TransactionTimeout {
			t.giveUp(fmt.Errorf("%w: it was idle for %v", kv.ErrTooOld, p.server.options.TransactionTimeout))
		}
	}
}

// readWork reads up to a batch that no goroutine runs yet. It returns nil where the
// connection ends.
func (p *peer) readWork() *work {
	for {
		var frame batch
		kind, body, err := p.in.next(func(size int) (err error) {
			frame, err = p.admit(size)
			return err
		})
		if err != nil {
			p.release(frame)
			p.cause = err
			return nil
		}
		p.frames.Add(1)
		t, err := p.take(kind, body, frame)
		if err != nil {
			p.server.log.Warn("a client was cut off", "connection", p.id, "error", err)
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
// that no goroutine runs. An error ends the connection.
func (p *peer) take(kind byte, body []byte, frame batch) (*work, error) {
	d := &decoder{b: body}
	if kind == frameBatch {
		return p.takeBatch(d, frame)
	}
	p.release(frame)
	switch kind {
	case frameCancelTx:
		number := d.uvarint()
		if t := p.find(number); t != nil {
			t.leave()
		}
	case frameCancelWatch:
		p.cancelWatch(d.uvarint())
	case framePing:
		p.pong()
	case frameGoodbye:
		p.goodbye = true
	default:
		return nil, fmt.Errorf("%w: a frame of kind %d", errMalformed, kind)
	}
	return nil, d.end()
}

// pong gives the client a sign of life, unless one is on its way. It does not wait: who writes goes on with what others
// send meanwhile, and the next frames are not to wait for the end of that.
func (p *peer) pong() {
	if !p.ponging.CompareAndSwap(false, true) {
		return
	}
	p.running.Go(func() {
		defer p.ponging.Store(false)
		_ = p.out.send(framePong, nil, nil)
	})
}

// takeBatch passes a batch to its transaction, which gives its memory back.
func (p *peer) takeBatch(d *decoder, frame batch) (_ *work, err error) {
	number, flags := d.uvarint(), d.byte()
	if flags&^(flagBegin|flagNoSync|flagTurns) != 0 {
		d.fail()
	}
	taken := false
	defer func() {
		if !taken {
			p.release(frame)
		}
	}()
	if flags&flagBegin != 0 {
		tag := string(d.bytes())
		if len(tag) > kv.MaxTag {
			d.fail()
		}
		if d.err != nil {
			return nil, d.err
		}
		o := kv.Options{NoSync: flags&flagNoSync != 0, Turns: flags&flagTurns != 0, Tag: tag}
		if err := p.begin(number, o); err != nil {
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
	frame.ops = d.b
	taken, idle := t.push(frame)
	if !idle {
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
	p.mu.Unlock()
	if n >= limit {
		p.failTx(number, fmt.Errorf("%w: the connection has %d transactions open, as many as allowed",
			kv.ErrUnavailable, limit))
		return nil
	}
	if err := p.hold(0, transactionMemory); err != nil {
		p.failTx(number, err)
		return nil
	}
	t := newWork(p, number, o)
	p.mu.Lock()
	p.txs[number] = t
	p.mu.Unlock()
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

// failTx tells the client that a transaction has ended.
func (p *peer) failTx(number uint64, err error) {
	_ = p.out.send(frameTxFailed, appendError(binary.AppendUvarint(nil, number), err), nil)
}

// addWatch watches a key, and tells the client when that ends. It returns false if a watch has that id.
func (p *peer) addWatch(id uint64, tx kv.Tx, key []byte) bool {
	size := int64(watchMemory + len(key))
	if err := p.holdWatch(size); err != nil {
		p.endWatch(id, err)
		return true
	}
	w := tx.Watch(key)
	p.mu.Lock()
	closed, twice := p.closed, p.watches[id] != nil
	if !closed && !twice {
		p.watches[id] = w
		p.running.Add(1)
	}
	p.mu.Unlock()
	if closed || twice {
		w.Cancel()
		p.letWatchGo(size)
		return !twice
	}
	go func() {
		defer p.running.Done()
		<-w.Done()
		p.mu.Lock()
		wanted := p.watches[id] == w // and not another one that was given its id
		if wanted {
			delete(p.watches, id)
		}
		p.mu.Unlock()
		if wanted {
			p.endWatch(id, w.Err()) // waits for a client that does not read
		}
		p.letWatchGo(size)
	}()
	return true
}

// endWatch tells the client that a watch has ended, and why unless it fired.
func (p *peer) endWatch(id uint64, err error) {
	head := binary.AppendUvarint(nil, id)
	if err != nil {
		head = appendError(head, err)
	}
	_ = p.out.send(frameWatchEnded, head, nil)
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

package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// link is a connection as the client sees it. When it breaks, everything that
// uses it ends, and the Database makes another.
type link struct {
	db      *Database
	conn    net.Conn
	in      inbox
	out     outbox
	opening string
	frames  atomic.Uint64
	broken  chan struct{}

	mu      sync.Mutex
	err     error // why it is broken
	txs     table[*exchange]
	watches table[*watch]
}

func newLink(d *Database, conn net.Conn, r *bufio.Reader, w welcome) *link {
	l := &link{db: d, conn: conn, opening: w.opening, broken: make(chan struct{}),
		txs: table[*exchange]{at: map[uint64]*exchange{}}, watches: table[*watch]{at: map[uint64]*watch{}}}
	silence := pingsToDeath * d.options.PingInterval
	l.in = inbox{conn: conn, r: r, limit: maxAnswerFrame, timeout: silence}
	l.out.init(conn, silence, maxUnsent)
	d.running.Go(l.read)
	d.running.Go(l.ping)
	return l
}

func (l *link) isBroken() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// maxUnsent is what may wait to be written to the server before transactions
// have to wait.
const maxUnsent = 4 << 20

// pingsToDeath is how many intervals in a row a server may keep silent.
const pingsToDeath = 3

// ping asks for signs of life, and breaks the connection if none comes.
func (l *link) ping() {
	ticker := time.NewTicker(l.db.options.PingInterval)
	defer ticker.Stop()
	seen, silent := l.frames.Load(), 0
	for {
		select {
		case <-l.broken:
			return
		case <-ticker.C:
		}
		if now := l.frames.Load(); now != seen {
			seen, silent = now, 0
		} else if silent++; silent > pingsToDeath {
			l.fail(fmt.Errorf("%w: %s has given no sign of life for %v", kv.ErrUnavailable, l.db.address,
				time.Duration(silent)*l.db.options.PingInterval))
			return
		}
		// A write to a server that does not read blocks, and the next look must
		// come all the same.
		if silent <= 1 {
			l.db.running.Go(func() { l.send(framePing, nil, nil) })
		}
	}
}

// send passes a frame on. A failure breaks the connection; whether the frame
// reached the server is not known then.
func (l *link) send(kind byte, head, body []byte) {
	if err := l.out.send(kind, head, body); err != nil {
		l.fail(l.lost(err))
	}
}

func (l *link) lost(err error) error {
	return fmt.Errorf("%w: the connection to %s was lost: %w", kv.ErrUnavailable, l.db.address, bare(err))
}

// bare returns err without the addresses that the system names, which say
// nothing to people.
func bare(err error) error {
	var system *net.OpError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}

// leave ends the connection for good.
func (l *link) leave() {
	if !l.isBroken() {
		// A client that goes need not wait for a server that does not read.
		l.out.hurry(goodbyeTimeout)
		_ = l.out.send(frameGoodbye, nil, nil)
	}
	l.fail(l.db.ending())
}

// goodbyeTimeout bounds the last word to a server.
const goodbyeTimeout = 100 * time.Millisecond

// fail breaks the connection. The first reason stays, except that what breaks
// while the Database closes has ended by that: the server may hang up first.
func (l *link) fail(err error) {
	if l.db.ctx.Err() != nil {
		err = l.db.ending()
	}
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = err
	txs, watches := l.txs.at, l.watches.at
	l.txs.at, l.watches.at = nil, nil
	l.mu.Unlock()
	close(l.broken)
	_ = l.conn.Close()
	l.out.fail(net.ErrClosed)
	for _, x := range txs {
		x.fail(err)
	}
	for _, w := range watches {
		w.settle(err)
	}
}

// add gives a transaction its number.
func (l *link) add(x *exchange) (uint64, error) { return enter(l, &l.txs, x) }

// addWatch gives a watch its number.
func (l *link) addWatch(w *watch) (uint64, error) { return enter(l, &l.watches, w) }

// table is what has numbers on a link, whose lock guards it.
type table[T any] struct {
	last uint64
	at   map[uint64]T
}

func enter[T any](l *link, in *table[T], what T) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	in.last++
	in.at[in.last] = what
	return in.last, nil
}

// drop forgets a transaction, and dropWatch a watch.
func (l *link) drop(number uint64) *exchange { return leave(l, &l.txs, number) }

func (l *link) dropWatch(number uint64) *watch { return leave(l, &l.watches, number) }

func leave[T any](l *link, in *table[T], number uint64) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := in.at[number]
	delete(in.at, number)
	return what
}

// read takes frames until the connection breaks.
func (l *link) read() {
	for {
		kind, body, err := l.in.next(nil)
		if err == nil {
			l.frames.Add(1)
			err = l.take(kind, body)
		}
		if err != nil {
			l.fail(l.lost(err))
			return
		}
	}
}

// take handles one frame. An error ends the connection.
func (l *link) take(kind byte, body []byte) error {
	d := &decoder{b: body}
	switch kind {
	case frameAnswers:
		number := d.uvarint()
		l.mu.Lock()
		x := l.txs.at[number]
		l.mu.Unlock()
		if x == nil {
			return d.err // the transaction was given up meanwhile
		}
		for d.more() {
			x.answer(d)
		}
		return d.end()
	case frameTxFailed:
		number, err := d.uvarint(), d.error()
		x := l.drop(number)
		if x != nil && d.err == nil {
			x.fail(err)
		}
		return d.end()
	case frameWatchEnded:
		w := l.dropWatch(d.uvarint())
		var err error
		if d.more() {
			err = d.error()
		}
		if w != nil && d.err == nil {
			w.settle(err)
		}
		return d.end()
	case framePong:
		return d.end()
	}
	return fmt.Errorf("%w: a frame of kind %d", errMalformed, kind)
}

// cancelTx tells the server that a transaction is over.
func (l *link) cancelTx(number uint64) {
	l.drop(number)
	l.send(frameCancelTx, binary.AppendUvarint(nil, number), nil)
}

// cancelWatch tells the server that a watch of a committed transaction is not
// wanted any more.
func (l *link) cancelWatch(id uint64) {
	l.send(frameCancelWatch, binary.AppendUvarint(nil, id), nil)
}

package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/connlimit"
	"github.com/futura-run/futura/internal/ratelog"
)

// ServerOptions of Serve. The zero value is right for a Unix socket.
type ServerOptions struct {
	// Token is what clients must give, at most 1,024 bytes. TCP needs one.
	// Defaults to none: the socket's mode says who may connect.
	Token string

	// TLS encrypts connections. Defaults to none.
	TLS *tls.Config

	// PlainText allows TCP without TLS beyond this machine, where others can
	// read the token and the store. Defaults to false.
	PlainText bool

	// MaxMemory bounds the bytes that the server holds for all connections
	// together: their buffers, frames, open transactions, watches and answers.
	// What would need more waits, or fails with kv.ErrUnavailable or
	// kv.ErrTooManyWatches. A connection has at most half of what transactions have,
	// and half of what watches have. Defaults to 512 MiB, and is at least 32 MiB.
	MaxMemory int64

	// MaxConnections bounds the connections. More are refused with
	// kv.ErrUnavailable. It is at most 5 for each 16 MiB of MaxMemory, and
	// defaults to that or to half of the file descriptors that the process may
	// have, whichever is less.
	MaxConnections int

	// MaxTransactions bounds the open transactions of a connection. More fail
	// with kv.ErrUnavailable. Defaults to 10,000.
	MaxTransactions int

	// MaxFrame is the longest frame that is taken from a client, in bytes. A
	// client that sends more is cut off. Defaults to 1 MiB, and is at least
	// 512 KiB.
	MaxFrame int

	// HandshakeTimeout bounds the time until a client has shown its token.
	// Defaults to 5 s. It ends sooner where more than 64 wait, or an eighth of
	// the file descriptors: then the oldest of the address that has most of them
	// is closed.
	HandshakeTimeout time.Duration

	// IdleTimeout is how long a client may give no sign of life before its
	// connection is closed, and how long a frame may take from its first byte to
	// its last. Clients give a sign every 3 s. Defaults to 15 s.
	IdleTimeout time.Duration

	// WriteTimeout bounds one write to a client that does not read. Defaults
	// to 15 s.
	WriteTimeout time.Duration

	// TransactionTimeout is how long an open transaction may be left alone
	// before it ends with kv.ErrTooOld. Defaults to 30 s.
	TransactionTimeout time.Duration

	// Grace is how long a client may be away before OnDisconnect is called; one
	// that closes its Database is gone at once. Defaults to 1 s.
	Grace time.Duration

	// OnConnect is called when a client connects for the first time, or again after
	// OnDisconnect has returned, with the name of its Database. It must not block. Defaults to
	// nothing.
	OnConnect func(connection string)

	// Returning are the names of clients of an earlier server that are expected to connect.
	// Those that have not after ReturnGrace are gone. Defaults to none.
	Returning []string

	// ReturnGrace is how long they have. Defaults to 3 s.
	ReturnGrace time.Duration

	// OnDisconnect is called when a client is gone, with the name that its
	// Database gave as ConnectionID. It runs on a goroutine of its own, which
	// Serve waits for before it returns. It is not called for clients that are
	// connected when Serve ends. Defaults to nothing.
	OnDisconnect func(connection string)

	// Logger receives clients that connect, leave or are refused. Defaults to
	// none.
	Logger *slog.Logger
}

func (o ServerOptions) withDefaults() ServerOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnDisconnect == nil {
		o.OnDisconnect = func(string) {}
	}
	o.ReturnGrace = orDefault(o.ReturnGrace, 3*time.Second)
	o.MaxMemory = max(orDefault(o.MaxMemory, 512<<20), 32<<20)
	o.MaxConnections = min(orDefault(o.MaxConnections, connlimit.Descriptors()/2), memoryConnections(o.MaxMemory))
	o.MaxTransactions = orDefault(o.MaxTransactions, 10_000)
	o.MaxFrame = max(orDefault(o.MaxFrame, 1<<20), minFrame)
	o.HandshakeTimeout = orDefault(o.HandshakeTimeout, 5*time.Second)
	o.IdleTimeout = orDefault(o.IdleTimeout, 15*time.Second)
	o.WriteTimeout = orDefault(o.WriteTimeout, 15*time.Second)
	o.TransactionTimeout = orDefault(o.TransactionTimeout, 30*time.Second)
	o.Grace = orDefault(o.Grace, time.Second)
	return o
}

func orDefault[T int | int64 | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// check returns ErrInsecure if the listener would show the store to others.
func (o ServerOptions) check(l net.Listener) error {
	if len(o.Token) > maxToken {
		return fmt.Errorf("%w: the token has %d bytes: at most %d", ErrInsecure, len(o.Token), maxToken)
	}
	at := Address{Network: l.Addr().Network(), Target: l.Addr().String()}
	switch {
	case at.Network != "tcp":
		return nil
	case o.Token == "":
		return fmt.Errorf("%w: %s has no token: every user of the machine could use the store", ErrInsecure, at)
	case at.leavesMachine() && o.TLS == nil && !o.PlainText:
		return fmt.Errorf("%w: %s has no TLS: the token and the store could be read on the way; listen on 127.0.0.1, "+
			"give a certificate, or allow plain text", ErrInsecure, at)
	}
	return nil
}

// Serve lets clients that connect to l use db, until ctx ends: then it closes l
// and all connections and returns nil once their goroutines are gone. It
// returns ErrInsecure before it serves anyone, and an error of l if that fails.
// db stays open; it should be closed after Serve has returned. What a client
// had under way ends with kv.ErrUnavailable, or with kv.ErrUnknownResult if it
// was a commit.
func Serve(ctx context.Context, l net.Listener, db kv.Database, o ServerOptions) error {
	o = o.withDefaults()
	if err := o.check(l); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(ctx, db, o)
	defer s.log.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	s.running.Go(s.passOn)
	err := s.accept(l)
	cancel()
	_ = l.Close()
	s.leaveAll()
	s.running.Wait()
	return err
}

// server is one run of Serve.
type server struct {
	db      kv.Database
	traits  kv.Traits // the functions of
	options ServerOptions
	ctx     context.Context
	running sync.WaitGroup
	memory  memory
	log     *ratelog.Log

	unauthenticated unauthenticated

	mu          sync.Mutex
	connections int // that have shown their token
	clients     map[string]*presence
	leaving     map[string]chan struct{} // closed once OnDisconnect has returned
}

func newServer(ctx context.Context, db kv.Database, o ServerOptions) *server {
	s := &server{db: db, traits: kv.TraitsOf(db), options: o, ctx: ctx, memory: newMemory(o),
		clients:         map[string]*presence{},
		leaving:         map[string]chan struct{}{},
		unauthenticated: unauthenticated{limit: max(1, min(maxUnauthenticated, connlimit.Descriptors()/8))},
		log:             ratelog.New(o.Logger, clock.Real{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range o.Returning {
		p := &presence{}
		p.gone = time.AfterFunc(o.ReturnGrace, func() { s.miss(id, p) })
		s.clients[id] = p
	}
	return s
}

// presence is a client, however often it connects.
type presence struct {
	connections int
	gone        *time.Timer // runs while there are no connections
	last        *slot       // the newest connection
}

// slot is what one connection of a client takes: a client has one at a time.
type slot struct {
	peer  *peer
	ended chan struct{} // closed once nothing of it is under way
	batch uint64        // that it was seen with last
}

// accept takes connections until ctx ends.
func (s *server) accept(l net.Listener) error {
	const firstPause, longestPause = 5 * time.Millisecond, 100 * time.Millisecond
	pause := firstPause
	for {
		conn, err := l.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("remote: the listener was closed: %w", err)
		case err != nil:
			// A process that is out of file descriptors gets some back.
			s.log.Warn("a connection could not be accepted", "error", err)
			s.unauthenticated.dismiss()
			_ = clock.Sleep(s.ctx, clock.Real{}, pause) // Accept tells the end
			pause = min(2*pause, longestPause)
			continue
		}
		pause = firstPause
		if s.unauthenticated.add(conn) {
			s.log.Warn("too many clients have not shown their token", "from", conn.RemoteAddr())
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

// enter counts one more connection, unless there are too many.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections >= s.options.MaxConnections {
		return false
	}
	s.connections++
	return true
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections--
}

// come says that a client has connected, and waits for the end of its connection
// before: a commit of that one whose result is unknown is made by then or never, so it
// can't follow its retry.
func (s *server) come(id string, now *slot) {
	before, known := s.takeSlot(id, now)
	if !known && s.options.OnConnect != nil {
		s.awaitLeave(id)
		s.options.OnConnect(id)
	}
	if before != nil {
		s.options.Logger.Debug("a client reconnected while its previous connection ends", "connection", id)
		before.peer.cancel()
		<-before.ended
	}
}

// awaitLeave waits until OnDisconnect, if it runs for a client, has returned: what OnConnect says is newer.
func (s *server) awaitLeave(id string) {
	s.mu.Lock()
	left := s.leaving[id]
	s.mu.Unlock()
	if left != nil {
		<-left
	}
}

// takeSlot makes a connection the client's newest one, and returns the one before, and whether
// the client was there before or expected.
func (s *server) takeSlot(id string, now *slot) (before *slot, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.clients[id]
	if known = p != nil; !known {
		p = &presence{}
		s.clients[id] = p
	}
	if p.gone != nil {
		p.gone.Stop()
		p.gone = nil
	}
	p.connections++
	before, p.last = p.last, now
	return before, known
}

// goAway says that a connection of a client has ended, for good or for now.
func (s *server) goAway(id string, forGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.clients[id]
	p.connections--
	if p.connections > 0 || s.ctx.Err() != nil {
		return
	}
	grace := s.options.Grace
	if forGood {
		grace = 0
	}
	p.gone = time.AfterFunc(grace, func() { s.miss(id, p) })
}

// miss gives up a client that has not come back.
func (s *server) miss(id string, p *presence) {
	s.mu.Lock()
	if s.clients[id] != p || p.connections > 0 || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	delete(s.clients, id)
	left := make(chan struct{})
	s.leaving[id] = left
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	s.options.Logger.Debug("a client is gone", "connection", id)
	s.options.OnDisconnect(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[id] == left {
		delete(s.leaving, id)
	}
	close(left)
}

// leaveAll stops waiting for clients to come back.
func (s *server) leaveAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.clients {
		if p.gone != nil {
			p.gone.Stop()
		}
	}
}

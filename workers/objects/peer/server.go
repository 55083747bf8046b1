package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/connlimit"
	"github.com/futura-run/futura/workers/objects"
)

// ServerOptions of Serve.
type ServerOptions struct {
	// Token is what clients must know, from 16 to 1,024 bytes, drawn at random.
	Token string
	// TLS encrypts connections. Defaults to none.
	TLS *tls.Config
	// PlainText allows TCP without TLS beyond this machine, where others can read
	// the objects. Defaults to false.
	PlainText bool
	// MaxConnections bounds the connections. Defaults to 1,024, or a third of the
	// descriptors that the process may have, if that is less.
	MaxConnections int
	// MaxBuffers bounds the pieces that are in memory to be sent, 512 KiB each;
	// objects in memory need none. Defaults to 64.
	MaxBuffers int
	// MaxMapped bounds the objects that one connection holds mapped. Defaults to
	// 1,024.
	MaxMapped int
	// Puts lets clients put objects into the store, as long as it has room. Defaults
	// to false.
	Puts bool
	// Kept is called for an object that was put, with its owner as the client names
	// it, before others can delete it. It must not use the store. Defaults to none.
	Kept func(Owner, objects.Ref)
	// Take gets what belongs to an owner from where it is into the store. It may call
	// Arrived from any goroutine until it returns. Defaults to none: it is refused.
	Take func(context.Context, Owner, TakeOptions) error
	// Accepts returns an error while puts, takes and questions for room are refused
	// with it; also at the end of a put, which then is none. Defaults to none.
	Accepts func() error
	// Hints takes the hints of clients, over a quarter of the connections at most.
	// Defaults to none: they are refused.
	Hints Hints
	// HandshakeTimeout bounds the time until a client has shown that it knows the
	// token. Defaults to 5 s.
	HandshakeTimeout time.Duration
	// IdleTimeout is how long a connection may be without a request, unless it
	// holds mapped objects. Defaults to 1 min.
	IdleTimeout time.Duration
	// PieceTimeout is how long a client may take to read or to send a piece.
	// Defaults to 30 s.
	PieceTimeout time.Duration
	// Logger receives connections that are refused. Defaults to none.
	Logger *slog.Logger
}

func (o ServerOptions) withDefaults() ServerOptions {
	o.MaxBuffers = orDefault(o.MaxBuffers, 64)
	o.MaxMapped = orDefault(o.MaxMapped, 1024)
	o.HandshakeTimeout = orDefault(o.HandshakeTimeout, 5*time.Second)
	o.IdleTimeout = orDefault(o.IdleTimeout, time.Minute)
	o.PieceTimeout = orDefault(o.PieceTimeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault[T int | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// maxBatch is the most pieces of a request.
const maxBatch = 64

// Serve lets clients that connect to l read the objects of a store, until ctx ends:
// then it closes l and all connections, and returns nil once their goroutines are
// gone. It returns ErrInsecure before it serves anyone, and an error of l if that
// fails.
func Serve(ctx context.Context, l net.Listener, store *objects.Store, o ServerOptions) error {
	o = o.withDefaults()
	err := checkToken(o.Token)
	if err == nil {
		err = checkPrivacy(l.Addr().Network(), l.Addr().String(), o.TLS, o.PlainText)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	limited := connlimit.Options{Total: o.MaxConnections, Logger: o.Logger}
	if o.TLS == nil {
		limited.Refusal = greeting(busyVersion, [nonceSize]byte{})
	}
	bounded := connlimit.New(l, limited)
	s := &server{
		store: store, options: o, buffers: make(chan struct{}, o.MaxBuffers),
		hinting: make(chan struct{}, max(1, bounded.Total()/hintShare)),
	}
	return s.serve(ctx, bounded)
}

type server struct {
	store   *objects.Store
	options ServerOptions
	buffers chan struct{} // places for pieces in memory
	hinting chan struct{} // places for connections for hints
}

func (s *server) serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	closed := make(chan error, 1)
	all.Go(func() {
		<-ctx.Done()
		closed <- l.Close()
	})
	for {
		below, err := l.Accept()
		switch {
		case err == nil:
			all.Go(func() { s.connection(ctx, below) })
		case ctx.Err() != nil:
			return <-closed
		case isTemporary(err):
			s.options.Logger.Warn("a connection for objects was not accepted", "error", err)
			if clock.Sleep(ctx, clock.Real{}, acceptPause) != nil {
				return <-closed
			}
		default:
			return fmt.Errorf("objects: accept: %w", err)
		}
	}
}

// acceptPause is the wait after a lack of descriptors.
const acceptPause = 50 * time.Millisecond

// isTemporary reports whether a listener can go on after an error.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// connection serves one connection until it ends.
func (s *server) connection(ctx context.Context, below net.Conn) {
	c := &link{Conn: below, server: s, mapped: map[objects.Hash][]*objects.Object{}}
	if s.options.TLS != nil {
		c.Conn = tls.Server(below, s.options.TLS)
	}
	defer c.end()
	stop := context.AfterFunc(ctx, func() { _ = below.Close() }) // its reader ends
	defer stop()
	err := c.SetDeadline(time.Now().Add(s.options.HandshakeTimeout))
	if err == nil {
		err = welcome(c, s.options.Token)
	}
	if err == nil {
		release, ok := connlimit.Hold(below, ownerOf(below))
		if !ok {
			return
		}
		defer release()
		err = c.SetDeadline(time.Time{})
	}
	for err == nil {
		err = c.answer(ctx)
	}
	if tcp, ok := lowest(below).(*net.TCPConn); ok && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = tcp.SetLinger(0) // the system keeps nothing for one that doesn't read
	}
	if ctx.Err() == nil && !errors.Is(err, io.EOF) {
		s.options.Logger.Debug("a connection for objects ended", "from", below.RemoteAddr().String(), "error", err)
	}
}

// ownerOf is what connections are counted by.
func ownerOf(c net.Conn) string {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return c.RemoteAddr().Network()
}

// link is a connection on the side of the server.
type link struct {
	net.Conn
	server *server
	held   int
	mapped map[objects.Hash][]*objects.Object
}

func (c *link) end() {
	for _, held := range c.mapped {
		for _, o := range held {
			_ = o.Close() // what it was mapped for is over
		}
	}
	_ = c.Close() // nothing is under way
}

// answer answers one request. An error ends the connection.
func (c *link) answer(ctx context.Context) error {
	var wait time.Time
	if c.held == 0 {
		wait = time.Now().Add(c.server.options.IdleTimeout)
	}
	if err := c.SetReadDeadline(wait); err != nil {
		return err
	}
	var b [requestSize]byte
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(c.server.options.PieceTimeout)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, b[1:]); err != nil {
		return err
	}
	r, err := decodeRequest(&b)
	if err != nil {
		return err
	}
	switch r.op {
	case opRelease:
		return c.release(r.hash)
	case opPut:
		return c.put(ctx, r)
	case opRoom:
		return c.room()
	case opTake:
		return c.take(ctx, r)
	case opHints:
		return c.hints(r)
	}
	o, err := c.server.store.Open(r.hash)
	if err != nil {
		return c.say(reply{status: statusOf(err)})
	}
	if r.op == opMap {
		return c.share(o)
	}
	defer o.Close()
	if r.op == opList {
		return c.list(o)
	}
	return c.pieces(ctx, o, r)
}

// say sends a reply, with the bytes that belong to it.
func (c *link) say(r reply, content ...[]byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.server.options.PieceTimeout)); err != nil {
		return err
	}
	var head [replySize]byte
	r.encode(&head)
	parts := append(net.Buffers{head[:]}, content...)
	_, err := parts.WriteTo(lowest(c.Conn))
	return err
}

// lowest is the connection that can send several parts at once.
func lowest(c net.Conn) net.Conn {
	if _, ok := c.(*tls.Conn); ok {
		return c
	}
	if above, ok := c.(interface{ NetConn() net.Conn }); ok {
		return above.NetConn()
	}
	return c
}

// list sends the hashes of the pieces, a part at a time.
func (c *link) list(o *objects.Object) error {
	const part = 1024
	if err := c.say(reply{status: statusOK, value: uint64(o.Size())}); err != nil {
		return err
	}
	var b []byte
	for pieces := o.Pieces(); len(pieces) > 0; {
		n := min(len(pieces), part)
		b = b[:0]
		for _, hash := range pieces[:n] {
			b = append(b, hash[:]...)
		}
		pieces = pieces[n:]
		if err := c.SetWriteDeadline(time.Now().Add(c.server.options.PieceTimeout)); err != nil {
			return err
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// pieces sends pieces: those in memory from where they are, others from a buffer.
func (c *link) pieces(ctx context.Context, o *objects.Object, r request) error {
	count := uint64(o.Ref().Pieces())
	if r.count == 0 || r.count > maxBatch || r.first >= count || uint64(r.count) > count-r.first {
		return c.say(reply{status: statusNoPieces})
	}
	whole, ok := o.Bytes()
	if !ok {
		if !c.waitForBuffer(ctx) {
			return c.say(reply{status: statusBusy})
		}
		defer func() { <-c.server.buffers }()
	}
	var buffer []byte
	for piece := int(r.first); piece < int(r.first)+int(r.count); piece++ {
		length, offset := o.Ref().PieceLength(piece), int64(piece)*objects.PieceSize
		var content []byte
		if ok {
			content = whole[offset : offset+int64(length)]
		} else {
			if buffer == nil {
				buffer = make([]byte, objects.PieceSize)
			}
			content = buffer[:length]
			if _, err := o.ReadAt(content, offset); err != nil {
				return c.say(reply{status: statusOf(err)})
			}
		}
		if err := c.say(reply{status: statusOK, value: uint64(length)}, content); err != nil {
			return err
		}
	}
	return nil
}

// waitForBuffer waits for a place half as long as for a piece: as long as that, the client waits for an answer.
func (c *link) waitForBuffer(ctx context.Context) bool {
	timer := time.NewTimer(c.server.options.PieceTimeout / 2)
	defer timer.Stop()
	select {
	case c.server.buffers <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// share sends the file of an object, and holds the object.
func (c *link) share(o *objects.Object) error {
	file, ok := o.File()
	connection, unix := lowest(c.Conn).(*net.UnixConn)
	if !ok || !unix || c.held >= c.server.options.MaxMapped {
		return errors.Join(o.Close(), c.say(reply{status: statusNoFile}))
	}
	c.held++
	hash := o.Ref().Hash
	c.mapped[hash] = append(c.mapped[hash], o)
	if err := c.SetWriteDeadline(time.Now().Add(c.server.options.PieceTimeout)); err != nil {
		return err
	}
	var head [replySize]byte
	reply{status: statusOK, value: uint64(o.Size())}.encode(&head)
	return sendFile(connection, head[:], file)
}

// release ends one mapping of an object.
func (c *link) release(hash objects.Hash) error {
	held := c.mapped[hash]
	if len(held) == 0 {
		return fmt.Errorf("%w: %s is not mapped", ErrMalformed, hash)
	}
	o := held[len(held)-1]
	if held = held[:len(held)-1]; len(held) == 0 {
		delete(c.mapped, hash)
	} else {
		c.mapped[hash] = held
	}
	c.held--
	return o.Close()
}

package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers/objects"
)

// Options of a Client.
type Options struct {
	// Token is what servers must know, and what they are shown that the client
	// knows.
	Token string
	// TLS encrypts TCP. Defaults to none.
	TLS *tls.Config
	// PlainText allows TCP without TLS beyond this machine. Defaults to false.
	PlainText bool
	// Parallel is the most connections that get pieces of one object from one
	// source at a time. Defaults to 4.
	Parallel int
	// DialTimeout bounds a connection's beginning, the handshake included. Defaults
	// to 5 s.
	DialTimeout time.Duration
	// PieceTimeout is how long a piece may take to arrive. Defaults to 30 s.
	PieceTimeout time.Duration
	// Attempts is how often in a row all sources may be tried without one piece
	// that arrives. Defaults to 3.
	Attempts int
	// Backoff is the wait between two of these attempts. Defaults to 200 ms.
	Backoff time.Duration
	// Clock is what Backoff is waited on. Defaults to the machine's.
	Clock clock.Clock

	// dial makes a connection. Defaults to a net.Dialer.
	dial func(ctx context.Context, network, target string) (net.Conn, error)
}

// idlePerSource is how many connections to one source are kept for later, and
// idleSources to how many sources.
const (
	idlePerSource = 4
	idleSources   = 64
)

// Client gets objects from the processes that serve them. Its methods may be
// called from many goroutines.
type Client struct {
	options Options

	mu      sync.Mutex
	closed  bool
	idle    map[string][]*source // by address
	leases  map[string]*lease    // by address
	flights map[flightKey]*flight
	flying  sync.WaitGroup
}

// NewClient returns a client. It returns ErrInsecure for a token that can be
// guessed.
func NewClient(o Options) (*Client, error) {
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	o.Parallel = orDefault(o.Parallel, 4)
	o.DialTimeout = orDefault(o.DialTimeout, 5*time.Second)
	o.PieceTimeout = orDefault(o.PieceTimeout, 30*time.Second)
	o.Attempts = orDefault(o.Attempts, 3)
	o.Backoff = orDefault(o.Backoff, 200*time.Millisecond)
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	if o.dial == nil {
		o.dial = new(net.Dialer).DialContext
	}
	return &Client{
		options: o, idle: map[string][]*source{}, leases: map[string]*lease{}, flights: map[flightKey]*flight{},
	}, nil
}

// Close ends what is under way and closes the connections. Objects that are mapped
// stay readable.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	var open []*source
	for _, idle := range c.idle {
		open = append(open, idle...)
	}
	clear(c.idle)
	var leases []*lease
	for _, l := range c.leases {
		leases = append(leases, l)
	}
	clear(c.leases)
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.flying.Wait()
	for _, s := range open {
		_ = s.Close() // it is idle
	}
	for _, l := range leases {
		l.end()
	}
	return nil
}

// source is a connection to a server.
type source struct {
	net.Conn
	client  *Client
	address string
	used    bool // by a request before this one
	unread  bool // more was asked for than was read
}

// connect returns an idle connection, or a new one.
func (c *Client) connect(ctx context.Context, address string) (*source, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, objects.ErrClosed
	}
	if idle := c.idle[address]; len(idle) > 0 {
		s := idle[len(idle)-1]
		c.setIdle(address, idle[:len(idle)-1])
		c.mu.Unlock()
		return s, nil
	}
	c.mu.Unlock()
	return c.dialNew(ctx, address)
}

// dialNew makes a connection.
func (c *Client) dialNew(ctx context.Context, address string) (*source, error) {
	network, target, err := splitAddress(address)
	if err == nil {
		err = checkPrivacy(network, target, c.options.TLS, c.options.PlainText)
	}
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(c.options.DialTimeout)
	dialing, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	below, err := c.options.dial(dialing, network, target)
	if err != nil {
		return nil, err
	}
	s := &source{Conn: below, client: c, address: address}
	if c.options.TLS != nil && network == "tcp" {
		config := c.options.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(target)
		}
		s.Conn = tls.Client(below, config)
	}
	stop := context.AfterFunc(ctx, func() { _ = below.Close() }) // the handshake ends
	err = below.SetDeadline(deadline)
	if err == nil {
		err = introduce(s, c.options.Token)
	}
	if err == nil {
		err = below.SetDeadline(time.Time{})
	}
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return s, nil
}

// keep keeps a connection, on which nothing is under way, for later.
func (c *Client) keep(s *source) {
	c.mu.Lock()
	idle := c.idle[s.address]
	if c.closed || len(idle) >= idlePerSource || len(idle) == 0 && len(c.idle) >= idleSources {
		c.mu.Unlock()
		_ = s.Close() // it is idle
		return
	}
	s.used = true
	c.setIdle(s.address, append(idle, s))
	c.mu.Unlock()
}

func (c *Client) setIdle(address string, idle []*source) {
	if len(idle) == 0 {
		delete(c.idle, address)
		return
	}
	c.idle[address] = idle
}

// with calls use with a connection, and keeps it if there is no error. A
// connection that was idle may have been closed by the server since: then use is
// called with a new one, unless it has begun to get an answer, or has one.
func (c *Client) with(ctx context.Context, address string, use func(*source) (begun bool, err error)) error {
	for {
		s, err := c.connect(ctx, address)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // use ends
		begun, err := use(s)
		if !stop() {
			return errors.Join(ctx.Err(), err)
		}
		answered := err == nil || errors.As(err, new(statusError))
		if answered && !s.unread {
			c.keep(s) // the next request can follow
			return err
		}
		_ = s.Close() // the error is what counts
		if !s.used || begun || answered || errors.Is(err, objects.ErrDamaged) {
			return err
		}
	}
}

// ask sends a request.
func (s *source) ask(r request) error {
	if err := s.SetDeadline(time.Now().Add(s.client.options.PieceTimeout)); err != nil {
		return err
	}
	var b [requestSize]byte
	r.encode(&b)
	_, err := s.Write(b[:])
	return err
}

// list gets the hashes of the pieces of an object.
func (c *Client) list(ctx context.Context, address string, ref objects.Ref) (pieces []objects.Hash, err error) {
	err = c.with(ctx, address, func(s *source) (begun bool, err error) {
		if err := s.ask(request{op: opList, hash: ref.Hash}); err != nil {
			return false, err
		}
		pieces, begun, err = s.readList(ref)
		return begun, err
	})
	return pieces, err
}

// readList reads the answer to a request for the hashes of pieces, and verifies it.
func (s *source) readList(ref objects.Ref) (pieces []objects.Hash, begun bool, err error) {
	if err := readReply(s, uint64(ref.Size)); err != nil {
		return nil, false, err
	}
	if pieces, err = s.readHashes(ref.Pieces()); err == nil {
		err = ref.Verify(pieces)
	}
	return pieces, true, err
}

// readHashes reads hashes, a part at a time.
func (s *source) readHashes(n int) ([]objects.Hash, error) {
	const part = 1024
	var pieces []objects.Hash
	var b [part * len(objects.Hash{})]byte
	for len(pieces) < n {
		some := b[:min(n-len(pieces), part)*len(objects.Hash{})]
		if err := s.SetReadDeadline(time.Now().Add(s.client.options.PieceTimeout)); err != nil {
			return nil, err
		}
		if err := readFull(s, some); err != nil {
			return nil, err
		}
		for ; len(some) > 0; some = some[len(objects.Hash{}):] {
			pieces = append(pieces, objects.Hash(some[:len(objects.Hash{})]))
		}
	}
	return pieces, nil
}

// askPieces asks for a range of pieces, which then have to be read one by one.
func (s *source) askPieces(ref objects.Ref, of span) error {
	s.unread = true
	return s.ask(request{op: opPieces, hash: ref.Hash, first: uint64(of.first), count: uint32(of.count)})
}

// readPiece reads the next piece that was asked for into a buffer of its length.
func (s *source) readPiece(into []byte) error {
	if err := s.SetReadDeadline(time.Now().Add(s.client.options.PieceTimeout)); err != nil {
		return err
	}
	if err := readReply(s, uint64(len(into))); err != nil {
		return err
	}
	return readFull(s, into)
}

func readFull(from io.Reader, b []byte) error {
	_, err := io.ReadFull(from, b)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sourceError is an error of one source. The path of a socket on this machine is no
// part of its text: its reader may be elsewhere, and its worker is known by its id.
func sourceError(address string, err error) error {
	network, path, invalid := splitAddress(address)
	if invalid != nil || network != "unix" {
		return fmt.Errorf("%s: %w", address, err)
	}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	text := "local socket: " + err.Error()
	for _, p := range []string{hidden, path} {
		text = strings.NewReplacer(" @->"+p, "", "->"+p, "", " "+p, "", p, "socket").Replace(text)
	}
	return &localError{err, text}
}

// localError is an error with another text.
type localError struct {
	error
	text string
}

func (e *localError) Error() string { return e.text }
func (e *localError) Unwrap() error { return e.error }

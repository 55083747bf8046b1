package remote

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/socket"
)

// Options of Open. The zero value is right for a Unix socket.
type Options struct {
	// Token is what the server asks for, at most 1,024 bytes. Defaults to none.
	Token string

	// TLS encrypts the connection. Defaults to none.
	TLS *tls.Config

	// Renew returns the token and TLS of a new connection, in place of Token and TLS: they may change while the
	// process runs. Where it fails no connection is made, as where nothing listens. Defaults to nil: they stay.
	Renew func() (token string, tls *tls.Config, err error)

	// PlainText allows TCP without TLS beyond this machine, where others can
	// read the token and the store. Defaults to false.
	PlainText bool

	// DialTimeout bounds an attempt to connect, handshake included. Defaults to
	// 5 s.
	DialTimeout time.Duration

	// PingInterval is how often the connection is looked after. A server that
	// gives no sign of life for four of them counts as gone. Defaults to 3 s.
	PingInterval time.Duration

	// GiveUpAfter is how long the server may be away before everything fails
	// with ErrGone. Until then what fails is retried. Defaults to no bound, which
	// is right for what should outlive a restart of the server.
	GiveUpAfter time.Duration

	// Logger receives, at the level of warnings, that the server is away and that it is back,
	// once each. Defaults to none.
	Logger *slog.Logger

	// Connection names the Database to its servers, in at most 64 bytes. No other one may have
	// the name. Defaults to a random one.
	Connection string

	// Dial makes a connection in place of the address. Defaults to none.
	Dial func(context.Context) (net.Conn, error)

	// OnAway is called when the connection is lost. It must not block. Defaults to nothing.
	OnAway func()
}

func (o Options) withDefaults() Options {
	o.DialTimeout = orDefault(o.DialTimeout, 5*time.Second)
	o.PingInterval = orDefault(o.PingInterval, 3*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnAway == nil {
		o.OnAway = func() {}
	}
	return o
}

// Database is a store that another process serves. It implements kv.Database.
type Database struct {
	address Address
	options Options
	id      string
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	kick    chan struct{} // asks for an attempt to connect now
	buffers sync.Pool     // empty ones, for the operations of transactions

	mu      sync.Mutex
	closed  bool
	retired atomic.Bool
	link    *link    // nil while there is no connection
	attempt *attempt // the next one, while there is no connection
	lost    time.Time
	opening string // of the store that was reached last
}

// attempt is one try to connect.
type attempt struct {
	done chan struct{}
	err  error
}

// Open connects to a server. It returns ErrBadAddress, ErrInsecure,
// ErrBadToken, ErrBadVersion or ErrNotServer, kv.ErrUnavailable if no server
// answers in time, with ErrSilent if one listens, and ctx's error if that ends
// first. A connection that is reset is made once more.
func Open(ctx context.Context, address Address, o Options) (*Database, error) {
	if err := address.check(); err != nil {
		return nil, err
	}
	if address.leavesMachine() && o.TLS == nil && !o.PlainText {
		return nil, fmt.Errorf("%w: %s without TLS: the token and the store could be read on the way; "+
			"give the server's certificate, or allow plain text", ErrInsecure, address)
	}
	o.Connection = cmp.Or(o.Connection, rand.Text())
	d := &Database{address: address, options: o.withDefaults(), id: o.Connection, kick: make(chan struct{}, 1)}
	d.buffers.New = func() any { return make([]byte, 0, firstBuffer) }
	d.ctx, d.cancel = context.WithCancel(context.Background())
	l, err := d.connect(ctx)
	if socket.IsCut(err) { // a busy server closes connections without a token
		l, err = d.connect(ctx)
	}
	if err != nil {
		d.cancel()
		return nil, err
	}
	d.link, d.opening = l, l.opening
	d.running.Go(func() { d.keep(l) })
	return d, nil
}

// firstBuffer is the size of a new buffer, in bytes.
const firstBuffer = 1 << 10

// connect makes a connection and shakes hands.
func (d *Database) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, d.options.DialTimeout)
	defer cancel()
	token, secure := d.options.Token, d.options.TLS
	if d.options.Renew != nil {
		var err error
		if token, secure, err = d.options.Renew(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", kv.ErrUnavailable, d.address, err)
		}
	}
	if len(token) > maxToken { // no server takes a hello as long as it may be
		return nil, fmt.Errorf("%s: %w: it has %d bytes, at most %d", d.address, ErrBadToken, len(token), maxToken)
	}
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, d.unreachable(ctx, err)
	}
	if secure != nil {
		conn = tls.Client(conn, d.named(secure))
	}
	deadline, _ := ctx.Deadline()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	r := bufio.NewReaderSize(conn, readBuffer)
	w, err := greet(conn, r, hello{version: protocolVersion, token: []byte(token), id: d.id}, deadline)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			err = d.silent()
		}
		return nil, d.unreachable(ctx, err)
	}
	return newLink(d, conn, r, w), nil
}

func (d *Database) dial(ctx context.Context) (net.Conn, error) {
	if d.options.Dial != nil {
		return d.options.Dial(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, d.address.Network, d.address.Target)
}

// silent is the error of a server that has taken the connection and says nothing.
func (d *Database) silent() error {
	if d.address.Network == "unix" {
		return fmt.Errorf("%w: %w: is its process stopped?", kv.ErrUnavailable, ErrSilent)
	}
	return fmt.Errorf("%w: %w: is it a Futura store, and does it expect TLS?", kv.ErrUnavailable, ErrSilent)
}

// named is c with the server's name.
func (d *Database) named(c *tls.Config) *tls.Config {
	if c.ServerName != "" || c.InsecureSkipVerify {
		return c
	}
	c = c.Clone()
	c.ServerName, _, _ = net.SplitHostPort(d.address.Target)
	return c
}

// unreachable says what a failed attempt to connect means.
func (d *Database) unreachable(ctx context.Context, err error) error {
	var refused *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.Is(err, ErrBadToken), errors.Is(err, ErrBadVersion), errors.Is(err, ErrNotServer),
		errors.As(err, &refused):
		return fmt.Errorf("%s: %w", d.address, err)
	case errors.Is(err, kv.ErrUnavailable):
		return fmt.Errorf("%s: %w", d.address, err)
	case socket.IsRefused(err), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: nothing listens at %s: is the serving process running? %w", kv.ErrUnavailable, d.address,
			bare(err))
	}
	return fmt.Errorf("%w: %s: %w", kv.ErrUnavailable, d.address, err)
}

// Waits between attempts to reconnect while no operation waits.
const (
	reconnectMin = 20 * time.Millisecond
	reconnectMax = time.Second
)

// keep connects again whenever the connection has broken, until Close.
func (d *Database) keep(l *link) {
	for l != nil {
		select {
		case <-l.broken:
		case <-d.ctx.Done():
			return
		}
		d.mu.Lock()
		if d.link == l {
			d.detach()
		}
		d.mu.Unlock()
		d.options.OnAway()
		l = d.reconnect()
	}
}

// reconnect connects, and returns nil when the database is closed before.
func (d *Database) reconnect() *link {
	warned, began := false, time.Now()
	for wait := reconnectMin; ; wait = min(2*wait, reconnectMax) {
		l, err := d.connect(d.ctx)
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			if l != nil {
				l.fail(d.ending())
			}
			return nil
		}
		last := d.attempt
		last.err = err
		close(last.done)
		d.link, d.attempt = l, nil
		if err == nil {
			d.opening, d.lost = l.opening, time.Time{}
		} else {
			d.attempt = &attempt{done: make(chan struct{})}
		}
		d.mu.Unlock()
		switch {
		case err == nil && warned: // the log has the other line, so it gets this one
			d.options.Logger.Warn("the server of the store is back", "server", d.address.String(),
				"after", time.Since(began).Round(time.Millisecond))
			return l
		case err == nil:
			return l
		case !warned:
			d.options.Logger.Warn("the server of the store is away: what needs it waits", "server", d.address.String(),
				"error", err)
			warned = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-d.kick:
		case <-d.ctx.Done():
		}
		timer.Stop()
	}
}

// current returns the connection, or else the next attempt to make one.
func (d *Database) current() (*link, *attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, d.ending()
	}
	if d.link != nil && d.link.isBroken() {
		d.detach()
	}
	return d.link, d.attempt, nil
}

// detach forgets a broken connection.
func (d *Database) detach() {
	d.link, d.attempt, d.lost = nil, &attempt{done: make(chan struct{})}, time.Now()
}

// away is err, unless the server has been away for too long.
func (d *Database) away(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit := d.options.GiveUpAfter; limit > 0 && !d.lost.IsZero() && time.Since(d.lost) > limit {
		return &answered{meanings: []error{ErrGone, kv.ErrClosed}, text: fmt.Sprintf(
			"%v: no connection to %s for %v: is the serving process running?", ErrGone, d.address, limit)}
	}
	return err
}

// acquire returns a connection, after one more attempt to connect if there is
// none.
func (d *Database) acquire(ctx context.Context) (*link, error) {
	for {
		l, next, err := d.current()
		if l != nil || err != nil {
			return l, err
		}
		signal.Send(d.kick)
		if err := d.away(nil); err != nil {
			return nil, err
		}
		if err := d.await(ctx, next.done); err != nil {
			return nil, err
		}
		if next.err != nil {
			return nil, d.away(next.err)
		}
	}
}

func (d *Database) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.ctx.Done():
		return d.ending()
	}
}

// Traits names the connection, and the opening of the store that was reached
// last.
func (d *Database) Traits() kv.Traits {
	d.mu.Lock()
	defer d.mu.Unlock()
	return kv.Traits{Opening: d.opening, Connection: d.id, WaitConflict: d.waitConflict}
}

// Begin implements kv.Database.
func (d *Database) Begin(o kv.Options) kv.Tx {
	return &tx{db: d, options: o, ops: d.buffers.Get().([]byte)}
}

// IsConnected reports whether there is a connection to the server.
func (d *Database) IsConnected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link != nil && !d.link.isBroken()
}

// Retire closes the Database for good where its work goes on in another one: everything fails
// with kv.ErrUnavailable from now on, and so is repeated, in place of kv.ErrClosed.
func (d *Database) Retire() error {
	d.retired.Store(true)
	return d.Close()
}

// ending is what everything fails with once the Database is closed.
func (d *Database) ending() error {
	if d.retired.Load() {
		return errRetired
	}
	return kv.ErrClosed
}

var errRetired = fmt.Errorf("%w: another process serves it", kv.ErrUnavailable)

// Close implements kv.Database.
func (d *Database) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	l := d.link
	d.mu.Unlock()
	d.cancel()
	if l != nil {
		l.leave()
	}
	d.running.Wait()
	return nil
}

// conflictPause is the wait after a conflict whose other side may not be
// visible yet.
const conflictPause = 5 * time.Millisecond

// waitConflict pauses, unless the server has waited already because its store
// can tell for what.
func (d *Database) waitConflict(ctx context.Context, conflicted kv.Tx) error {
	if t, ok := conflicted.(*tx); ok && t.hasWaited() {
		return ctx.Err()
	}
	timer := time.NewTimer(conflictPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.ctx.Done():
		return d.ending()
	}
}

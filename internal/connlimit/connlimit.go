// Package connlimit bounds the connections that a server has open, per address
// and in all, so that silent ones can't keep others out.
package connlimit

import (
	"cmp"
	"container/list"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Defaults of Options.
const (
	// defaultTotal is the most connections, where the process may have enough
	// descriptors.
	defaultTotal = 1024
	// logGap is the least time between two lines of the log.
	logGap = 10 * time.Second
	// refusalTime bounds the writing of a refusal to an empty send buffer.
	refusalTime = 100 * time.Millisecond
	// parts is the divisor of the places that an owner may hold while others have
	// none, and of those that are kept for connections that wait.
	parts = 4
)

// Options of a Listener. The zero value is right for most servers.
type Options struct {
	// Total is the most connections that are open at a time. Defaults to 1,024,
	// or a third of the descriptors that the process may have, if that is less.
	Total int
	// PerAddress is the most of one address; an IPv6 address is its first 64
	// bits. Connections without an address count in Total alone. Defaults to half
	// of Total.
	PerAddress int
	// Refusal is written to a connection that is refused, if its server speaks
	// first or needs no encryption. Defaults to nothing: it is closed.
	Refusal []byte
	// Logger gets a warning when connections were turned away: at most one line
	// in ten seconds, with their number. Defaults to none.
	Logger *slog.Logger
}

// Stats counts connections.
type Stats struct {
	// Open is how many are open now, Held how many of them can't be turned away.
	Open, Held int
	// Refused and Evicted count those that were turned away: at their arrival,
	// and later, when a new one needed their place.
	Refused, Evicted uint64
}

// Listener is a listener that bounds the connections it accepts. A connection
// waits until Hold is called for it. Where there is no place for a new one, one
// that waits is closed at random, so that a flood does not close all that others
// have just opened: one of the same address if that has too many, else any. If
// less than a quarter of them wait, an owner that holds more than a quarter loses
// the one that it has held longest. The new one is refused if there is neither.
type Listener struct {
	net.Listener
	options Options

	mu        sync.Mutex
	open      int
	waiting   *list.List // of *conn
	held      *list.List // of *conn, the one that was held first is the first
	byAddress map[netip.Addr]int
	stats     Stats
	unlogged  uint64
	logged    time.Time
}

// New returns a listener that bounds the connections of l. Closing it closes l.
func New(l net.Listener, o Options) *Listener {
	if o.Total <= 0 {
		o.Total = min(defaultTotal, max(1, Descriptors()/3))
	}
	o.PerAddress = cmp.Or(max(o.PerAddress, 0), max(1, o.Total/2))
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Listener{
		Listener: l, options: o, waiting: list.New(), held: list.New(), byAddress: map[netip.Addr]int{},
	}
}

// Total is the most connections that are open at a time.
func (l *Listener) Total() int { return l.options.Total }

// Stats returns the counts of the moment.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Open, s.Held = l.open, l.held.Len()
	return s
}

// Accept returns the next connection that has a place. Its errors are those of
// the listener below.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		below, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: below, listener: l, address: addressOf(below)}
		evicted, ok := l.enter(c)
		if evicted != nil {
			_ = evicted.Conn.Close() // its owner sees it closed
		}
		if ok {
			return c, nil
		}
		l.refuse(below)
	}
}

// enter finds a place for a connection, and returns the one that had it.
func (l *Listener) enter(c *conn) (evicted *conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := c.address.IsValid() && l.byAddress[c.address] >= l.options.PerAddress
	if crowded || l.open >= l.options.Total {
		if evicted = l.leastEntitled(c.address, crowded); evicted == nil {
			l.stats.Refused++
			l.warn()
			return nil, false
		}
		l.leave(evicted)
		l.stats.Evicted++
		l.warn()
	}
	l.open++
	if c.address.IsValid() {
		l.byAddress[c.address]++
	}
	c.place = l.waiting.PushBack(c)
	return evicted, true
}

// leastEntitled returns the connection that has to give way to a new one, of one
// address if only those count.
func (l *Listener) leastEntitled(address netip.Addr, only bool) *conn {
	counts := func(c *conn) bool { return !only || c.address == address }
	places, open := l.options.Total, l.open
	if only {
		places, open = l.options.PerAddress, l.byAddress[address]
	}
	all, most, owner := 0, 0, ""
	held := map[string]int{}
	for e := l.held.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); counts(c) {
			all++
			if held[c.owner]++; held[c.owner] > most {
				most, owner = held[c.owner], c.owner
			}
		}
	}
	share := max(1, places/parts)
	switch wait := open - all; {
	case wait < share && most > share:
		return find(l.held, 0, func(c *conn) bool { return counts(c) && c.owner == owner })
	case wait > 0:
		return find(l.waiting, rand.IntN(wait), counts)
	default:
		return nil
	}
}

// find returns the connection of a list that fits, after n others that do.
func find(in *list.List, n int, fits func(*conn) bool) *conn {
	for e := in.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); fits(c) {
			if n == 0 {
				return c
			}
			n--
		}
	}
	return nil
}

// leave gives back a connection's place, once.
func (l *Listener) leave(c *conn) {
	if c.left {
		return
	}
	c.left = true
	l.open--
	if c.address.IsValid() {
		if l.byAddress[c.address]--; l.byAddress[c.address] == 0 {
			delete(l.byAddress, c.address)
		}
	}
	c.in().Remove(c.place)
}

// warn counts a connection that was turned away, and says so now and then.
func (l *Listener) warn() {
	l.unlogged++
	if now := time.Now(); now.Sub(l.logged) >= logGap {
		l.options.Logger.Warn("too many connections: some were turned away", "turned away", l.unlogged,
			"open", l.open, "at most", l.options.Total, "per address", l.options.PerAddress)
		l.logged, l.unlogged = now, 0
	}
}

func (l *Listener) refuse(c net.Conn) {
	if len(l.options.Refusal) > 0 && c.SetWriteDeadline(time.Now().Add(refusalTime)) == nil {
		_, _ = c.Write(l.options.Refusal) // it is a courtesy
	}
	_ = c.Close() // nothing was promised to it
}

// conn is a connection with a place. Its fields are the listener's.
type conn struct {
	net.Conn
	listener *Listener
	address  netip.Addr
	place    *list.Element // in held or waiting
	owner    string        // of the last hold
	holds    int
	left     bool
}

// in returns the list that a connection is in.
func (c *conn) in() *list.List {
	if c.holds > 0 {
		return c.listener.held
	}
	return c.listener.waiting
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.leave(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// NetConn returns the connection below, for what a net.Conn can't do. It has to be
// closed by the one above.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets a server end its answer before it closes a connection whose
// request it has not read: else the reset can overtake the answer.
func (c *conn) CloseWrite() error {
	if below, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return below.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Hold keeps a connection of a Listener, or one that wraps it as tls.Conn does,
// from being closed for another, until release is called, as long as its owner
// does not hold too many. Call it once the other side has shown that it may come.
// Other connections are left alone. It returns false for a connection that was
// closed already.
func Hold(c net.Conn, owner string) (release func(), ok bool) {
	for {
		switch wrapped := c.(type) {
		case *conn:
			return wrapped.hold(owner)
		case interface{ NetConn() net.Conn }:
			c = wrapped.NetConn()
		default:
			return func() {}, true
		}
	}
}

func (c *conn) hold(owner string) (release func(), ok bool) {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.left {
		return func() {}, false
	}
	if c.owner = owner; c.holds == 0 {
		l.waiting.Remove(c.place)
		c.place = l.held.PushBack(c)
	}
	c.holds++
	return sync.OnceFunc(c.release), true
}

func (c *conn) release() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.left {
		return
	}
	if c.holds--; c.holds == 0 {
		l.held.Remove(c.place)
		c.place = l.waiting.PushBack(c)
	}
}

// addressOf is what connections are counted by, invalid for those without an IP
// address.
func addressOf(c net.Conn) netip.Addr {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	address := remote.AddrPort().Addr().Unmap().WithZone("")
	if !address.Is6() {
		return address
	}
	network, err := address.Prefix(64)
	if err != nil {
		return address
	}
	return network.Addr()
}

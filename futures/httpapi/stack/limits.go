package stack

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/budget"
)

// Limits bound what requests take. Zero fields have their defaults.
type Limits struct {
	// Memory is how many bytes of bodies and answers all requests hold together.
	// Defaults to 384 MiB.
	Memory int64
	// ClientMemory is how many of them those of one client may hold: of one token,
	// or of one address where no token is needed. Defaults to half of Memory.
	ClientMemory int64
	// MemoryWait is how long a request waits for its bytes before it is refused.
	// Defaults to 5 s.
	MemoryWait time.Duration
	// BodySlack is how long a body may keep its server waiting, beside a second
	// for each 128 KiB that have come. Defaults to 10 s.
	BodySlack time.Duration
	// AnswerSlack is the same for an answer that its reader does not take.
	// Defaults to 30 s.
	AnswerSlack time.Duration
	// Streams and ClientStreams bound the streams of events, of all clients and
	// of one. Default to 256 and 32.
	Streams, ClientStreams int
	// Connections and AddressConnections bound the connections that Serve has
	// open, and those of one address. Default as those of a connlimit.Listener.
	Connections, AddressConnections int
	// HeaderTime is how long the header of a request may take, IdleTime how long a
	// connection may do nothing between requests. Default to 10 s and 2 min.
	HeaderTime, IdleTime time.Duration
}

// Constants of limits.
const (
	// paceRate is how many bytes per second count as progress.
	paceRate = 128 << 10
	// step is how many bytes are taken from the budget at a time.
	step = 256 << 10
	// retryAfter is how many seconds a client should wait that found no room.
	retryAfter = 2
)

func (l Limits) withDefaults() Limits {
	l.Memory = cmp.Or(l.Memory, 384<<20)
	l.ClientMemory = cmp.Or(l.ClientMemory, l.Memory/2)
	l.MemoryWait = cmp.Or(l.MemoryWait, 5*time.Second)
	l.BodySlack = cmp.Or(l.BodySlack, 10*time.Second)
	l.AnswerSlack = cmp.Or(l.AnswerSlack, 30*time.Second)
	l.Streams = cmp.Or(l.Streams, 256)
	l.ClientStreams = cmp.Or(l.ClientStreams, 32)
	l.HeaderTime = cmp.Or(l.HeaderTime, 10*time.Second)
	l.IdleTime = cmp.Or(l.IdleTime, 2*time.Minute)
	return l
}

// memory is the one budget of bytes, with the share of each client.
type memory struct {
	limits *Limits
	all    *budget.Bytes

	mu      sync.Mutex
	clients map[string]*client
	held    int64
	streams int
}

// client is what the requests of one client hold together.
type client struct {
	share    *budget.Bytes
	requests int
	streams  int
}

func newMemory(l *Limits) *memory {
	return &memory{limits: l, all: budget.New(l.Memory), clients: map[string]*client{}}
}

// enter counts a request of a client.
func (m *memory) enter(name string) *client {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clients[name]
	if c == nil {
		c = &client{share: budget.New(m.limits.ClientMemory)}
		m.clients[name] = c
	}
	c.requests++
	return c
}

// request is one request, as all parts of the stack see it.
type request struct {
	stack *Stack
	id    string
	path  string
	// route is the pattern that was matched.
	route  string
	bearer Token
	// connection is held until release is called.
	connection net.Conn
	release    func()

	name    string
	client  *client
	streams bool // a stream was counted
	used    int64
	held    int64
	// failure is the problem of a body that could not be read.
	failure *Problem
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// enter counts a request as its client's: its token's, or its address's.
func (q *request) enter(r *http.Request) {
	if q.name = q.bearer.Name; q.name == "" {
		q.name = r.RemoteAddr
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			q.name = host
		}
	}
	q.client = q.stack.memory.enter(q.name)
}

// end gives back all that the request holds.
func (q *request) end() {
	if q.release != nil {
		q.release()
	}
	if q.client == nil {
		return
	}
	m := q.stack.memory
	m.all.Release(q.held)
	q.client.share.Release(q.held)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held -= q.held
	if q.streams {
		m.streams--
		q.client.streams--
	}
	if q.client.requests--; q.client.requests == 0 {
		delete(m.clients, q.name)
	}
	q.held, q.client = 0, nil
}

// Reserve takes n more bytes of the budget for a request until it has been
// answered, before they are read into memory. It waits for a moment, and returns
// a problem if they don't become free. A context that belongs to no request has
// all bytes.
func Reserve(ctx context.Context, n int64) error {
	if q := requestOf(ctx); q != nil {
		return q.take(ctx, n)
	}
	return nil
}

// take takes n more bytes, by steps.
func (q *request) take(ctx context.Context, n int64) error {
	if q.used += n; q.used <= q.held || q.client == nil {
		return nil
	}
	m := q.stack.memory
	more := (q.used - q.held + step - 1) / step * step
	ctx, cancel := context.WithTimeout(ctx, m.limits.MemoryWait)
	defer cancel()
	if err := q.client.share.Acquire(ctx, more); err != nil {
		return q.noRoom(http.StatusTooManyRequests, "requests of this client hold", m.limits.ClientMemory, err)
	}
	if err := m.all.Acquire(ctx, more); err != nil {
		q.client.share.Release(more)
		return q.noRoom(http.StatusServiceUnavailable, "all requests hold", m.limits.Memory, err)
	}
	q.hold(more)
	return nil
}

// try takes n more bytes if they are free now.
func (q *request) try(n int64) bool {
	if q.client == nil || !q.client.share.TryAcquire(n) {
		return false
	}
	m := q.stack.memory
	if !m.all.TryAcquire(n) {
		q.client.share.Release(n)
		return false
	}
	q.used += n
	q.hold(n)
	return true
}

// hold counts bytes that were acquired.
func (q *request) hold(n int64) {
	q.held += n
	q.stack.memory.mu.Lock()
	defer q.stack.memory.mu.Unlock()
	q.stack.memory.held += n
}

func (q *request) noRoom(status int, who string, limit int64, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	p := NewProblem(status, "busy", err, "%s as many bytes as they may, %d: try again in %d seconds", who, limit,
		retryAfter)
	return p.later()
}

// later says when to try again.
func (p *Problem) later() error {
	p.header = map[string]string{"Retry-After": strconv.Itoa(retryAfter)}
	return p
}

// give gives back bytes that the request needs no longer.
func (q *request) give(n int64) { q.used -= n }

// Return says that n bytes which a request has reserved are in use no longer:
// its next ones need no more.
func Return(ctx context.Context, n int64) {
	if q := requestOf(ctx); q != nil {
		q.give(n)
	}
}

// stream counts a stream of events until the request ends.
func (q *request) stream() error {
	m := q.stack.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	status := 0
	switch {
	case q.client.streams >= m.limits.ClientStreams:
		status = http.StatusTooManyRequests
	case m.streams >= m.limits.Streams:
		status = http.StatusServiceUnavailable
	default:
		q.streams = true
		q.client.streams++
		m.streams++
		return nil
	}
	p := NewProblem(status, "busy", nil, "too many streams of events are open: at most %d for one client, %d in all",
		m.limits.ClientStreams, m.limits.Streams)
	return p.later()
}

// pace decides how long the other side may keep this one waiting: for slack, which
// each byte that moves earns again.
type pace struct {
	slack time.Duration
	used  time.Duration
}

// deadline is when a transfer that begins now must have moved something.
func (p *pace) deadline(now time.Time) time.Time { return now.Add(p.slack - p.used) }

// did counts a transfer of n bytes that began at start.
func (p *pace) did(n int, start time.Time) {
	earned := time.Duration(n) * time.Second / paceRate
	p.used = max(0, p.used+time.Since(start)-earned)
}

package stack

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/budget"
)

// Limits bound the resources of requests. Zero fields have their defaults.
type Limits struct {
	// Memory bounds the bytes of bodies and answers that all requests hold
	// together. Defaults to 384 MiB.
	Memory int64
	// ClientMemory bounds the share of one client: of one token, or of one address
	// if no token is needed. Defaults to half of Memory.
	ClientMemory int64
	// MemoryWait is how long a request waits for memory before it is refused.
	// Defaults to 5 s.
	MemoryWait time.Duration
	// Turns and ClientTurns bound the requests that compute at a time on more than
	// 256 KiB, of all clients and of one; others wait for their turn. Default to
	// half and a quarter of the processors.
	Turns, ClientTurns int
	// BodySlack is how long a body may keep the server waiting, plus a second for
	// each 128 KiB received. Defaults to 10 s.
	BodySlack time.Duration
	// AnswerSlack is the same for an answer that its reader is slow to take.
	// A connection of Serve that has shown no valid token has it once, for all of
	// its answers together. Defaults to 30 s.
	AnswerSlack time.Duration
	// StoreTime bounds how long a request waits for the store, unless its route says otherwise. Defaults to
	// the constant of this name.
	StoreTime time.Duration
	// Streams and ClientStreams bound the streams of events, of all clients and
	// of one. Default to 256 and 32.
	Streams, ClientStreams int
	// Connections and AddressConnections bound the open connections of Serve, in
	// total and per address. Default to those of a connlimit.Listener.
	Connections, AddressConnections int
	// OpenRequests and FailedRequests bound the requests of one address without a
	// valid token, in a minute: those that need none, and those that are refused for
	// it. All may come at once. Default to 1,200 and 300.
	OpenRequests, FailedRequests int
	// HeaderTime is how long the header of a request may take, IdleTime how long a
	// connection may be idle between requests. Default to 10 s and 2 min.
	HeaderTime, IdleTime time.Duration
}

// Constants of limits.
const (
	// paceRate is the minimum rate of progress, in bytes per second.
	paceRate = 128 << 10
	// step is the number of bytes taken from the budget at a time.
	step = 256 << 10
	// retryAfter is how many seconds a refused client should wait.
	retryAfter = 2
	// unauthenticatedShare is the divisor of the memory that requests without a
	// valid token have in addition.
	unauthenticatedShare = 16
)

func (l Limits) withDefaults() Limits {
	l.Memory = cmp.Or(l.Memory, 384<<20)
	l.ClientMemory = cmp.Or(l.ClientMemory, l.Memory/2)
	l.MemoryWait = cmp.Or(l.MemoryWait, 5*time.Second)
	l.Turns = cmp.Or(l.Turns, max(1, runtime.GOMAXPROCS(0)/2))
	l.ClientTurns = cmp.Or(l.ClientTurns, max(1, runtime.GOMAXPROCS(0)/4))
	l.BodySlack = cmp.Or(l.BodySlack, 10*time.Second)
	l.AnswerSlack = cmp.Or(l.AnswerSlack, 30*time.Second)
	l.StoreTime = cmp.Or(l.StoreTime, StoreTime)
	l.Streams = cmp.Or(l.Streams, 256)
	l.ClientStreams = cmp.Or(l.ClientStreams, 32)
	l.OpenRequests = cmp.Or(l.OpenRequests, 1200)
	l.FailedRequests = cmp.Or(l.FailedRequests, 300)
	l.HeaderTime = cmp.Or(l.HeaderTime, 10*time.Second)
	l.IdleTime = cmp.Or(l.IdleTime, 2*time.Minute)
	return l
}

// unauthenticated are the limits of what requests without a valid token hold,
// which is little: they have no bodies and no streams.
func (l Limits) unauthenticated() Limits {
	l.Memory /= unauthenticatedShare
	l.ClientMemory = min(l.ClientMemory, l.Memory)
	l.Turns, l.ClientTurns = 1, 1
	l.Streams, l.ClientStreams = 1, 1
	return l
}

// memory is the budget of bytes of one kind of requests, with the share of each client.
type memory struct {
	limits *Limits
	all    *budget.Bytes
	turns  turns

	mu      sync.Mutex
	clients map[string]*client
	held    int64
	streams int
}

// client counts the resources that the requests of one client hold together.
type client struct {
	share    *budget.Bytes
	turns    turns
	requests int
	streams  int
}

func newMemory(l *Limits) *memory {
	return &memory{limits: l, all: budget.New(l.Memory), turns: make(turns, l.Turns), clients: map[string]*client{}}
}

// enter adds a request to its client.
func (m *memory) enter(name string) *client {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clients[name]
	if c == nil {
		c = &client{share: budget.New(m.limits.ClientMemory), turns: make(turns, m.limits.ClientTurns)}
		m.clients[name] = c
	}
	c.requests++
	return c
}

// request is the state of one request that the parts of the stack share.
type request struct {
	stack *Stack
	id    string
	path  string
	// route is the pattern that was matched.
	route  string
	bearer Token
	// secret is that of the bearer's token or session, empty without one.
	secret string
	// authenticated is set for a request with a valid token, and where none is needed.
	authenticated bool
	// administers is set for an admitted request that changes what only an administrator may.
	administers bool
	// connection is held until release is called.
	connection net.Conn
	release    func()

	name    string
	memory  *memory
	client  *client
	streams bool // counted as a stream
	used    int64
	held    int64
	turn    turn
	bound   *bound // nil for none
	changes bool   // what its route may do
	// failure is the problem of a body that could not be read.
	failure *Problem
	// cause is the error that the answer tells, panicked where its handler did.
	cause    error
	panicked string
	traced   func(status int) // what Options.Trace returned, nil for none
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// enter assigns a request to its client: to its token, or to its address.
func (q *request) enter(r *http.Request) {
	if q.name = q.bearer.Name; q.name == "" {
		q.name = r.RemoteAddr
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			q.name = host
		}
	}
	if q.memory = q.stack.memory; !q.authenticated {
		q.memory = q.stack.unauthenticated
	}
	q.client = q.memory.enter(q.name)
}

// end gives back everything that the request holds.
func (q *request) end() {
	if q.release != nil {
		q.release()
	}
	if q.client == nil {
		return
	}
	q.pause()
	m := q.memory
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

// Reserve takes n more bytes from the budget for a request until it has been
// answered. Call it before the bytes are read into memory. It waits up to
// Limits.MemoryWait, and returns a problem if they don't become free. A context
// that belongs to no request is not limited.
func Reserve(ctx context.Context, n int64) error {
	if q := requestOf(ctx); q != nil {
		return q.take(ctx, n)
	}
	return nil
}

// take takes n more bytes, in steps.
func (q *request) take(ctx context.Context, n int64) (err error) {
	if q.used += n; q.used <= q.held || q.client == nil {
		return nil
	}
	defer func() {
		if err != nil {
			q.give(n)
		}
	}()
	q.pause() // whoever waits for memory computes nothing
	m := q.memory
	more := (q.used - q.held + step - 1) / step * step
	ctx, cancel := context.WithTimeout(ctx, m.limits.MemoryWait)
	defer cancel()
	q.bound.hold()
	defer q.bound.resume()
	if err := q.client.share.Acquire(ctx, more); err != nil {
		return q.noRoom(http.StatusTooManyRequests, "the requests of this client hold", m.limits.ClientMemory, err)
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
	m := q.memory
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
	q.memory.mu.Lock()
	defer q.memory.mu.Unlock()
	q.memory.held += n
}

func (q *request) noRoom(status int, who string, limit int64, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	p := NewProblem(status, "busy", err, "%s as many bytes as allowed, %d: try again in %d seconds", who, limit,
		retryAfter)
	return p.later()
}

// later adds when to try again.
func (p *Problem) later() error { return p.laterBy(retryAfter) }

// laterBy adds in how many seconds to try again.
func (p *Problem) laterBy(seconds int) error {
	p.header = map[string]string{"Retry-After": strconv.Itoa(seconds)}
	return p
}

// give gives back bytes that the request no longer needs.
func (q *request) give(n int64) { q.used -= n }

// Return marks n reserved bytes of a request as unused: its next reservations
// use them first.
func Return(ctx context.Context, n int64) {
	if q := requestOf(ctx); q != nil {
		q.give(n)
	}
}

// stream counts the request as an event stream until it ends.
func (q *request) stream() error {
	m := q.memory
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

// pace limits how long the other side may keep this one waiting: for slack,
// which each transferred byte earns back.
type pace struct {
	slack time.Duration
	used  time.Duration
}

// deadline is when a transfer that begins now must have made progress.
func (p *pace) deadline(now time.Time) time.Time { return now.Add(p.slack - p.used) }

// did records a transfer of n bytes that began at start.
func (p *pace) did(n int, start time.Time) {
	earned := time.Duration(n) * time.Second / paceRate
	p.used = max(0, p.used+time.Since(start)-earned)
}

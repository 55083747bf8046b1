package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Target is what an attack aims at.
type Target struct {
	// Address is where HTTP is served, Door where the store is, over TCP.
	Address, Door string
	// Store is the name under which the store is opened at the door.
	Store string
	// Peers is the multiaddr that peers reach the process at.
	Peers string
	// Token may submit, Admin may do everything.
	Token, Admin string
	// From is the address that connections come from. Defaults to that of the
	// bystanders.
	From string
	// Batch is the id of a batch that is not over, Large that of a future with a
	// large result.
	Batch, Large string
	// Queue is where modules that are attacks run.
	Queue string
}

// An Attack strikes a target in a size, and holds on until undo is called. Its
// error says that the target could not be struck, not what it answered.
type Attack func(ctx context.Context, t *Target, size int) (undo func(), err error)

// Of an attack that holds nothing.
func nothing() {}

// dialTime bounds one attempt to connect.
const dialTime = 5 * time.Second

func (t *Target) dialer() *net.Dialer {
	d := &net.Dialer{Timeout: dialTime}
	if t.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(t.From)}
	}
	return d
}

func (t *Target) dial(ctx context.Context, address string) (net.Conn, error) {
	return t.dialer().DialContext(ctx, "tcp", address)
}

// crowd is connections that are held.
type crowd struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *crowd) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close() // the target may have closed it
	}
}

// hold opens connections at an address, and sends text on each.
func (t *Target) hold(ctx context.Context, address string, size int, text func(i int) string) (func(), error) {
	c := &crowd{}
	for i := range size {
		conn, err := t.dial(ctx, address)
		if err != nil {
			return c.leave, err
		}
		c.add(conn)
		if text != nil {
			_ = conn.SetWriteDeadline(time.Now().Add(dialTime))
			_, _ = io.WriteString(conn, text(i)) // the target may have closed it
		}
	}
	return c.leave, nil
}

// head is the beginning of a request of HTTP.
func head(method, path, token string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\n"
}

// IdleConnections send nothing.
func IdleConnections(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Address, size, nil)
}

// SlowHeaders begin a request and don't end its header.
func SlowHeaders(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Address, size, func(int) string { return head("GET", "/api/v1/futures", t.Token) + "X-Slow: " })
}

// SlowBodies declare a body and send a byte of it: without a token, with a wrong
// one, and with one that is known.
func SlowBodies(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Address, size, func(i int) string {
		token := []string{"", "wrong", t.Token}[i%3]
		return head("POST", "/api/v1/futures", token) + "Content-Length: 10000000\r\n\r\n{"
	})
}

// trickleGap is the time between two bytes of a trickled body.
const trickleGap = 20 * time.Millisecond

// Trickles send a large body, a byte at a time.
func Trickles(ctx context.Context, t *Target, size int) (func(), error) {
	start := head("POST", "/api/v1/functions/execute/batch", t.Token) + "Content-Length: 60000000\r\n\r\n" +
		`{"template":{"function_id":"f"},"arguments":[["`
	c := &crowd{}
	for range size {
		conn, err := t.dial(ctx, t.Address)
		if err != nil {
			return c.leave, err
		}
		c.add(conn)
		_, _ = io.WriteString(conn, start) // the target may have closed it
	}
	trickling, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(trickleGap); ; {
			select {
			case <-tick.C:
			case <-trickling.Done():
				tick.Stop()
				return
			}
			for _, conn := range c.conns {
				_, _ = io.WriteString(conn, "x") // the target may have closed it
			}
		}
	}()
	return func() { cancel(); <-done; c.leave() }, nil
}

// Pipelines send many requests on each connection, and read no answer.
func Pipelines(ctx context.Context, t *Target, size int) (func(), error) {
	many := strings.Repeat(head("GET", "/openapi.json", t.Token)+"\r\n", 100)
	return t.hold(ctx, t.Address, size, func(int) string { return many })
}

// UnreadResults request a large result and don't read it.
func UnreadResults(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Address, size, func(int) string {
		return head("GET", "/api/v1/futures/"+t.Large+"/result", t.Token) + "\r\n"
	})
}

// Waits wait for the end of a future that no worker runs.
func Waits(ctx context.Context, t *Target, size int) (func(), error) {
	content := `{"function":"go:nobody"}`
	return t.hold(ctx, t.Address, size, func(int) string {
		return head("POST", "/api/v1/futures?wait=1m", t.Token) +
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(content), content)
	})
}

// Streams follow a batch by events.
func Streams(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Address, size, func(int) string {
		return head("GET", "/api/v1/batches/"+t.Batch+"/events", t.Token) + "\r\n"
	})
}

// parallel is how many goroutines flood.
const parallel = 8

// flood calls fn size times, in parallel.
func flood(size int, fn func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, parallel)
	for p := range parallel {
		all.Go(func() {
			for i := int(next.Add(1)); i <= size && errs[p] == nil; i = int(next.Add(1)) {
				errs[p] = fn(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ConnectionFlood opens connections and closes them again.
func ConnectionFlood(ctx context.Context, t *Target, size int) (func(), error) {
	return nothing, flood(size, func(i int) error {
		conn, err := t.dial(ctx, t.Address)
		if err != nil {
			return err
		}
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "\x16\x03\x01\x00") // the target may have closed it
		}
		return conn.Close()
	})
}

// Noise sends random bytes to an address that speaks HTTP.
func Noise(ctx context.Context, t *Target, size int) (func(), error) {
	return nothing, flood(size, func(i int) error { return t.shout(ctx, t.Address, noise(i)) })
}

// shout sends bytes and hangs up.
func (t *Target) shout(ctx context.Context, address string, bytes []byte) error {
	conn, err := t.dial(ctx, address)
	if err != nil {
		return err
	}
	_, _ = conn.Write(bytes) // the target may have closed it
	return conn.Close()
}

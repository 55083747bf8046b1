package remote

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between client and server and does harm.
type proxy struct {
	at     Address // where clients come
	server Address

	mu      sync.Mutex
	refuse  bool
	random  *rand.Rand
	budget  int // bytes until a connection is cut, or some doublings of it; 0 for no cuts
	conns   map[net.Conn]struct{}
	stall   [2]chan struct{} // by direction; what comes while it is there waits
	stalled chan struct{}    // is sent a value for whatever waits
	cuts    int
}

// Directions of a proxy.
const (
	toServer = iota
	toClient
)

func newProxy(t testing.TB, server Address) *proxy {
	path := socketPath(t)
	l, err := ListenUnix(path)
	require.NoError(t, err)
	p := &proxy{at: Address{Network: "unix", Target: path}, server: server, conns: map[net.Conn]struct{}{},
		stalled: make(chan struct{}, 1000)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.forward(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.release()
		p.cut()
		running.Wait()
	})
	return p
}

// forward passes on what both sides say until one of them ends, or is cut.
func (p *proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(p.server.Network, p.server.Target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pipe(client, server, toServer) })
	both.Go(func() { p.pipe(server, client, toClient) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

func (p *proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if !p.refuse {
			p.conns[c] = struct{}{}
		}
	}
	return !p.refuse
}

func (p *proxy) pipe(from, to net.Conn, direction int) {
	defer from.Close()
	defer to.Close()
	left := p.allowance()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.wait(direction)
		if left >= 0 && n > left {
			_, _ = to.Write(buffer[:left])
			p.mu.Lock()
			p.cuts++
			p.mu.Unlock()
			return
		}
		if left >= 0 {
			left -= n
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// allowance is how many bytes a connection may pass on, -1 for any number.
func (p *proxy) allowance() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget == 0 {
		return -1
	}
	return p.random.IntN(2*p.budget) << p.random.IntN(8)
}

// hold keeps back what goes in that direction until release.
func (p *proxy) hold(direction int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall[direction] = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.stall {
		if c != nil {
			close(c)
			p.stall[i] = nil
		}
	}
}

func (p *proxy) wait(direction int) {
	p.mu.Lock()
	c := p.stall[direction]
	p.mu.Unlock()
	if c != nil {
		p.stalled <- struct{}{}
		<-c
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// setRefuse says whether new connections are cut at once.
func (p *proxy) setRefuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// setBudget breaks all connections, and later ones after some bytes.
func (p *proxy) setBudget(seed uint64, bytes int) {
	p.mu.Lock()
	p.random, p.budget = rand.New(rand.NewPCG(seed, 0)), bytes
	p.mu.Unlock()
	p.cut()
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

package remote

import (
	"net"
	"slices"
	"sync"
)

// unauthenticated are the connections that have not shown their token yet.
type unauthenticated struct {
	limit int

	mu    sync.Mutex
	conns []hostConn // the oldest first
}

// hostConn is a connection and the host that it comes from.
type hostConn struct {
	conn net.Conn
	host string
}

// maxUnauthenticated bounds the unauthenticated connections where there are many descriptors.
const maxUnauthenticated = 64

// add takes one more. If there are too many, it closes the oldest one of the host that
// has most of them, and returns true: a client that shows its token at once is let in,
// however many don't.
func (u *unauthenticated) add(conn net.Conn) (crowded bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns = append(u.conns, hostConn{conn: conn, host: hostOf(conn)})
	crowded = len(u.conns) > u.limit
	if crowded {
		u.dismissOne()
	}
	return crowded
}

// dismiss closes one, to have its file descriptor.
func (u *unauthenticated) dismiss() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.conns) > 0 {
		u.dismissOne()
	}
}

func (u *unauthenticated) dismissOne() {
	counts := map[string]int{}
	most := u.conns[0].host
	for _, c := range u.conns {
		if counts[c.host]++; counts[c.host] > counts[most] {
			most = c.host
		}
	}
	oldest := slices.IndexFunc(u.conns, func(c hostConn) bool { return c.host == most })
	_ = u.conns[oldest].conn.Close()
	u.conns = slices.Delete(u.conns, oldest, oldest+1)
}

// remove forgets one that has shown its token, or has gone.
func (u *unauthenticated) remove(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns = slices.DeleteFunc(u.conns, func(c hostConn) bool { return c.conn == conn })
}

// hostOf is where a connection comes from, the same for all of a Unix socket.
func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().Network()
	}
	return host
}

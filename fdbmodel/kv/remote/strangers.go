package remote

import (
	"net"
	"slices"
	"sync"
)

// strangers are the connections that have not shown their token yet.
type strangers struct {
	limit int

	mu    sync.Mutex
	conns []unproven // in the order in which they came
}

// unproven is one of them.
type unproven struct {
	conn net.Conn
	host string
}

// maxStrangers bounds the strangers where there are many descriptors.
const maxStrangers = 64

// add takes one more. If there are too many, it closes the one that has waited
// longest at the address that has most of them, and returns true: who shows a
// token at once is let in, however many there are that don't.
func (s *strangers) add(conn net.Conn) (crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, unproven{conn: conn, host: hostOf(conn)})
	crowded = len(s.conns) > s.limit
	if crowded {
		s.dismissOne()
	}
	return crowded
}

// dismiss closes one, to have its file descriptor.
func (s *strangers) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > 0 {
		s.dismissOne()
	}
}

func (s *strangers) dismissOne() {
	counts := map[string]int{}
	most := s.conns[0].host
	for _, c := range s.conns {
		if counts[c.host]++; counts[c.host] > counts[most] {
			most = c.host
		}
	}
	oldest := slices.IndexFunc(s.conns, func(c unproven) bool { return c.host == most })
	_ = s.conns[oldest].conn.Close()
	s.conns = slices.Delete(s.conns, oldest, oldest+1)
}

// remove forgets one that has shown its token, or has gone.
func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(c unproven) bool { return c.conn == conn })
}

// hostOf is where a connection comes from, the same for all of a Unix socket.
func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().Network()
	}
	return host
}

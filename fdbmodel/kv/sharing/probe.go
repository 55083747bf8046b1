package sharing

import (
	"net"
	"time"
)

// probe is a connection to an owner that says nothing: it ends when that does, or goes on and drops it. One that is
// stopped takes all the connections that were made meanwhile when it goes on: this is one, not one for each look.
type probe struct {
	conn  net.Conn // nil without one
	ended chan struct{}
}

// open connects to a socket. A probe that can't counts as ended.
func (p *probe) open(path string) {
	p.close()
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return
	}
	ended := make(chan struct{})
	p.conn, p.ended = conn, ended
	go func() {
		defer close(ended)
		_, _ = conn.Read(make([]byte, 1))
	}()
}

func (p *probe) isAlive() bool {
	if p.conn == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *probe) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		<-p.ended
		p.conn = nil
	}
}

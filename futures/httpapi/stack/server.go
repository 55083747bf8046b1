package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/internal/connlimit"
)

// headerBytes is the maximum size of a request's header. One of many short
// fields takes 20 times its size while it is received.
const headerBytes = 16 << 10

// headerSlop is how many bytes more than http.Server.MaxHeaderBytes it reads of a header.
const headerSlop = 4 << 10

type connectionKey struct{}

// connectionOf returns the connection of a request that Serve has accepted.
func connectionOf(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	return c
}

// holdConnection protects the connection of an admitted request that has been
// read in full from being closed in favour of another, until the request ends,
// unless its client holds more than its share. One without a valid token always
// gives way.
func (q *request) holdConnection() (ok bool) {
	if !q.authenticated {
		return true
	}
	q.release, ok = connlimit.Hold(q.connection, q.name)
	return ok
}

// Server serves a stack on a bounded number of connections. Connections whose
// request has not been admitted with a token give way to new ones, and have small
// buffers.
type Server struct {
	stack  *Stack
	http   *http.Server
	secure bool
}

// Server returns a server of all routes, with TLS unless secure is nil. It speaks
// HTTP/1.1, where a connection has one request at a time.
func (s *Stack) Server(secure *tls.Config) *Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &Server{stack: s, secure: secure != nil, http: &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: s.options.Limits.HeaderTime, IdleTimeout: s.options.Limits.IdleTime,
		MaxHeaderBytes: headerBytes - headerSlop, TLSConfig: secure, Protocols: &protocols,
		ErrorLog: slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}}
}

// limit bounds the connections of a listener.
func (s *Stack) limit(l net.Listener, secure bool) net.Listener {
	o := connlimit.Options{
		Total: s.options.Limits.Connections, PerAddress: s.options.Limits.AddressConnections, Logger: s.options.Logger,
	}
	if !secure {
		o.Refusal = []byte("HTTP/1.1 503 Service Unavailable\r\nRetry-After: " + strconv.Itoa(retryAfter) +
			"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	}
	return connlimit.New(sockets{l, s.options.Limits.AnswerSlack}, o)
}

// Serve answers the requests of a listener, which it closes, until Shutdown is
// called. It returns nil then, or the listener's error.
func (s *Server) Serve(l net.Listener) (err error) {
	l = s.stack.limit(l, s.secure)
	if s.secure {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown accepts no more requests and waits for those in progress until ctx
// ends. It then cuts them off, and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}

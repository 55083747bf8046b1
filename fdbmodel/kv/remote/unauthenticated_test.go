package remote

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/ratelog"
)

// hosted is a connection from a host.
type hosted struct {
	net.Conn
	host   string
	closed bool
}

func (h *hosted) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(h.host), Port: 1} }

func (h *hosted) Close() error {
	h.closed = true
	return nil
}

// TestACrowdedAddressLosesItsConnections fills the places from one address: another
// address loses nothing to it.
func TestACrowdedAddressLosesItsConnections(t *testing.T) {
	t.Parallel()
	u := unauthenticated{limit: 4}
	quiet := &hosted{host: "192.0.2.1"}
	require.False(t, u.add(quiet))
	var loud []*hosted
	for i := range 20 {
		loud = append(loud, &hosted{host: "192.0.2.2"})
		require.Equal(t, i >= 3, u.add(loud[i]))
	}
	require.False(t, quiet.closed)
	for i, conn := range loud {
		require.Equal(t, i < 17, conn.closed, i)
	}
	u.remove(loud[19])
	require.False(t, u.add(&hosted{host: "192.0.2.3"}))
	u.dismiss()
	require.True(t, loud[17].closed)
}

// logged is a log that many write to.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(bytes.TrimSpace(b)))
	return len(b), nil
}

func (l *logged) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// TestUnauthenticatedConnectionsDoNotLockOut has 300 connections that say nothing and
// 300 that have a wrong token: clients with the token come in meanwhile, and the log
// has a line for each kind of connection.
func TestUnauthenticatedConnectionsDoNotLockOut(t *testing.T) {
	t.Parallel()
	log, began := &logged{}, time.Now()
	at := serveTCP(t, ServerOptions{Token: "secret", HandshakeTimeout: time.Hour,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	requireServes(t, at, Options{Token: "secret"})
	var conns []net.Conn
	for i := range 300 {
		conn, err := net.Dial(at.Network, at.Target)
		require.NoError(t, err)
		conns = append(conns, conn)
		_, err = Open(t.Context(), at, Options{Token: "wrong"})
		require.ErrorIs(t, err, ErrBadToken)
		if i%50 == 0 {
			requireServes(t, at, Options{Token: "secret"})
		}
	}
	_, err := conns[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	requireServes(t, at, Options{Token: "secret"})
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	const kinds = 3 // each has a line per interval, and one in the end
	most := kinds * (2 + int(time.Since(began)/ratelog.Interval))
	require.LessOrEqual(t, len(log.all()), most, "%s", strings.Join(log.all(), "\n"))
}

// TestAProbeIsNotLogged has one connection end before it sends anything, as that of a
// command that looks whether there is a server, and another one in its first frame.
func TestAProbeIsNotLogged(t *testing.T) {
	t.Parallel()
	log := &logged{}
	at := serveTCP(t, ServerOptions{Token: "secret", Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, words := range []string{"", "x"} {
		require.Empty(t, log.all())
		conn, err := net.Dial(at.Network, at.Target)
		require.NoError(t, err)
		_, err = conn.Write([]byte(words))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, conn.Close())
	}
	require.Len(t, log.all(), 1)
}

package connlimit

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start accepts connections into a channel until the test ends.
func start(t *testing.T, o Options) (*Listener, <-chan net.Conn) {
	t.Helper()
	below, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := New(below, o)
	accepted := make(chan net.Conn, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
		close(accepted)
		for c := range accepted {
			_ = c.Close()
		}
	})
	return l, accepted
}

// dial connects from an address of this machine.
func dial(t *testing.T, l *Listener, from string) net.Conn {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Skipf("no connection from %s: %v", from, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAWaitingOneGivesWay(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l, accepted := start(t, Options{Total: 2, PerAddress: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	first := dial(t, l, "127.0.0.1")
	<-accepted
	dial(t, l, "127.0.0.1")
	second := <-accepted
	_, ok := Hold(second, "a")
	require.True(t, ok)
	dial(t, l, "127.0.0.1")
	third := <-accepted
	_, err := io.ReadAll(first)
	require.NoError(t, err, "it was closed")
	release, ok := Hold(third, "b")
	require.True(t, ok)
	refused := dial(t, l, "127.0.0.1")
	_, _ = io.ReadAll(refused)
	require.Equal(t, Stats{Open: 2, Held: 2, Refused: 1, Evicted: 1}, l.Stats())
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "turned away twice, said once")
	release()
	release()
	dial(t, l, "127.0.0.1")
	fourth := <-accepted
	require.Equal(t, Stats{Open: 2, Held: 1, Refused: 1, Evicted: 2}, l.Stats())
	_, ok = Hold(third, "b")
	require.False(t, ok, "it gave way")
	require.NoError(t, fourth.Close())
	require.Equal(t, 1, l.Stats().Open)
}

// TestAFloodLeavesSome opens many more connections than there are places: some of
// those that came first are still there after as many as there are places.
func TestAFloodLeavesSome(t *testing.T) {
	t.Parallel()
	const places = 32
	l := New(nil, Options{Total: places})
	enter := func() *conn {
		c := &conn{Conn: &fakeConn{remote: &net.UnixAddr{}}, listener: l}
		_, ok := l.enter(c)
		require.True(t, ok)
		return c
	}
	left := 0
	for range 100 {
		early := enter()
		for range places {
			enter()
		}
		if !early.left {
			left++
		}
	}
	require.Greater(t, left, 10, "37 of 100 on average")
}

func TestOneAddressLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	l, accepted := start(t, Options{Total: 4, Refusal: []byte("busy")})
	for _, owner := range []string{"a", "b"} {
		dial(t, l, "127.0.0.1")
		_, ok := Hold(<-accepted, owner)
		require.True(t, ok)
	}
	said, err := io.ReadAll(dial(t, l, "127.0.0.1"))
	require.NoError(t, err)
	require.Equal(t, "busy", string(said))
	dial(t, l, "127.0.0.2")
	<-accepted
	require.Equal(t, 3, l.Stats().Open)
}

// TestAnOwnerOfManyGivesWay lets one owner hold all places of an address.
func TestAnOwnerOfManyGivesWay(t *testing.T) {
	t.Parallel()
	const places, share = 16, 4
	l, accepted := start(t, Options{Total: 2 * places, PerAddress: places})
	held := map[string][]net.Conn{}
	hold := func(owner string) {
		conn := dial(t, l, "127.0.0.1")
		_, ok := Hold(<-accepted, owner)
		require.True(t, ok)
		held[owner] = append(held[owner], conn)
	}
	for range places {
		hold("many")
	}
	require.Equal(t, Stats{Open: places, Held: places}, l.Stats(), "they are not closed for nothing")
	for range places / 2 {
		hold("few")
	}
	require.Equal(t, Stats{Open: places, Held: places, Evicted: places / 2}, l.Stats())
	for _, conn := range held["many"][:places/2] {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "those that were held longest")
	}
	for range 3 * places {
		dial(t, l, "127.0.0.1")
		<-accepted
	}
	require.Equal(t, places-share, l.Stats().Held, "a quarter waits")
	require.Zero(t, l.Stats().Refused)
}

func TestHoldLooksBelowTLS(t *testing.T) {
	t.Parallel()
	l, accepted := start(t, Options{})
	dial(t, l, "127.0.0.1")
	release, ok := Hold(tls.Server(<-accepted, &tls.Config{MinVersion: tls.VersionTLS13}), "a")
	require.True(t, ok)
	require.Equal(t, 1, l.Stats().Held)
	release()
	require.Zero(t, l.Stats().Held)
	one, other := net.Pipe()
	_, ok = Hold(one, "a")
	require.True(t, ok, "connections of others are left alone")
	require.NoError(t, one.Close())
	require.NoError(t, other.Close())
}

func TestTheDefaultLeavesDescriptors(t *testing.T) {
	t.Parallel()
	below, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer below.Close()
	require.LessOrEqual(t, New(below, Options{}).Total(), max(1, Descriptors()/3))
	require.Positive(t, New(below, Options{Total: 1}).options.PerAddress)
}

// fakeConn is a connection of an address.
type fakeConn struct {
	net.Conn
	remote net.Addr
	closed bool
}

func (f *fakeConn) RemoteAddr() net.Addr { return f.remote }
func (f *fakeConn) Close() error         { f.closed = true; return nil }

// TestPlacesAreCounted opens, holds, releases and closes at random, beside a
// count by hand.
func TestPlacesAreCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total, each := rapid.IntRange(1, 6).Draw(t, "total"), rapid.IntRange(1, 6).Draw(t, "each")
		l := New(nil, Options{Total: total, PerAddress: each})
		var open []*conn
		releases := map[*conn][]func(){}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch action := rapid.IntRange(0, 3).Draw(t, "action"); {
			case action == 0:
				ip := net.IPv4(127, 0, 0, byte(rapid.IntRange(1, 3).Draw(t, "from")))
				below := &fakeConn{remote: &net.TCPAddr{IP: ip}}
				c := &conn{Conn: below, listener: l, address: addressOf(below)}
				if _, ok := l.enter(c); ok {
					open = append(open, c)
				}
			case len(open) == 0:
			case action == 1:
				c := open[rand.IntN(len(open))]
				release, ok := Hold(c, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner"))
				if ok == c.left {
					t.Fatal("only an open connection is held")
				}
				releases[c] = append(releases[c], release)
			case action == 2:
				c := open[rand.IntN(len(open))]
				for _, release := range releases[c] {
					release()
				}
				releases[c] = nil
			default:
				_ = open[rand.IntN(len(open))].Close()
			}
			there, held, by := 0, 0, map[string]int{}
			for _, c := range open {
				if c.left {
					continue
				}
				there++
				if by[c.address.String()]++; by[c.address.String()] > each {
					t.Fatalf("%s has more than %d", c.address, each)
				}
				if len(releases[c]) > 0 {
					held++
				}
			}
			if s := l.Stats(); s.Open != there || s.Held != held || there > total {
				t.Fatalf("%+v, counted %d open and %d held, at most %d", s, there, held, total)
			}
		}
	})
}

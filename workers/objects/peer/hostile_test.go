package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// connectTo makes a connection to an address without a handshake.
func connectTo(t *testing.T, address string) net.Conn {
	t.Helper()
	network, target, err := splitAddress(address)
	require.NoError(t, err)
	c, err := net.Dial(network, target)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the test may have done it
	return c
}

// requireCut reads until the other side ends the connection.
func requireCut(t *testing.T, c net.Conn, name string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, c)
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "%s is not cut", name)
}

// TestHostileClients do what a client should not: each is cut, the log says no
// token, and another client is served.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: -1, Dir: t.TempDir()})
	want := someBytes(30 * objects.PieceSize)
	ref := put(t, held, want)
	var log lockedBuffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	address := serve(t, listenTCP(t), held, ServerOptions{
		HandshakeTimeout: 500 * time.Millisecond, PieceTimeout: 500 * time.Millisecond, IdleTimeout: 500 * time.Millisecond,
		MaxBuffers: 2, Logger: logger,
	})
	introduced := func() net.Conn {
		for { // a busy machine may need more than one attempt
			if c := connectTo(t, address); introduce(c, testToken) == nil {
				return c
			}
		}
	}
	ask := func(r request) []byte {
		var b [requestSize]byte
		r.encode(&b)
		return b[:]
	}
	whole := request{op: opPieces, hash: ref.Hash, count: 30}
	for name, attack := range map[string]func() net.Conn{
		"silent": func() net.Conn { return connectTo(t, address) },
		"garbage": func() net.Conn {
			c := connectTo(t, address)
			_, _ = c.Write(bytes.Repeat([]byte("GET / "), 1000))
			return c
		},
		"version": func() net.Conn {
			c := connectTo(t, address)
			_, _ = c.Write(append(greeting(9, newNonce()), make([]byte, 32)...))
			return c
		},
		"half a handshake": func() net.Conn { c := connectTo(t, address); _, _ = c.Write([]byte(magic)); return c },
		"idle":             introduced,
		"half a request":   func() net.Conn { c := introduced(); _, _ = c.Write([]byte{byte(opList)}); return c },
		"no request":       func() net.Conn { c := introduced(); _, _ = c.Write(make([]byte, requestSize)); return c },
		"requests without end": func() net.Conn {
			c := introduced()
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			for {
				if _, err := c.Write(ask(whole)); err != nil {
					return c
				}
			}
		},
		"slow reader": func() net.Conn {
			c := introduced()
			_ = c.(*net.TCPConn).SetReadBuffer(1 << 10)
			_, _ = c.Write(ask(whole))
			return c
		},
	} {
		c := attack()
		if name == "slow reader" {
			// They have all the buffers, until they are cut.
			for range 3 {
				attack()
			}
		}
		got := make([]byte, ref.Size)
		require.NoError(t, newClient(t, Options{Attempts: 100}).Get(ctx, got, ref, address), name)
		require.True(t, bytes.Equal(want, got))
		requireCut(t, c, name)
	}
	// This one is patient: it hears the whole greeting, however busy the machine is.
	patient := serve(t, listenTCP(t), held, ServerOptions{Logger: logger})
	_, err := newClient(t, Options{Token: "another token, that is as long"}).Copy(ctx, io.Discard, ref, patient)
	require.ErrorIs(t, err, ErrRefused)
	require.NotContains(t, err.Error(), "another token,")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "another token") }, time.Minute,
		time.Millisecond, "the server says so after the client knows")
	for _, secret := range []string{testToken, "another token,"} {
		require.NotContains(t, log.String(), secret)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTokenStaysSecret reads what goes over a connection.
func TestTokenStaysSecret(t *testing.T) {
	t.Parallel()
	var said lockedBuffer
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- welcome(struct{ io.ReadWriter }{teed{server, &said}}, testToken) }()
	require.NoError(t, introduce(client, testToken))
	require.NoError(t, <-ended)
	require.NotContains(t, said.String(), testToken)
	require.Len(t, said.String(), greetSize+proofSize+33)
	first := proof(testToken, "client", newNonce(), newNonce())
	require.NotEqual(t, first, proof(testToken, "client", newNonce(), newNonce()))
	// A server can't answer with what the client said.
	nonce := newNonce()
	require.NotEqual(t, proof(testToken, "client", nonce, nonce), proof(testToken, "server", nonce, nonce))
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
}

type teed struct {
	net.Conn
	said io.Writer
}

func (c teed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	_, _ = c.said.Write(p[:n])
	return n, err
}

func (c teed) Write(p []byte) (int, error) {
	_, _ = c.said.Write(p)
	return c.Conn.Write(p)
}

// TestTooManyConnections refuses those beyond the limit, who can come later.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 64 << 20})
	want := someBytes(20 * objects.PieceSize)
	ref := put(t, held, want)
	address := serve(t, listenTCP(t), held, ServerOptions{MaxConnections: 4})
	for range 50 {
		connectTo(t, address)
	}
	got := make([]byte, ref.Size)
	// The limit of an address is two.
	client := newClient(t, Options{Parallel: 8, Attempts: 1000})
	require.NoError(t, client.Get(ctx, got, ref, address))
	require.True(t, bytes.Equal(want, got))
}

// hostileServer answers each connection with fn, after the handshake if it has a
// token.
func hostileServer(t *testing.T, token string, fn func(net.Conn, request)) string {
	t.Helper()
	l := listenTCP(t)
	var all sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if token == "" {
					fn(c, request{})
					return
				}
				for err := welcome(c, token); err == nil; {
					var b [requestSize]byte
					if _, err = io.ReadFull(c, b[:]); err != nil {
						return
					}
					r, err := decodeRequest(&b)
					if err != nil {
						return
					}
					fn(c, r)
				}
			})
		}
	})
	return "tcp:" + l.Addr().String()
}

// drain reads until the other side has enough.
func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// endless writes until the other side has enough.
func endless(c net.Conn) {
	for b := make([]byte, 64<<10); ; {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// TestHostileServers lie about an object in every way: the client says so within
// bounds, keeps nothing, and gets the object from an honest one.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 64 << 20})
	want, other := someBytes(5*objects.PieceSize+1), someBytes(5*objects.PieceSize + 2)[1:]
	ref, otherRef := put(t, held, want), put(t, held, other)
	honest := serve(t, listenTCP(t), held, ServerOptions{})
	lists := map[objects.Hash][]objects.Hash{}
	for _, hash := range []objects.Hash{ref.Hash, otherRef.Hash} {
		o, err := held.Open(hash)
		require.NoError(t, err)
		lists[hash] = o.Pieces()
		require.NoError(t, o.Close())
	}
	say := func(c net.Conn, s status, value uint64) {
		var b [replySize]byte
		reply{status: s, value: value}.encode(&b)
		_, _ = c.Write(b[:])
	}
	list := func(c net.Conn, hash objects.Hash) {
		say(c, statusOK, uint64(ref.Size))
		for _, piece := range lists[hash] {
			_, _ = c.Write(piece[:])
		}
	}
	serving := func(content []byte, of objects.Hash) func(net.Conn, request) {
		return func(c net.Conn, r request) {
			if r.op == opList {
				list(c, of)
				return
			}
			for piece := int(r.first); piece < int(r.first)+int(r.count); piece++ {
				say(c, statusOK, uint64(ref.PieceLength(piece)))
				at := piece * objects.PieceSize
				_, _ = c.Write(content[at : at+ref.PieceLength(piece)])
			}
		}
	}
	saying := func(s status, value int64) func(net.Conn, request) {
		return func(c net.Conn, _ request) { say(c, s, uint64(value)) }
	}
	half := func(c net.Conn, r request) { say(c, statusOK, uint64(ref.PieceLength(int(r.first)))) }
	then := func(first func(net.Conn, request), second func(net.Conn)) func(net.Conn, request) {
		return func(c net.Conn, r request) { first(c, r); second(c) }
	}
	lying := func(then func(net.Conn, request)) func(net.Conn, request) {
		return func(c net.Conn, r request) {
			if r.op == opList {
				list(c, ref.Hash)
				return
			}
			then(c, r)
		}
	}
	for name, server := range map[string]struct {
		token string
		fn    func(net.Conn, request)
		is    error
	}{
		"another token": {"another token, that is as long", func(net.Conn, request) {}, nil},
		"no token": {"", func(c net.Conn, _ request) {
			_, _ = c.Write(greeting(protocolVersion, newNonce()))
			_, _ = io.CopyN(io.Discard, c, int64(proofSize))
			_, _ = c.Write(append([]byte{1}, make([]byte, 32)...))
			_, _ = io.Copy(io.Discard, c)
		}, ErrRefused},
		"another object":       {testToken, serving(other, otherRef.Hash), objects.ErrDamaged},
		"another content":      {testToken, serving(other, ref.Hash), objects.ErrDamaged},
		"another list":         {testToken, serving(want, otherRef.Hash), objects.ErrDamaged},
		"silent":               {"", func(c net.Conn, _ request) { _, _ = io.Copy(io.Discard, c) }, os.ErrDeadlineExceeded},
		"nothing for requests": {testToken, func(net.Conn, request) {}, os.ErrDeadlineExceeded},
		"half a list":          {testToken, saying(statusOK, ref.Size), os.ErrDeadlineExceeded},
		"half a piece":         {testToken, lying(then(half, drain)), os.ErrDeadlineExceeded},
		"endless greeting":     {"", func(c net.Conn, _ request) { endless(c) }, ErrMalformed},
		"zeros":                {testToken, func(c net.Conn, _ request) { endless(c) }, ErrMalformed},
		"a status of nothing":  {testToken, saying(200, 0), ErrMalformed},
		"another size":         {testToken, saying(statusOK, 1<<60), objects.ErrDamaged},
		"endless list":         {testToken, then(saying(statusOK, ref.Size), endless), objects.ErrDamaged},
		"endless piece":        {testToken, lying(then(half, endless)), objects.ErrDamaged},
		"longer piece":         {testToken, lying(then(saying(statusOK, 1<<40), endless)), objects.ErrDamaged},
		"damaged":              {testToken, lying(saying(statusDamaged, 0)), objects.ErrDamaged},
		"failing":              {testToken, lying(saying(statusFailed, 0)), errFailed},
		"busy":                 {testToken, lying(saying(statusBusy, 0)), errBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostile := hostileServer(t, server.token, server.fn)
			timeout := 10 * time.Second
			if server.is == os.ErrDeadlineExceeded {
				timeout = 300 * time.Millisecond
			}
			client := newClient(t, Options{PieceTimeout: timeout, DialTimeout: timeout, Attempts: 2})
			store := openStore(t, objects.Options{Memory: 8 << 20})
			_, err := client.Fetch(ctx, store, ref, hostile)
			require.ErrorIs(t, err, ErrUnavailable)
			if server.is != nil {
				require.ErrorIs(t, err, server.is)
			}
			require.Zero(t, store.Stats().MemoryUsed)
			patient := newClient(t, Options{DialTimeout: max(timeout, time.Second), PieceTimeout: max(timeout, time.Second)})
			requireObject(t, want)(patient.Fetch(ctx, store, ref, hostile, honest))
			var out bytes.Buffer
			_, err = patient.Copy(ctx, &out, ref, hostile, honest)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, out.Bytes()))
			into := make([]byte, ref.Size)
			require.ErrorIs(t, client.Get(ctx, into, ref, hostile), ErrUnavailable)
			require.NoError(t, patient.Get(ctx, into, ref, hostile, honest))
			require.True(t, bytes.Equal(want, into))
		})
	}
}

// FuzzRequest decodes what is not a request, and encodes again what is.
func FuzzRequest(f *testing.F) {
	var b [requestSize]byte
	request{op: opPieces, count: 3, first: 1 << 40}.encode(&b)
	f.Add(b[:])
	f.Add(make([]byte, requestSize))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) != requestSize {
			return
		}
		r, err := decodeRequest((*[requestSize]byte)(in))
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		var again [requestSize]byte
		r.encode(&again)
		require.Equal(t, in, again[:])
	})
}

// FuzzReply decodes what is not a reply, and encodes again what is.
func FuzzReply(f *testing.F) {
	var b [replySize]byte
	reply{status: statusOK, value: 1 << 40}.encode(&b)
	f.Add(b[:])
	f.Add(make([]byte, replySize))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) != replySize {
			return
		}
		r, err := decodeReply((*[replySize]byte)(in))
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		var again [replySize]byte
		r.encode(&again)
		require.Equal(t, in, again[:])
	})
}

// FuzzServer sends anything behind a handshake: the server ends the connection or
// waits for more, and goes on serving.
func FuzzServer(f *testing.F) {
	store, err := objects.Open(objects.Options{Memory: 16 << 20})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, store.Close()) })
	ref, err := store.PutBytes(context.Background(), someBytes(2*objects.PieceSize), objects.PutOptions{})
	require.NoError(f, err)
	for op := range lastOperation + 2 {
		var b [requestSize]byte
		request{op: op, hash: ref.Hash, count: 2}.encode(&b)
		f.Add(append(b[:], b[:]...))
		f.Add(b[:20])
	}
	s := &server{store: store, options: ServerOptions{Puts: true}.withDefaults(), buffers: make(chan struct{}, 1)}
	f.Fuzz(func(t *testing.T, in []byte) {
		client, below := net.Pipe()
		c := &link{Conn: below, server: s, mapped: map[objects.Hash][]*objects.Object{}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer c.end()
			for c.answer(context.Background()) == nil {
			}
		}()
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			_, _ = io.Copy(io.Discard, client)
		}()
		_, _ = client.Write(in)
		_ = client.Close() // all that was written was read
		<-ended
		<-reading
		require.Zero(t, store.Stats().Pinned)
	})
}

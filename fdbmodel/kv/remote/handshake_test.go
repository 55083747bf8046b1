package remote

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// serveTCP serves a store in memory at a port of this machine.
func serveTCP(t *testing.T, o ServerOptions) Address {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	store := embedded.OpenMemory(embedded.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, store, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, store.Close())
	})
	return Address{Network: "tcp", Target: l.Addr().String()}
}

// requireServes checks that a client with these options can work.
func requireServes(t *testing.T, at Address, o Options) {
	db, err := Open(t.Context(), at, o)
	require.NoError(t, err)
	update(t, db, func(tx kv.Tx) { tx.Set([]byte("key"), []byte("value")) })
	require.Equal(t, "value", get(t, db, "key"))
	require.NoError(t, db.Close())
}

func TestTokens(t *testing.T) {
	t.Parallel()
	at := serveTCP(t, ServerOptions{Token: "secret"})
	for _, wrong := range []string{"", "s", "Secret", "secret ", strings.Repeat("x", maxToken),
		strings.Repeat("x", maxToken+1), strings.Repeat("x", 2*maxHello)} {
		_, err := Open(t.Context(), at, Options{Token: wrong})
		require.ErrorIs(t, err, ErrBadToken, wrong)
		require.False(t, kv.Retryable(err))
	}
	requireServes(t, at, Options{Token: "secret"})
}

// TestTokenChangesWhileAway has a server come back with another token: what is
// tried then fails, and says why, until the right one is back.
func TestTokenChangesWhileAway(t *testing.T) {
	t.Parallel()
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	path := socketPath(t)
	stop := serveAt(t, path, store, ServerOptions{Token: "one"})
	db, err := Open(t.Context(), Address{Network: "unix", Target: path}, Options{Token: "one"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	// An attempt to connect that is under way may still end in the old way.
	become := func(want error) {
		require.Eventually(t, func() bool {
			tx := db.Begin(kv.Options{})
			defer tx.Cancel()
			_, err := tx.Get([]byte("a")).Wait(t.Context())
			return errors.Is(err, want)
		}, patience, time.Millisecond, "%v", want)
	}
	become(nil)
	stop()
	become(kv.ErrUnavailable)
	stop = serveAt(t, path, store, ServerOptions{Token: "two"})
	become(ErrBadToken)
	stop()
	stop = serveAt(t, path, store, ServerOptions{Token: "one"})
	become(nil)
	stop()
}

func TestServeRefusesWhatIsNotSecure(t *testing.T) {
	t.Parallel()
	listen := func(at string) net.Listener {
		l, err := net.Listen("tcp", at)
		require.NoError(t, err)
		return l
	}
	err := Serve(t.Context(), listen("127.0.0.1:0"), nil, ServerOptions{})
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, "no token")
	err = Serve(t.Context(), listen("0.0.0.0:0"), nil, ServerOptions{Token: "x"})
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, "no TLS")
	err = Serve(t.Context(), listen("127.0.0.1:0"), nil, ServerOptions{Token: strings.Repeat("x", maxToken+1)})
	require.ErrorIs(t, err, ErrInsecure)
	_, err = Open(t.Context(), Address{Network: "tcp", Target: "192.0.2.1:1"}, Options{})
	require.ErrorIs(t, err, ErrInsecure)
}

func TestServeEndsWithItsListener(t *testing.T) {
	t.Parallel()
	l, err := ListenUnix(socketPath(t))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	err = Serve(t.Context(), l, nil, ServerOptions{})
	require.ErrorIs(t, err, net.ErrClosed)
}

// answering listens and lets answer talk to each client.
func answering(t *testing.T, answer func(net.Conn)) Address {
	path := socketPath(t)
	l, err := ListenUnix(path)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return Address{Network: "unix", Target: path}
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	nobody := Address{Network: "unix", Target: socketPath(t)}
	_, err := Open(t.Context(), nobody, Options{})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "nothing listens")

	say := func(words []byte) Address {
		return answering(t, func(conn net.Conn) {
			_, _, _ = readFrame(bufio.NewReader(conn), maxHello)
			_, _ = conn.Write(words)
		})
	}
	_, err = Open(t.Context(), say([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), Options{})
	require.ErrorIs(t, err, ErrNotServer)
	_, err = Open(t.Context(), say(appendFrame(nil, frameHello, []byte("FUTURAKX"), make([]byte, 9))), Options{})
	require.ErrorIs(t, err, ErrNotServer)
	_, err = Open(t.Context(), say(nil), Options{})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	newer := welcome{version: protocolVersion + 1, refusal: refusedVersion}
	_, err = Open(t.Context(), say(appendFrame(nil, frameHello, newer.encode(), nil)), Options{})
	require.ErrorIs(t, err, ErrBadVersion)

	mute := answering(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<10)); _, _ = conn.Read(make([]byte, 1)) })
	_, err = Open(t.Context(), mute, Options{DialTimeout: 20 * time.Millisecond})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ctx, mute, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestServerRefusesOtherProtocols sends something other than a hello; the server answers nothing
// and goes on serving others.
func TestServerRefusesOtherProtocols(t *testing.T) {
	t.Parallel()
	at := serveTCP(t, ServerOptions{Token: "secret", HandshakeTimeout: patience})
	hasty := serveTCP(t, ServerOptions{Token: "secret", HandshakeTimeout: 100 * time.Millisecond})
	good := hello{version: protocolVersion, token: []byte("secret"), id: "x"}
	long := good
	long.id = strings.Repeat("x", maxID+1)
	for name, words := range map[string][]byte{
		"nothing":    nil,
		"half":       {0, 0, 0},
		"http":       []byte("GET / HTTP/1.1\r\n\r\n"),
		"empty":      {0, 0, 0, 0},
		"huge":       {0xff, 0xff, 0xff, 0xff},
		"other kind": appendFrame(nil, frameBatch, good.encode(), nil),
		"no magic":   appendFrame(nil, frameHello, []byte("FUTURAKX\x00\x01\x00\x00"), nil),
		"cut":        appendFrame(nil, frameHello, good.encode()[:12], nil),
		"long id":    appendFrame(nil, frameHello, long.encode(), nil),
	} {
		to := at
		if len(words) < lengthSize {
			to = hasty // it takes them for the beginning of a hello
		}
		conn, err := net.Dial(to.Network, to.Target)
		require.NoError(t, err)
		_, err = conn.Write(words)
		require.NoError(t, err)
		n, err := conn.Read(make([]byte, 1))
		require.Error(t, err, name)
		require.Zero(t, n, name)
		require.NoError(t, conn.Close())
	}
	old := hello{version: 0, token: []byte("secret")}
	for want, h := range map[refusal]hello{
		refusedVersion: old, refusedToken: {version: 0, token: []byte("wrong")}, refusedNot: good,
	} {
		conn, err := net.Dial(at.Network, at.Target)
		require.NoError(t, err)
		_, err = conn.Write(appendFrame(nil, frameHello, h.encode(), nil))
		require.NoError(t, err)
		kind, body, err := readFrame(bufio.NewReader(conn), maxHello)
		require.NoError(t, err)
		w, err := decodeWelcome(kind, body)
		require.NoError(t, err)
		require.Equal(t, want, w.refusal)
		require.NoError(t, conn.Close())
	}
	requireServes(t, at, Options{Token: "secret"})
}

// certificate returns a certificate for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	own, trusted := certificate(t)
	at := serveTCP(t, ServerOptions{Token: "secret", TLS: &tls.Config{Certificates: []tls.Certificate{own}}})
	requireServes(t, at, Options{Token: "secret", TLS: &tls.Config{RootCAs: trusted}})

	_, others := certificate(t)
	_, err := Open(t.Context(), at, Options{Token: "secret", TLS: &tls.Config{RootCAs: others}})
	var untrusted *tls.CertificateVerificationError
	require.ErrorAs(t, err, &untrusted)
	require.False(t, kv.Retryable(err))
	_, err = Open(t.Context(), at, Options{Token: "secret"})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "does it expect TLS?")
	plain := serveTCP(t, ServerOptions{Token: "secret"})
	_, err = Open(t.Context(), plain, Options{Token: "secret", TLS: &tls.Config{RootCAs: trusted}})
	require.Error(t, err)
}

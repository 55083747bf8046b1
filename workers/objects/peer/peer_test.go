package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers/objects"
)

var sizes = []int{0, 1, 1000, 200_000, objects.PieceSize, objects.PieceSize + 1, 10*objects.PieceSize + 7}

// TestTransfer gets objects of all kinds of sizes in every way, from memory and
// from disk, over each kind of connection.
func TestTransfer(t *testing.T) {
	t.Parallel()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Certificate())
	serverTLS := &tls.Config{Certificates: certificate.TLS.Certificates}
	certificate.Close()
	for name, c := range map[string]struct {
		listen func(*testing.T) net.Listener
		server *tls.Config
		client *tls.Config
		store  objects.Options
	}{
		"tcp": {listen: listenTCP}, "unix": {listen: listenUnix},
		"disk": {listen: listenTCP, store: objects.Options{Memory: -1, Dir: t.TempDir()}},
		"heap": {listen: listenTCP, store: objects.Options{Memory: 64 << 20, MaxFiles: 1}},
		"tls":  {listen: listenTCP, server: serverTLS, client: &tls.Config{RootCAs: roots}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			held := openStore(t, c.store)
			address := serve(t, c.listen(t), held, ServerOptions{TLS: c.server})
			client := newClient(t, Options{TLS: c.client})
			for _, size := range sizes {
				want := someBytes(size)
				ref := put(t, held, want)
				got := make([]byte, size)
				require.NoError(t, client.Get(ctx, got, ref, address))
				require.True(t, bytes.Equal(want, got))
				var out bytes.Buffer
				n, err := client.Copy(ctx, &out, ref, address)
				require.NoError(t, err)
				require.EqualValues(t, size, n)
				require.True(t, bytes.Equal(want, out.Bytes()))
				for _, mine := range []*objects.Store{
					openStore(t, objects.Options{Memory: 64 << 20}), openStore(t, objects.Options{Memory: -1, Dir: t.TempDir()}),
				} {
					requireObject(t, want)(client.Fetch(ctx, mine, ref, address))
					require.True(t, mine.Has(ref.Hash))
					requireObject(t, want)(client.Open(ctx, mine, ref))
					require.Zero(t, mine.Stats().Reserved)
				}
				require.ErrorContains(t, client.Get(ctx, make([]byte, size+1), ref, address), "does not fit")
			}
		})
	}
}

// requireObject returns a function that checks and closes an object.
func requireObject(t *testing.T, want []byte) func(*objects.Object, error) {
	return func(o *objects.Object, err error) {
		t.Helper()
		require.NoError(t, err)
		got, err := io.ReadAll(o)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.NoError(t, o.Close())
	}
}

// TestCut breaks connections at and around every border of a piece: what has
// arrived is not sent again.
func TestCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 64 << 20})
	address := serve(t, listenTCP(t), held, ServerOptions{})
	const count = 6
	want := someBytes(count*objects.PieceSize - 100)
	ref := put(t, held, want)
	begin := int64(greetSize + 1 + 32)
	list := begin + replySize + count*32
	whole := list + count*replySize + ref.Size // what one connection reads that is not cut
	var cuts []int64
	for _, at := range []int64{0, 1, begin - 1, begin, begin + 1, begin + replySize, list - 1} {
		cuts = append(cuts, at)
	}
	for piece := range int64(count) {
		at := list + piece*(replySize+objects.PieceSize)
		cuts = append(cuts, at, at+1, at+replySize, at+replySize+1, at+replySize+objects.PieceSize/2,
			min(whole, at+replySize+objects.PieceSize)-1)
	}
	for _, cut := range cuts {
		y := &tally{cut: []int64{cut}}
		client := newClient(t, Options{Parallel: 1, dial: y.dial})
		store := openStore(t, objects.Options{Memory: 8 << 20})
		requireObject(t, want)(client.Fetch(ctx, store, ref, address))
		require.Equal(t, 2, y.connections, cut)
		// A piece that was cut, the list and the handshake are read once more.
		require.LessOrEqual(t, y.read, whole+list+objects.PieceSize+replySize, cut)
		y = &tally{cut: []int64{cut}}
		into := make([]byte, ref.Size)
		require.NoError(t, newClient(t, Options{Parallel: 1, dial: y.dial}).Get(ctx, into, ref, address))
		require.True(t, bytes.Equal(want, into))
		require.Equal(t, 2, y.connections, cut)
		require.LessOrEqual(t, y.read, whole+list+objects.PieceSize+replySize, cut)
	}
	// Several connections at a time, of which many break.
	y := &tally{}
	for i := range int64(12) {
		y.cut = append(y.cut, list+i*(objects.PieceSize-1000))
	}
	client := newClient(t, Options{Parallel: 3, dial: y.dial})
	requireObject(t, want)(client.Fetch(ctx, openStore(t, objects.Options{Memory: 8 << 20}), ref, address))
	got := make([]byte, len(want))
	y.connections = 0
	require.NoError(t, newClient(t, Options{Parallel: 3, dial: y.dial}).Get(ctx, got, ref, address))
	require.True(t, bytes.Equal(want, got))
}

// TestAnswerThatNobodyReads refuses a piece while the next ones are on their way: what
// comes over that connection is not taken for an answer to a later request.
func TestAnswerThatNobodyReads(t *testing.T) {
	t.Parallel()
	want := someBytes(6 * objects.PieceSize)
	held := openStore(t, objects.Options{Memory: 8 << 20})
	ref := put(t, held, want)
	o, err := held.Open(ref.Hash)
	require.NoError(t, err)
	defer o.Close()
	refused := false
	address := hostileServer(t, testToken, func(c net.Conn, r request) {
		says := func(r reply, content []byte) {
			var head [replySize]byte
			r.encode(&head)
			_, _ = c.Write(append(head[:], content...))
		}
		if r.op == opList {
			says(reply{statusOK, uint64(ref.Size)}, nil)
			for _, hash := range o.Pieces() {
				_, _ = c.Write(hash[:])
			}
			return
		}
		for piece := int(r.first); piece < int(r.first)+int(r.count); piece++ {
			if piece == 2 && !refused {
				refused = true
				says(reply{status: statusBusy}, nil)
				return
			}
			says(reply{statusOK, objects.PieceSize}, want[piece*objects.PieceSize:][:objects.PieceSize])
		}
	})
	into := make([]byte, ref.Size)
	client := newClient(t, Options{Parallel: 1, Attempts: 1})
	require.NoError(t, client.Get(context.Background(), into, ref, address))
	require.True(t, bytes.Equal(want, into))
	require.True(t, refused)
}

// TestSources takes what one source does not deliver from the next.
func TestSources(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	want := someBytes(4 * objects.PieceSize)
	held, empty := openStore(t, objects.Options{Memory: 64 << 20}), openStore(t, objects.Options{})
	ref := put(t, held, want)
	gone := listenTCP(t)
	require.NoError(t, gone.Close())
	sources := []string{
		"tcp:" + gone.Addr().String(), serve(t, listenUnix(t), empty, ServerOptions{}),
		"unix:" + filepath.Join(t.TempDir(), "no"), "mail:me", "tcp:nowhere",
	}
	client := newClient(t, Options{})
	store := openStore(t, objects.Options{Memory: 8 << 20})
	for _, get := range []func() error{
		func() error { _, err := client.Fetch(ctx, store, ref, sources...); return err },
		func() error { _, err := client.Open(ctx, store, ref, sources...); return err },
		func() error { return client.Get(ctx, make([]byte, ref.Size), ref, sources...) },
		func() error { _, err := client.Copy(ctx, io.Discard, ref, sources...); return err },
	} {
		err := get()
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorIs(t, err, objects.ErrNotFound)
		require.ErrorIs(t, err, ErrBadAddress)
		for _, part := range append(sources, ref.String(), "refused") {
			if strings.HasPrefix(part, "unix:") {
				part = "local socket: "
			}
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), testToken)
	}
	_, err := client.Fetch(ctx, store, ref)
	require.ErrorContains(t, err, "there are no sources")
	require.Zero(t, store.Stats().MemoryUsed)
	sources = append(sources, serve(t, listenTCP(t), held, ServerOptions{}))
	requireObject(t, want)(client.Fetch(ctx, store, ref, sources...))
}

// TestFetchOnce has many ask for the same object at the same time.
func TestFetchOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	want := someBytes(8 * objects.PieceSize)
	held := openStore(t, objects.Options{Memory: 64 << 20})
	ref := put(t, held, want)
	address := serve(t, listenTCP(t), held, ServerOptions{})
	y := &tally{}
	client := newClient(t, Options{dial: y.dial})
	store := openStore(t, objects.Options{Memory: 8 << 20})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			o, err := client.Fetch(ctx, store, ref, address)
			if err != nil {
				t.Error(err)
				return
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Less(t, y.read, ref.Size+objects.PieceSize)

	// One that waits and gives up does not end it for the others; the last does.
	other := put(t, held, someBytes(20*objects.PieceSize))
	_, err := client.Fetch(ctx, store, other, address)
	require.ErrorIs(t, err, objects.ErrFull)
	before := y.read
	_, err = client.Fetch(ctx, store, other, address)
	require.ErrorIs(t, err, objects.ErrFull)
	require.Equal(t, before, y.read, "nothing is sent")
}

// TestFetchFromOwnSources joins a fetch from a source that is gone, and then tries its own.
func TestFetchFromOwnSources(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	want := someBytes(3 * objects.PieceSize)
	held := openStore(t, objects.Options{Memory: 64 << 20})
	ref, gone := put(t, held, want), "tcp:127.0.0.1:1"
	address := serve(t, listenTCP(t), held, ServerOptions{})
	dialing, fail := make(chan struct{}), make(chan struct{})
	client := newClient(t, Options{Attempts: 1, dial: func(ctx context.Context, network, target string) (net.Conn, error) {
		if network+":"+target != gone {
			return new(net.Dialer).DialContext(ctx, network, target)
		}
		close(dialing)
		<-fail
		return nil, io.ErrUnexpectedEOF
	}})
	store := openStore(t, objects.Options{})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := client.Fetch(ctx, store, ref, gone)
		first <- err
	}()
	<-dialing
	go func() {
		o, err := client.Fetch(ctx, store, ref, address)
		if err == nil {
			err = o.Close()
		}
		second <- err
	}()
	for joined := false; !joined; runtime.Gosched() {
		client.mu.Lock()
		for _, f := range client.flights {
			joined = f.waiting == 2
		}
		client.mu.Unlock()
	}
	close(fail)
	require.ErrorIs(t, <-first, ErrUnavailable)
	require.NoError(t, <-second)
}

// TestGiveUp ends fetches by their context while a server keeps silent.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	l := listenTCP(t)
	defer l.Close()
	asked := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- c
		}
	}()
	client := newClient(t, Options{})
	store := openStore(t, objects.Options{})
	ref := objects.Ref{Size: 3 * objects.PieceSize}
	first, giveUp := context.WithCancel(context.Background())
	second, giveUpToo := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	fetch := func(ctx context.Context) {
		_, err := client.Fetch(ctx, store, ref, "tcp:"+l.Addr().String())
		ended <- err
	}
	go fetch(first)
	c := <-asked
	go fetch(second)
	require.Eventually(t, func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.flights[flightKey{store, ref}].waiting == 2
	}, time.Minute, time.Millisecond)
	giveUp()
	require.ErrorIs(t, <-ended, context.Canceled)
	client.mu.Lock()
	require.Len(t, client.flights, 1)
	client.mu.Unlock()
	giveUpToo()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err := io.Copy(io.Discard, c) // the client closes it
	if err != nil {
		require.ErrorContains(t, err, "reset")
	}
	require.NoError(t, client.Close())
	require.Zero(t, store.Stats().MemoryUsed)
	_, err = client.Fetch(context.Background(), store, ref, "tcp:"+l.Addr().String())
	require.ErrorIs(t, err, objects.ErrClosed)
	require.NoError(t, c.Close())
}

// TestBackOff waits on the clock between attempts.
func TestBackOff(t *testing.T) {
	t.Parallel()
	gone := listenTCP(t)
	require.NoError(t, gone.Close())
	virtual := clock.NewVirtual(clock.Real{}.Now())
	client := newClient(t, Options{Clock: virtual, Backoff: 1e9, Attempts: 3})
	ended := make(chan error)
	go func() {
		ended <- client.Get(context.Background(), make([]byte, 1), objects.Ref{Size: 1}, "tcp:"+gone.Addr().String())
	}()
	waits := 0
	for {
		select {
		case err := <-ended:
			require.ErrorIs(t, err, ErrUnavailable)
			require.Equal(t, 2, waits)
			return
		default:
		}
		if at, ok := virtual.Next(); ok {
			waits++
			virtual.Advance(at.Sub(virtual.Now()))
		}
	}
}

// TestInsecure refuses what others could read or guess.
func TestInsecure(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, err := NewClient(Options{Token: "short"})
	require.ErrorIs(t, err, ErrInsecure)
	require.NotContains(t, err.Error(), "short")
	store := openStore(t, objects.Options{})
	require.ErrorIs(t, Serve(ctx, listenTCP(t), store, ServerOptions{Token: "short"}), ErrInsecure)
	everywhere, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	require.ErrorIs(t, Serve(ctx, everywhere, store, ServerOptions{Token: testToken}), ErrInsecure)
	client := newClient(t, Options{})
	err = client.Get(ctx, make([]byte, 1), objects.Ref{Size: 1}, "tcp:192.0.2.1:1")
	require.ErrorIs(t, err, ErrInsecure)
	require.False(t, errors.Is(err, context.DeadlineExceeded))
}

// TestFailedListener ends a server whose listener fails.
func TestFailedListener(t *testing.T) {
	t.Parallel()
	l := listenTCP(t)
	require.NoError(t, l.Close())
	err := Serve(context.Background(), l, openStore(t, objects.Options{}), ServerOptions{Token: testToken})
	require.ErrorIs(t, err, net.ErrClosed)
}

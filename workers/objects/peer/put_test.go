package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// TestPut puts objects of all kinds of sizes into the store of another process.
func TestPut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, listen := range []func(*testing.T) net.Listener{listenTCP, listenUnix} {
		held := openStore(t, objects.Options{Memory: 64 << 20})
		address := serve(t, listen(t), held, ServerOptions{Puts: true})
		client := newClient(t, Options{})
		for _, size := range sizes {
			want := someBytes(size)
			for _, about := range []int64{0, int64(size), int64(size) + 1000} {
				ref, err := client.Put(ctx, address, bytes.NewReader(want), about)
				require.NoError(t, err)
				require.Equal(t, refOf(t, want), ref)
			}
			requireObject(t, want)(held.Open(refOf(t, want).Hash))
		}
		ref, err := client.Put(ctx, address, iotest.DataErrReader(bytes.NewReader(someBytes(objects.PieceSize))), 0)
		require.NoError(t, err)
		require.True(t, held.Has(ref.Hash))
	}
}

// TestPutRefused has servers without room, and one that takes nothing: the client
// learns why while it still sends.
func TestPutRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 4 << 20})
	address := serve(t, listenTCP(t), held, ServerOptions{Puts: true})
	client := newClient(t, Options{})
	for _, about := range []int64{0, 100 << 20, 1 << 62} {
		_, err := client.Put(ctx, address, rand.NewChaCha8([32]byte{}), about)
		require.ErrorIs(t, err, objects.ErrFull)
		require.ErrorContains(t, err, address)
	}
	_, err := client.Put(ctx, serve(t, listenTCP(t), held, ServerOptions{}), rand.NewChaCha8([32]byte{}), 0)
	require.ErrorIs(t, err, errNoPuts)
	_, err = client.Put(ctx, "mail:me", bytes.NewReader(nil), 0)
	require.ErrorIs(t, err, ErrBadAddress)
	requireEmpty(t, held)
}

// requireEmpty waits until nothing is under way in a store, and checks that it
// has nothing.
func requireEmpty(t *testing.T, s *objects.Store) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Stats().MemoryUsed == 0 }, time.Minute, time.Millisecond)
	require.Zero(t, s.Stats().Objects)
}

// TestErrorsDoNotNameSockets has a worker on this machine refuse, and one be gone: the
// path of its socket says nothing to who reads the error.
func TestErrorsDoNotNameSockets(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 4 << 20})
	address := serve(t, listenUnix(t), held, ServerOptions{Puts: true})
	client := newClient(t, Options{Attempts: 1})
	gone := "unix:" + t.TempDir() + "/gone.socket"
	for name, use := range map[string]func() error{
		"full": func() error { _, err := client.Put(ctx, address, rand.NewChaCha8([32]byte{}), 100<<20); return err },
		"gone": func() error { _, err := client.Put(ctx, gone, bytes.NewReader(nil), 0); return err },
		"room": func() error { _, err := client.Room(ctx, gone); return err },
		"read": func() error { _, err := client.Pieces(ctx, refOf(t, someBytes(2*objects.PieceSize)), gone); return err },
		"none": func() error {
			_, err := client.Pieces(ctx, refOf(t, someBytes(2*objects.PieceSize)), address)
			return err
		},
	} {
		err := use()
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), ".socket", name)
		require.NotContains(t, err.Error(), "closed network connection", name)
	}
}

// TestPutCut ends puts midway: by the reader, by the context, and by the
// connection. Nothing is kept.
func TestPutCut(t *testing.T) {
	t.Parallel()
	held := openStore(t, objects.Options{Memory: 64 << 20})
	address := serve(t, listenTCP(t), held, ServerOptions{Puts: true, PieceTimeout: 500 * time.Millisecond})
	client := newClient(t, Options{})
	broken := errors.New("broken")
	for _, size := range []int{0, 100, objects.PieceSize, 3*objects.PieceSize + 1} {
		ctx, cancel := context.WithCancel(context.Background())
		some := bytes.NewReader(someBytes(size))
		_, err := client.Put(ctx, address, io.MultiReader(some, iotest.ErrReader(broken)), 0)
		require.ErrorIs(t, err, broken)
		requireEmpty(t, held)
		some = bytes.NewReader(someBytes(size))
		_, err = client.Put(ctx, address, io.MultiReader(some, readerFunc(func(p []byte) (int, error) {
			cancel()
			return len(p), nil
		})), 0)
		require.ErrorIs(t, err, context.Canceled)
		requireEmpty(t, held)
	}
	// Connections that end, stall, or say something else, at any byte.
	head := func(value uint64) []byte {
		var b [replySize]byte
		reply{status: statusOK, value: value}.encode(&b)
		return b[:]
	}
	whole := append(head(1000), someBytes(1000)...)
	whole = append(append(whole, head(objects.PieceSize)...), someBytes(objects.PieceSize)...)
	for _, sent := range [][]byte{
		nil, whole[:1], whole[:replySize], whole[:replySize+1], whole[:replySize+1000], whole[:len(whole)-1], whole,
		head(objects.PieceSize + 1), head(1 << 62), make([]byte, replySize),
	} {
		for _, end := range []bool{true, false} {
			c := connectTo(t, address)
			require.NoError(t, introduce(c, testToken))
			var b [requestSize]byte
			request{op: opPut, first: 2000}.encode(&b)
			_, err := c.Write(append(b[:], sent...))
			require.NoError(t, err)
			if end {
				require.NoError(t, c.Close())
			} else {
				requireCut(t, c, "a put that stalls")
			}
			requireEmpty(t, held)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPutAnswers are lies of the server.
func TestPutAnswers(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(net.Conn, request){
		"another object": func(c net.Conn, _ request) {
			_, _ = io.CopyN(io.Discard, c, 3*replySize+1000-replySize)
			var b [replySize]byte
			reply{status: statusOK, value: 1000}.encode(&b)
			_, _ = c.Write(append(b[:], make([]byte, 32)...))
		},
		"nothing": func(c net.Conn, _ request) { _, _ = io.Copy(io.Discard, c) },
		"garbage": func(c net.Conn, _ request) { endless(c) },
		"an end":  func(c net.Conn, _ request) { _ = c.Close() },
	} {
		client := newClient(t, Options{PieceTimeout: 500 * time.Millisecond})
		_, err := client.Put(context.Background(), hostileServer(t, testToken, fn), bytes.NewReader(someBytes(1000)), 0)
		require.Error(t, err, name)
		if name == "another object" {
			require.ErrorIs(t, err, objects.ErrDamaged)
		}
	}
}

// TestPutToAServerThatStopsReading ends, though the server neither takes more nor answers.
func TestPutToAServerThatStopsReading(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	address := hostileServer(t, testToken, func(net.Conn, request) { <-over })
	defer close(over)
	client := newClient(t, Options{PieceTimeout: 100 * time.Millisecond})
	ended := make(chan error, 1)
	go func() {
		_, err := client.Put(t.Context(), address, rand.NewChaCha8([32]byte{}), 0)
		ended <- err
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(time.Minute):
		require.FailNow(t, "the put goes on")
	}
}

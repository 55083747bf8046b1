package peer

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// TestOwners has objects put for owners, and taken for them.
func TestOwners(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 8 << 20})
	var mu sync.Mutex
	kept := map[Owner]objects.Ref{}
	taken := make(chan bool, 2)
	known := make(chan struct{})
	wait := errors.New("not before the third time")
	address := serve(t, listenTCP(t), held, ServerOptions{
		Puts: true, PieceTimeout: 300 * time.Millisecond,
		Kept: func(owner Owner, ref objects.Ref) {
			mu.Lock()
			defer mu.Unlock()
			kept[owner] = ref
		},
		Take: func(ctx context.Context, owner Owner, o TakeOptions) error {
			switch owner {
			case Owner{1}:
				taken <- o.Alone
				return nil
			case Owner{2}:
				return objects.ErrFull
			case Owner{3}:
				<-ctx.Done() // the client is gone
				taken <- true
				return wait
			case Owner{5}:
				o.Arrived(1)
				o.Arrived(2)
				<-known // by the client
				return nil
			}
			return objects.ErrNotFound
		},
	})
	client := newClient(t, Options{})
	free, err := client.Room(ctx, address)
	require.NoError(t, err)
	require.Equal(t, held.Stats().Free, free)
	ref, err := client.PutFor(ctx, address, Owner{7}, bytes.NewReader(someBytes(100)), 0)
	require.NoError(t, err)
	mu.Lock()
	require.Equal(t, map[Owner]objects.Ref{{7}: ref}, kept)
	mu.Unlock()

	for _, alone := range []bool{true, false} {
		require.NoError(t, client.Take(ctx, address, Owner{1}, TakeOptions{Alone: alone}))
		require.Equal(t, alone, <-taken)
	}
	require.ErrorIs(t, client.Take(ctx, address, Owner{2}, TakeOptions{}), objects.ErrFull)
	require.ErrorIs(t, client.Take(ctx, address, Owner{4}, TakeOptions{}), objects.ErrNotFound)
	var news []int64
	require.NoError(t, client.Take(ctx, address, Owner{5}, TakeOptions{Arrived: func(n int64) {
		if news = append(news, n); n == 2 {
			close(known)
		}
	}}))
	require.Equal(t, int64(2), news[len(news)-1])
	require.IsNonDecreasing(t, news)
	gone, leave := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, leave)
	require.ErrorIs(t, client.Take(gone, address, Owner{3}, TakeOptions{}), context.Canceled)
	require.True(t, <-taken)

	closed := serve(t, listenTCP(t), held, ServerOptions{})
	_, err = client.Room(ctx, closed)
	require.ErrorIs(t, err, errNoPuts)
	require.ErrorIs(t, client.Take(ctx, closed, Owner{1}, TakeOptions{}), errNoPuts)
}

// TestTakeAnswers are lies of the server: the client ends.
func TestTakeAnswers(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(net.Conn, request){
		"nothing": func(c net.Conn, _ request) { _, _ = c.Read(make([]byte, 1)) },
		"garbage": func(c net.Conn, _ request) { endless(c) },
		"an end":  func(c net.Conn, _ request) { _ = c.Close() },
	} {
		client := newClient(t, Options{PieceTimeout: 300 * time.Millisecond})
		address := hostileServer(t, testToken, fn)
		require.Error(t, client.Take(context.Background(), address, Owner{1}, TakeOptions{Alone: true}), name)
		_, err := client.Room(context.Background(), address)
		require.Error(t, err, name)
	}
}

// TestAnAnswerIsTakenAtItsWord asks for an object that is not there over connections that were used before.
func TestAnAnswerIsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	held := openStore(t, objects.Options{Memory: 8 << 20})
	content := someBytes(2 * objects.PieceSize)
	ref := put(t, held, content)
	address := serve(t, listenTCP(t), held, ServerOptions{})
	dials := 0
	client := newClient(t, Options{Parallel: 1, dial: func(ctx context.Context, network, at string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, at)
	}})
	require.NoError(t, client.Get(t.Context(), content, ref, address))
	absent := objects.Ref{Hash: objects.Hash{1}, Size: ref.Size}
	require.ErrorIs(t, client.Get(t.Context(), content, absent, address), objects.ErrNotFound)
	require.Equal(t, 1, dials, "another connection has the same answer")
}

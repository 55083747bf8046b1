package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// echoHints heeds as many hints as their first byte says, and keeps who listens.
type echoHints struct {
	mu      sync.Mutex
	got     [][]byte
	hearers map[Owner]func()
	left    chan Owner
}

func newEchoHints() *echoHints {
	return &echoHints{hearers: map[Owner]func(){}, left: make(chan Owner, 100)}
}

func (e *echoHints) Hint(message []byte, n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, bytes.Clone(message))
	return int(message[0])
}

func (e *echoHints) Listen(who Owner, news func()) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hearers[who] = news
	return func() { e.left <- who }
}

func (e *echoHints) tell(who Owner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hearers[who]()
}

func serveHints(t *testing.T, o ServerOptions) (address string, hints *echoHints) {
	hints = newEchoHints()
	o.Hints = hints
	return serve(t, listenUnix(t), openStore(t, objects.Options{Memory: 1 << 20}), o), hints
}

func openHints(t *testing.T, address string, who Owner, news func()) *Hinting {
	t.Helper()
	h, err := newClient(t, Options{}).OpenHints(context.Background(), address, who, news)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// TestHintsAndNews sends hints from many goroutines over one connection, each of which
// gets its own answer, and has news come over it meanwhile.
func TestHintsAndNews(t *testing.T) {
	t.Parallel()
	address, hints := serveHints(t, ServerOptions{})
	who, news := Owner{1}, make(chan struct{}, 100)
	h := openHints(t, address, who, func() { news <- struct{}{} })
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			heeded, err := h.Hint(context.Background(), append([]byte{byte(i)}, make([]byte, i*80)...), 20)
			require.NoError(t, err)
			require.Equal(t, min(i, 20), heeded, "no more than asked for")
		})
	}
	hints.tell(who)
	<-news
	all.Wait()
	hints.mu.Lock()
	require.Len(t, hints.got, 50)
	hints.mu.Unlock()
	for _, size := range []int{0, MaxHint + 1} {
		_, err := h.Hint(context.Background(), make([]byte, size), 1)
		require.Error(t, err)
	}
	h.Close()
	require.Equal(t, who, <-hints.left)
	_, err := h.Hint(context.Background(), []byte{1}, 1)
	require.Error(t, err)
}

// TestHintsAreRefused asks a server that takes none, and one with another token.
func TestHintsAreRefused(t *testing.T) {
	t.Parallel()
	store := openStore(t, objects.Options{Memory: 1 << 20})
	address := serve(t, listenTCP(t), store, ServerOptions{})
	_, err := newClient(t, Options{}).OpenHints(context.Background(), address, Owner{}, nil)
	require.ErrorIs(t, err, errNoHint)
	address, _ = serveHints(t, ServerOptions{Token: "another token of some length"})
	_, err = newClient(t, Options{}).OpenHints(context.Background(), address, Owner{}, nil)
	require.ErrorIs(t, err, ErrRefused)
}

// TestConnectionsForHintsAreAPart of all, so that objects can be had beside them.
func TestConnectionsForHintsAreAPart(t *testing.T) {
	t.Parallel()
	address, _ := serveHints(t, ServerOptions{MaxConnections: 3 * hintShare})
	client := newClient(t, Options{})
	first := openHints(t, address, Owner{}, nil)
	openHints(t, address, Owner{}, nil)
	openHints(t, address, Owner{}, nil)
	_, err := client.OpenHints(context.Background(), address, Owner{}, nil)
	require.ErrorIs(t, err, errBusy)
	_, err = client.Room(context.Background(), address)
	require.ErrorIs(t, err, errNoPuts)
	first.Close()
	for again := (*Hinting)(nil); again == nil; { // once the server has seen it
		if again, err = client.OpenHints(context.Background(), address, Owner{}, nil); err == nil {
			again.Close()
		}
	}
}

// TestHostileHints do what a client should not: each is cut, what it listened to is
// forgotten, and others are served.
func TestHostileHints(t *testing.T) {
	t.Parallel()
	const brief = 300 * time.Millisecond
	address, hints := serveHints(t, ServerOptions{IdleTimeout: brief, PieceTimeout: brief})
	begin := func(who Owner) net.Conn {
		for {
			c := connectTo(t, address)
			if introduce(c, testToken) != nil {
				continue // a busy machine may need more than one attempt
			}
			var b [requestSize]byte
			request{op: opHints, hash: objects.Hash(who)}.encode(&b)
			_, err := c.Write(b[:])
			require.NoError(t, err)
			require.NoError(t, readReply(c, 0))
			return c
		}
	}
	head := func(length, n uint16) []byte {
		b := binary.BigEndian.AppendUint16(nil, length)
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, n), 7)
	}
	attacks := map[string]func(c net.Conn){
		"silent":     func(net.Conn) {},
		"too large":  func(c net.Conn) { _, _ = c.Write(head(MaxHint+1, 1)) },
		"unfinished": func(c net.Conn) { _, _ = c.Write(head(100, 1)) },
		"half":       func(c net.Conn) { _, _ = c.Write(head(100, 1)[:3]) },
		"flood, unread": func(c net.Conn) {
			hint := append(head(1, 1), 1)
			for c.SetWriteDeadline(time.Now().Add(time.Minute)) == nil {
				if _, err := c.Write(bytes.Repeat(hint, 1000)); err != nil {
					return
				}
			}
		},
	}
	number := byte(1)
	for name, attack := range attacks {
		number++
		who := Owner{number}
		c := begin(who)
		attack(c)
		require.Equal(t, who, <-hints.left, name)
		requireCut(t, c, name)
	}
	heeded, err := openHints(t, address, Owner{}, nil).Hint(context.Background(), []byte{3}, 5)
	require.NoError(t, err)
	require.Equal(t, 3, heeded)
}

// TestServersThatDoNotAnswerHints are given up on when the caller's time is over, or
// the connection ends.
func TestServersThatDoNotAnswerHints(t *testing.T) {
	t.Parallel()
	l := listenTCP(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			var b [requestSize]byte
			var head [replySize]byte
			reply{status: statusOK}.encode(&head)
			err = welcome(c, testToken)
			_, readErr := io.ReadFull(c, b[:])
			_, writeErr := c.Write(head[:])
			require.NoError(t, errors.Join(err, readErr, writeErr))
		}
		accepted <- c
	}()
	h := openHints(t, "tcp:"+l.Addr().String(), Owner{}, func() {})
	server := <-accepted
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := h.Hint(ctx, []byte{1}, 1)
	require.ErrorIs(t, err, context.Canceled)
	answer := make(chan error, 1)
	go func() { _, err := h.Hint(context.Background(), []byte{1}, 1); answer <- err }()
	var unknown [replySize]byte
	hintReply(replyHint, 1, 99).encode(&unknown) // nobody asked for it
	_, err = server.Write(unknown[:])
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.Error(t, <-answer)
	<-h.Done()
	require.Empty(t, h.waiting)
}

package peer

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/workers/objects"
)

const (
	testToken = "0123456789abcdef0123456789abcdef"
	// serveSocketDir makes the test's process serve an object, until it is killed
	// or its standard input ends.
	serveSocketDir = "FUTURA_TEST_SERVE_OBJECTS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveSocketDir); dir != "" {
		if err := serveChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// childSize is the size of the object that the child serves.
const childSize = 5*objects.PieceSize + 3

func serveChild(dir string) error {
	store, err := objects.Open(objects.Options{Memory: 64 << 20, Dir: dir + "/disk"})
	if err != nil {
		return err
	}
	if _, err := store.PutBytes(context.Background(), someBytes(childSize), objects.PutOptions{}); err != nil {
		return err
	}
	l, err := ListenUnix(dir, "child")
	if err != nil {
		return err
	}
	fmt.Println("serving")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return Serve(ctx, l, store, ServerOptions{Token: testToken})
}

// someBytes are n bytes that don't repeat.
func someBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

func openStore(t *testing.T, o objects.Options) *objects.Store {
	t.Helper()
	s, err := objects.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Zero(t, s.Stats().Pinned)
		require.Zero(t, s.Stats().MemoryUsed)
	})
	return s
}

func put(t *testing.T, s *objects.Store, b []byte) objects.Ref {
	t.Helper()
	ref, err := s.PutBytes(context.Background(), b, objects.PutOptions{})
	require.NoError(t, err)
	return ref
}

// serve serves a store at a listener until the test ends, and returns its address.
func serve(t *testing.T, l net.Listener, s *objects.Store, o ServerOptions) string {
	t.Helper()
	if o.Token == "" {
		o.Token = testToken
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, s, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return l.Addr().Network() + ":" + l.Addr().String()
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// socketDir is a directory with a short name.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "o")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func listenUnix(t *testing.T) net.Listener {
	t.Helper()
	l, err := ListenUnix(socketDir(t), "w")
	require.NoError(t, err)
	return l
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Token == "" {
		o.Token = testToken
	}
	if o.Backoff == 0 {
		o.Backoff = time.Nanosecond
	}
	c, err := NewClient(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// tally counts what a client's connections carry, and can break them.
type tally struct {
	mu          sync.Mutex
	connections int
	read        int64
	// cut is after how many bytes that are read a connection breaks: one number for
	// each connection, the last for none of the others.
	cut []int64
}

func (y *tally) dial(ctx context.Context, network, target string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, target)
	if err != nil {
		return nil, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	left := int64(1 << 60)
	if y.connections < len(y.cut) {
		left = y.cut[y.connections]
	}
	y.connections++
	return &tallied{Conn: c, tally: y, left: left}, nil
}

type tallied struct {
	net.Conn
	tally *tally
	left  int64
}

func (c *tallied) Read(p []byte) (int, error) {
	if c.left == 0 {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.tally.mu.Lock()
	c.tally.read += int64(n)
	c.tally.mu.Unlock()
	return n, err
}

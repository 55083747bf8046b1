package remote

import (
	"context"
	"math"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// cutting is a listener whose first connections are reset when their first bytes have
// come.
type cutting struct {
	net.Listener
	cuts  int32
	dials atomic.Int32
}

// Accept implements net.Listener.
func (c *cutting) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || c.dials.Add(1) > c.cuts {
			return conn, err
		}
		_, _ = conn.Read(make([]byte, 1))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // so that closing resets
		}
		_ = conn.Close()
	}
}

// TestOpenSurvivesACutConnection has a server reset connections before they have shown a
// token: Open connects once more, and no further time.
func TestOpenSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string]int32{"once": 1, "always": math.MaxInt32} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			l := &cutting{Listener: tcp, cuts: cuts}
			store := embedded.OpenMemory(embedded.Options{})
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- Serve(ctx, l, store, ServerOptions{Token: "secret"}) }()
			db, err := Open(t.Context(), Address{Network: "tcp", Target: tcp.Addr().String()}, Options{Token: "secret"})
			if cuts == 1 {
				require.NoError(t, err)
				require.NoError(t, db.Close())
			} else {
				require.ErrorIs(t, err, kv.ErrUnavailable)
			}
			require.EqualValues(t, 2, l.dials.Load())
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, store.Close())
		})
	}
}

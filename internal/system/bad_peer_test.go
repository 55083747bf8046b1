package system

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/workers"
)

// badPeers are answers to a message with an order: of one that refuses it, of one that has it
// and says no more, and of one that comes late.
var badPeers = map[string]func(ctx context.Context, chunk string) *protocol.Ack{
	"wrong status": func(_ context.Context, chunk string) *protocol.Ack {
		return &protocol.Ack{Code: protocol.CodeError, ChunkID: chunk}
	},
	"silence": func(_ context.Context, chunk string) *protocol.Ack {
		return &protocol.Ack{Code: protocol.CodeAccepted, ChunkID: chunk}
	},
	"slow": func(ctx context.Context, chunk string) *protocol.Ack {
		timer := time.NewTimer(20 * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return &protocol.Ack{Code: protocol.CodeAccepted, ChunkID: chunk}
	},
}

// TestABadPeerBesideAWorker has a bad peer over a real network, which says that it has all the
// slots there are, beside a worker of the store: of 200 futures, and of one alone, each begins
// at the worker soon. FUTURA_LONG=1 bounds the time.
func TestABadPeerBesideAWorker(t *testing.T) {
	for name, answer := range badPeers {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cluster, err := fdbmodel.Open(ctx, storetest.New(t), "plant", fdbmodel.Options{})
			require.NoError(t, err)
			headAddress, headEnded := runHead(ctx, t, cluster)
			worker, err := workers.FromCluster(cluster, workers.Options{Slots: 2})
			require.NoError(t, err)
			require.NoError(t, worker.Register("f", func(context.Context, []byte) ([]byte, error) { return nil, nil }))
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(ctx) }()
			<-worker.Ready()
			joinBadly(ctx, t, headAddress, answer)
			for _, n := range []int{1, 200, 1} {
				took := serveAll(ctx, t, cluster, n)
				t.Logf("%d: %v", n, took.Round(time.Millisecond))
				if os.Getenv("FUTURA_LONG") == "1" {
					require.Less(t, took, 2*time.Second)
				}
			}
			cancel()
			require.NoError(t, <-ended)
			require.NoError(t, <-headEnded)
		})
	}
}

// runHead runs a head that takes peers, and returns its address.
func runHead(ctx context.Context, t *testing.T, cluster *fdbmodel.Cluster) (address string, ended <-chan error) {
	host, err := p2p.Open(ctx, p2p.Options{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = host.Close() })
	h, err := peerhead.New(peerhead.Options{Cluster: cluster, Network: host, Key: []byte(strings.Repeat("k", 32))})
	require.NoError(t, err)
	end := make(chan error, 1)
	go func() { end <- h.Run(ctx) }()
	<-h.Ready()
	h.Serve(host)
	require.NoError(t, host.Start())
	return host.Addrs()[0], end
}

// joinBadly has a peer say hello that answers each order so.
func joinBadly(ctx context.Context, t *testing.T, head string, answer func(context.Context, string) *protocol.Ack) {
	host, err := p2p.Open(ctx, p2p.Options{Listen: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = host.Close() })
	host.OnCall(func(ctx context.Context, _ p2p.PeerID, message []byte) []byte {
		reply := &protocol.Ack{Code: protocol.CodeOK}
		if m, err := protocol.Decode(message); err == nil {
			if order, is := m.(*protocol.WorkOrderBatch); is {
				reply = answer(ctx, order.ChunkID)
			}
		}
		data, _ := protocol.Encode(reply, protocol.DialectFutura)
		return data
	})
	require.NoError(t, host.Start())
	id, err := host.Connect(ctx, head)
	require.NoError(t, err)
	hello, err := protocol.Encode(&protocol.Hello{Incarnation: "0123456789abcdef", Functions: []string{"go:f"},
		Capacity: protocol.Capacity{Slots: math.MaxInt32, CPUMillis: 1 << 20, RAMBytes: 1 << 40}}, protocol.DialectFutura)
	require.NoError(t, err)
	data, err := host.Call(ctx, id, hello)
	require.NoError(t, err)
	m, err := protocol.Decode(data)
	require.NoError(t, err)
	require.Equal(t, protocol.CodeOK, m.(*protocol.HelloResponse).Code, fmt.Sprint(m))
}

// serveAll submits futures and returns how long it takes until all have ended.
func serveAll(ctx context.Context, t *testing.T, cluster *fdbmodel.Cluster, n int) time.Duration {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f"}
	}
	began := time.Now()
	made, err := cluster.Submit(ctx, subs)
	require.NoError(t, err)
	ids := make([]layout.ID, n)
	for i := range made {
		ids[i] = made[i].ID
	}
	require.Eventually(t, func() bool {
		rows, err := cluster.GetMany(ctx, ids)
		require.NoError(t, err)
		return !slices.ContainsFunc(rows, func(r layout.Row) bool { return r.State() != layout.Realized })
	}, 2*time.Minute, 10*time.Millisecond)
	return time.Since(began)
}

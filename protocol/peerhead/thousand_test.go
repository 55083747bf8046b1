package peerhead_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestThousandPeers has a thousand peers (a hundred in a short run) join a head, be idle,
// answer a roll call, and run a batch of futures. It prints what a peer costs.
func TestThousandPeers(t *testing.T) {
	n := 100
	if os.Getenv("FUTURA_LONG") != "" {
		n = 1000
	}
	w := &world{T: t, peers: map[peerhead.PeerID]*fakePeer{}, blobs: map[string][]byte{}, ran: map[string]int{}}
	var end context.CancelFunc
	w.over, end = context.WithCancel(context.Background())
	defer end()
	var err error
	w.cluster, err = fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "peers", fdbmodel.Options{
		Config: layout.Config{Heartbeat: 5 * time.Second, DeadAfter: 10 * time.Minute}, // however slow the machine is
	})
	require.NoError(t, err)
	head, err := peerhead.New(peerhead.Options{Cluster: w.cluster, Network: w, Key: []byte(strings.Repeat("k", 32))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- head.Run(ctx) }()
	w.head = head
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	<-head.Ready()
	before, began := resident(), time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { w.join(fmt.Sprint("peer", i), 2) })
	}
	wg.Wait()
	t.Logf("%d peers joined within %v; each takes %d KB and %.1f goroutines of the head", n,
		time.Since(began).Round(time.Millisecond), (resident()-before)/int64(n)>>10,
		float64(runtime.NumGoroutine())/float64(n))

	began, before = time.Now(), resident()
	answered := 0
	answers, err := head.RollCall(ctx, protocol.RollCall{FunctionID: "f", Batch: true}, time.Minute,
		func(peerhead.PeerID) bool { answered++; return answered == n })
	require.NoError(t, err)
	require.Len(t, answers, n)
	t.Logf("a roll call of %d peers took %v and %d KB", n, time.Since(began).Round(10*time.Microsecond),
		max(0, resident()-before)>>10)

	began = time.Now()
	ids := w.submit(10 * n)
	require.Eventually(t, func() bool {
		for part := range slices.Chunk(ids, 500) {
			for _, row := range w.rows(part) {
				if row.State() != layout.Realized {
					return false
				}
			}
		}
		return true
	}, 5*time.Minute, 5*time.Millisecond)
	t.Logf("%d futures were run within %v", len(ids), time.Since(began).Round(time.Millisecond))
	require.Equal(t, 1, w.runs())
}

// resident is what is in use after a collection, in bytes.
func resident() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

package peerworker

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

// largeRunner returns its module as the result.
type largeRunner struct{}

func (largeRunner) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	code, err := call.Load(ctx)
	return workers.ModuleOutcome{Stdout: code}, err
}

// TestALargeModuleAndResultTravel moves a module of 64 MiB to a worker over libp2p, and
// an equal result back. With FUTURA_LONG=1 it measures the memory; else they have 8 MiB.
func TestALargeModuleAndResultTravel(t *testing.T) {
	size := 8 << 20
	long := os.Getenv("FUTURA_LONG") == "1"
	if long {
		size = modules.MaxSize
	}
	module := bytes.Repeat([]byte("\x00asm and so on. "), size/16)[:size]
	cid := cidOf(t, module)
	head, err := p2p.Open(t.Context(), p2p.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, head.Close()) })
	h := newHead(t, newMemory(), string(head.ID()))
	met, fetched := make(chan p2p.PeerID, 10), make(chan int64, 1)
	head.ServeBlobs(func(context.Context, p2p.PeerID, string) (io.ReadSeekCloser, int64, error) {
		return nopCloser{bytes.NewReader(module)}, int64(len(module)), nil
	})
	head.OnCall(func(ctx context.Context, from p2p.PeerID, message []byte) []byte {
		m, err := protocol.Decode(message)
		if err != nil {
			return nil
		}
		switch m := m.(type) {
		case *protocol.Hello:
			met <- from
		case *protocol.WorkOrderBatchResponse:
			for _, o := range m.Outcomes {
				if o.Blob != nil && head.FetchBlob(ctx, from, o.Blob.ID, io.Discard, p2p.FetchOptions{}) == nil {
					fetched <- o.Blob.Size
				}
			}
		}
		answer, err := protocol.Encode(h.answer(ctx, m), protocol.DialectFutura)
		if err != nil {
			return nil
		}
		return answer
	})
	require.NoError(t, head.Start())
	w, err := New(Options{Heads: head.Addrs(), Slots: 1, Modules: largeRunner{}})
	require.NoError(t, err)
	r := start(t, w, nil)
	from := <-met
	peak := watchHeap(t, long)
	data, err := protocol.Encode(moduleOrder(cid, []string{}), protocol.DialectFutura)
	require.NoError(t, err)
	_, err = head.Call(t.Context(), from, data)
	require.NoError(t, err)
	require.EqualValues(t, size, <-fetched)
	r.idle()
	if long {
		t.Logf("%d MiB at most above the start, for a module and a result of %d MiB", peak()>>20, size>>20)
		require.Less(t, peak(), int64(8*size))
	}
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// watchHeap returns the most bytes of the heap since it was called, above those then.
func watchHeap(t *testing.T, on bool) func() int64 {
	if !on {
		return func() int64 { return 0 }
	}
	debug.SetGCPercent(10)
	t.Cleanup(func() { debug.SetGCPercent(100) })
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := int64(stats.HeapAlloc)
	var most atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() {
		for clock.Sleep(ctx, clock.Real{}, 5*time.Millisecond) == nil {
			runtime.ReadMemStats(&stats)
			most.Store(max(most.Load(), int64(stats.HeapAlloc)-before))
		}
	}()
	return most.Load
}

package system

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerworker"
	"github.com/futura-run/futura/workers"
)

// Variables of the processes of a test of large results: a head's store, and a peer's head.
const (
	largeStoreVariable = "FUTURA_LARGE_STORE"
	largeHeadVariable  = "FUTURA_LARGE_HEAD"
	largeStateVariable = "FUTURA_LARGE_STATE"
	// The next are those of a head that is killed: the file of its key, and how many bytes of
	// the result it takes.
	largeKeyVariable   = "FUTURA_LARGE_KEY"
	largeTakesVariable = "FUTURA_LARGE_TAKES"
)

// largePart is how much the function writes at a time.
const largePart = 64 << 10

func largeSize() int {
	if os.Getenv("FUTURA_LONG") != "" {
		return 64 << 20
	}
	return 4 << 20
}

// largePiece is a part of the result.
func largePiece(i int) []byte {
	piece := make([]byte, largePart)
	binary.BigEndian.PutUint64(piece, uint64(i))
	return piece
}

// heapPeak returns the most bytes that the heap had since it was called.
func heapPeak() func() int64 {
	var most atomic.Int64
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := func() {
		metrics.Read(sample)
		most.Store(max(most.Load(), int64(sample[0].Value.Uint64())))
	}
	runtime.GC()
	look()
	go func() {
		for clock.Wait(context.Background(), clock.Real{}, time.Now().Add(5*time.Millisecond)) == nil {
			look()
		}
	}()
	return most.Load
}

// largeHeadMain is the process of a head. It says where it is, then what came of a future
// whose result is large, and lives until it is killed.
func largeHeadMain(ctx context.Context, store string) error {
	if takes := os.Getenv(largeTakesVariable); takes != "" {
		return killedHeadMain(ctx, store, takes)
	}
	client, err := openPlant(ctx, store)
	if err != nil {
		return err
	}
	key, err := p2p.NewKey()
	if err != nil {
		return err
	}
	host, err := p2p.Open(ctx, p2p.Options{Key: key})
	if err != nil {
		return err
	}
	ended, err := startHead(ctx, client, host, host, key)
	if err != nil {
		return err
	}
	fmt.Println(host.Addrs()[0])
	heap := heapPeak()
	// A client that submits a future reads its result once it has one.
	cluster := client.Cluster()
	large := layout.Spec{Function: "go:large", Codec: layout.CodecRaw}
	ids, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: large}})
	if err != nil {
		return err
	}
	for over := false; !over; {
		if err := clock.Sleep(ctx, clock.Real{}, 10*time.Millisecond); err != nil {
			return err
		}
		row, err := cluster.Get(ctx, ids[0].ID)
		if err != nil {
			return err
		}
		ending := row.Ending()
		over = ending.Over()
	}
	most, process := heap(), peakMemory(os.Getpid())
	sum, err := largeSum(ctx, client.Future(ids[0].ID))
	if err != nil {
		return err
	}
	fmt.Printf("%x %d %d\n", sum, most, process)
	return <-ended
}

// largeSum is the hash of a result, which is read piece by piece.
func largeSum(ctx context.Context, f *futures.Future) ([]byte, error) {
	s, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, s); err != nil {
		return nil, err
	}
	return hash.Sum(nil), s.Close()
}

// largePeerMain is the process of a peer, until it is killed.
func largePeerMain(ctx context.Context, head string) error {
	var heap func() int64
	w, err := peerworker.New(peerworker.Options{Heads: []string{head}, Slots: 1, State: os.Getenv(largeStateVariable),
		RedialMax: time.Second,
		Transfers: func(t peerworker.Transfer) {
			if t.Done == t.Total {
				fmt.Println(heap())
			}
		}})
	if err != nil {
		return err
	}
	err = w.Register("large", func(ctx context.Context, _ []byte) ([]byte, error) {
		to, err := workers.ResultWriter(ctx)
		for i := 0; err == nil && i < largeSize()/largePart; i++ {
			_, err = to.Write(largePiece(i))
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	heap = heapPeak()
	fmt.Println("begins")
	return w.Run(ctx)
}

// TestALargeResultTakesLittleMemory has a peer of its own process write 64 MiB, in memory or
// with a state, and a head of another one store them. In short it is 4 MiB.
// It prints what the heaps and the processes took at most, and with FUTURA_LONG=1 the
// growth is bounded:
//
//	FUTURA_LONG=1 go test -run TestALargeResult -v ./internal/system
func TestALargeResultTakesLittleMemory(t *testing.T) {
	want := sha256.New()
	for i := range largeSize() / largePart {
		_, _ = want.Write(largePiece(i)) // never fails
	}
	states := map[string]string{"memory": "", "state": filepath.Join(t.TempDir(), "state")}
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			head := startPeersProcess(t, "GOGC=100", largeStoreVariable+"=embedded:"+filepath.Join(t.TempDir(), "store"))
			before := peakMemory(head.command.Process.Pid)
			peer := startPeersProcess(t, "GOGC=100", largeHeadVariable+"="+head.line, largeStateVariable+"="+state)
			peerBefore := peakMemory(peer.command.Process.Pid)
			var sum string
			var after, headHeap, peerHeap int64
			_, err := fmt.Fscan(bufio.NewReader(head.out), &sum, &headHeap, &after)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%x", want.Sum(nil)), sum)
			_, err = fmt.Fscan(bufio.NewReader(peer.out), &peerHeap)
			require.NoError(t, err)
			peerAfter := peakMemory(peer.command.Process.Pid)
			const mib = 1 << 20
			t.Logf("a result of %d MiB: head %d to %d MiB, heap at most %d; peer %d to %d MiB, heap at most %d", largeSize()/mib,
				before/mib, after/mib, headHeap/mib, peerBefore/mib, peerAfter/mib, peerHeap/mib)
			if os.Getenv("FUTURA_LONG") != "" && after > 0 && !raced {
				require.Less(t, after-before, int64(60*mib))
				require.Less(t, peerAfter-peerBefore, int64(60*mib))
				if state == "" {
					require.Less(t, peerHeap, int64(40*mib))
				}
			}
		})
	}
}

package peerhead_test

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestAPieceThatIsReadHoldsUpNoOther has the store not answer for a piece of a module. Peers that take other pieces, of
// that module or of another one, do not wait for it. One that takes the same piece does, and it is read once for both.
func TestAPieceThatIsReadHoldsUpNoOther(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		ctx := context.Background()
		// Each piece is a different one: who is given another piece than its own is noticed.
		module := []byte("\x00asm")
		for i := range byte(3) {
			module = append(module, bytes.Repeat([]byte{i}, 512<<10)...)
		}
		open := func(p *fakePeer, code []byte) io.ReadSeekCloser {
			info, err := modules.Of(w.cluster).Put(ctx, code, "")
			require.NoError(w, err)
			r, size, err := w.head.OpenModule(ctx, p.id, info.CID)
			require.NoError(w, err)
			require.EqualValues(w, len(code), size)
			return r
		}
		p, q := w.join("p", 1), w.join("q", 1)
		first, same, later := open(p, module), open(q, module), open(q, module)
		single := append([]byte("\x00asm"), bytes.Repeat([]byte{9}, 512<<10)...)
		other := open(q, single)

		reads, goOn := make(chan struct{}), make(chan struct{})
		var asked atomic.Int32 // reads of the store
		w.store.SetOptions(faultkv.Options{Latency: time.Hour, Sleep: func(context.Context, time.Duration) error {
			if asked.Add(1) == 1 {
				close(reads)
				<-goOn
			}
			return nil
		}})
		const some = 1000
		take := func(r io.ReadSeeker, at int64, code []byte) <-chan struct{} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				got := make([]byte, some)
				_, err := r.Seek(at, io.SeekStart)
				if err == nil {
					_, err = io.ReadFull(r, got)
				}
				if err != nil || !bytes.Equal(code[at:at+some], got) {
					w.Errorf("%d bytes from %d on are others than those of the module: %v", some, at, err)
				}
			}()
			return done
		}
		held := take(first, 0, module)
		<-reads
		waits := take(same, 0, module)
		synctest.Wait()
		pass := func(done <-chan struct{}) {
			select {
			case <-done:
			case <-time.After(100 * time.Millisecond):
				w.Error("a piece waits for another one")
			}
		}
		pass(take(later, 1<<20, module))
		once := asked.Load() - 1 // how often the store is asked for a piece
		pass(take(other, 0, single))
		select {
		case <-held:
			w.Error("the piece was read without the store")
		case <-waits:
			w.Error("the piece was there before it was read")
		default:
		}
		before := asked.Load() - 1
		close(goOn)
		<-held
		<-waits
		require.Equal(w, once, asked.Load()-before, "it is read once for both")
		for _, r := range []io.Closer{first, same, later, other} {
			require.NoError(w, r.Close())
		}
	})
}

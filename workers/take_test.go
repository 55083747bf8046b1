package workers

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// gatedObject is an object at a worker which delivers when the gate is open, and fails
// the first reads.
type gatedObject struct {
	content []byte
	freeze  chan struct{}
	mu      sync.Mutex
	fails   int
	opened  int
}

func (g *gatedObject) OpenObject(context.Context, string, int64, *results.Copy) (results.OpenObject, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened++
	return g, nil
}

func (g *gatedObject) ReadAt(ctx context.Context, p []byte, offset int64) error {
	select {
	case <-g.freeze:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails--; g.fails >= 0 {
		return objects.ErrClosed
	}
	copy(p, g.content[offset:])
	return nil
}

func (g *gatedObject) Close() {}

// TestTakesShareATransfer has a worker with room for one copy of an object take it for
// eight callers at once: one transfer serves them all. If it fails, one of the others
// begins another.
func TestTakesShareATransfer(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{0, 1} {
		b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
		from := &gatedObject{content: bytes.Repeat([]byte("x"), 600_000), freeze: make(chan struct{}), fails: fails}
		results.Of(b.cluster).OfferReader(from)
		k := storeOf(t, 1<<20)
		source := b.register()
		k.cluster, k.reg = b.cluster, b.register()
		k.worker = k.reg.ID()
		ref, err := storeOf(t, 1<<20).store.PutBytes(b.ctx, from.content, objects.PutOptions{})
		require.NoError(t, err)
		ids, err := b.cluster.DrawIDs(1)
		require.NoError(t, err)
		_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[0], Object: ref.Hash.String(), Size: ref.Size,
			Holder: source.ID()})
		require.NoError(t, err)
		var owner peer.Owner
		copy(owner[:], ids[0][:])
		const callers = 8
		ended := make(chan error, callers)
		for range callers {
			go func() { ended <- k.take(b.ctx, owner, peer.TakeOptions{Arrived: func(int64) {}}) }()
		}
		b.await("all to wait", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			f := k.fetches[ref.Hash]
			return f != nil && len(f.waiting) == callers
		})
		require.LessOrEqual(t, k.store.Stats().Reserved, int64(700_000))
		close(from.freeze)
		failed := 0
		for range callers {
			if <-ended != nil {
				failed++
			}
		}
		require.Equal(t, fails, failed)
		require.Equal(t, 1+fails, from.opened)
		require.True(t, k.store.Has(ref.Hash))
		require.Zero(t, k.store.Stats().Reserved)
		copies, err := results.Of(b.cluster).Copies(b.ctx, ids[0])
		require.NoError(t, err)
		require.Len(t, copies, 2)
	}
}

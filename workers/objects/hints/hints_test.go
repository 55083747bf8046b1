package hints

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "a secret of more than sixteen bytes"

// bed is a cluster with workers of other processes that take hints.
type bed struct {
	*testing.T
	ctx     context.Context
	clock   *clock.Virtual
	cluster *fdbmodel.Cluster
	sender  *Sender
	news    atomic.Int64
}

func newBed(t *testing.T) *bed {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	b := &bed{T: t, ctx: ctx, clock: clock.NewVirtual(time.Unix(1_900_000_000, 0))}
	var err error
	b.cluster, err = fdbmodel.Open(ctx, db, "hints", fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	b.sender = New(b.cluster, Options{Session: "0123456789abcdef", News: func() { b.news.Add(1) }})
	b.sender.timeout = time.Minute // a busy machine is no reason to give up
	t.Cleanup(b.sender.Close)
	return b
}

// target is what a worker does with hints.
type target struct {
	id    layout.WorkerID
	heeds atomic.Int64  // how many of a hint
	holds chan struct{} // answers come once it is closed; nil for at once
	asked atomic.Int64
	tell  chan func() // what its listener gave
	stop  func()      // ends the process
}

func (g *target) Hint(_ []byte, _ int) int {
	g.asked.Add(1)
	if g.holds != nil {
		<-g.holds
	}
	return int(g.heeds.Load())
}

func (g *target) Listen(who peer.Owner, news func()) func() {
	if SessionOf(who) == "0123456789abcdef" {
		g.tell <- news
	}
	return func() {}
}

// worker registers a worker that takes hints.
func (b *bed) worker(g *target) *target {
	b.Helper()
	store, err := objects.Open(objects.Options{Memory: 1 << 20})
	require.NoError(b, err)
	l, err := peer.ListenUnix(b.TempDir(), "w")
	require.NoError(b, err)
	g.tell = make(chan func(), 1)
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- peer.Serve(ctx, l, store, peer.ServerOptions{Token: secret, Hints: g}) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(b, <-ended)
		require.NoError(b, store.Close())
	})
	b.Cleanup(g.stop)
	g.id = b.register("tcp:nowhere " + "unix:" + l.Addr().String()) // the first does not answer
	return g
}

func (b *bed) register(addresses string) layout.WorkerID {
	b.Helper()
	r, err := b.cluster.Register(b.ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1}, Objects: addresses, Secret: secret,
	})
	require.NoError(b, err)
	return r.ID()
}

// meet has the sender connect to a worker.
func (b *bed) meet(g *target) {
	b.sender.Met([]layout.WorkerID{g.id})
	b.sender.opening.Wait()
}

func (b *bed) hint(n int) int { return b.sender.Hint(b.ctx, []byte("message"), n) }

// TestHintsGoToThoseWhoHeedThem asks several workers, the one that heeded last first,
// and leaves those alone that did not, for longer each time.
func TestHintsGoToThoseWhoHeedThem(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Zero(t, b.hint(1), "it knows nobody")
	lazy, eager := b.worker(&target{}), b.worker(&target{})
	eager.heeds.Store(1)
	b.meet(lazy)
	b.meet(eager)
	b.meet(eager) // it is known
	require.Len(t, b.sender.known, 2)
	require.Equal(t, 1, b.hint(1))
	require.Equal(t, int64(1), lazy.asked.Load())
	for range 5 {
		require.Equal(t, 1, b.hint(1))
	}
	require.Equal(t, int64(1), lazy.asked.Load(), "another one comes first")
	lazy.heeds.Store(3)
	b.clock.Advance(refusedMin)
	require.Equal(t, 3, b.hint(3))
	require.Equal(t, int64(2), lazy.asked.Load(), "one alone does not suffice")
	eager.heeds.Store(0)
	lazy.heeds.Store(0)
	asked := eager.asked.Load() + lazy.asked.Load()
	for range 10_000 { // ten seconds
		b.clock.Advance(time.Millisecond)
		require.Zero(t, b.hint(1))
	}
	asked = eager.asked.Load() + lazy.asked.Load() - asked
	require.Less(t, asked, int64(2*(10*time.Second/refusedMax+10)), "busy workers are asked seldom")
	require.Greater(t, asked, int64(10*time.Second/refusedMax))

	(<-eager.tell)()
	for b.news.Load() == 0 {
		require.Zero(t, b.hint(1)) // the connection moves
		b.clock.Advance(refusedMax)
	}
}

// TestWorkersThatAreGone lets workers die, come to a stop and register under false
// addresses: no hint waits longer than it may, and the sender forgets them.
func TestWorkersThatAreGone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dead := b.worker(&target{})
	dead.heeds.Store(1)
	b.meet(dead)
	require.Equal(t, 1, b.hint(1))
	dead.stop()
	require.Zero(t, b.hint(1))
	b.sender.opening.Wait()
	require.Empty(t, b.sender.known)

	stuck := b.worker(&target{holds: make(chan struct{})})
	release := sync.OnceFunc(func() { close(stuck.holds) })
	t.Cleanup(release)
	b.meet(stuck)
	b.sender.timeout = hintTimeout
	start := time.Now()
	require.Zero(t, b.hint(1))
	require.GreaterOrEqual(t, time.Since(start), hintTimeout)
	require.Empty(t, b.sender.reachable(), "it is left alone for a while")
	b.clock.Advance(lateMax)
	require.Len(t, b.sender.reachable(), 1)
	release()
	stuck.heeds.Store(2)
	b.sender.timeout = time.Minute
	for b.hint(2) == 0 {
		b.clock.Advance(lateMax)
	}

	for _, address := range []string{"", "tcp:127.0.0.1:1", "unix:/nowhere", "x"} {
		id := b.register(address)
		for range 3 {
			b.sender.Met([]layout.WorkerID{id})
			b.sender.opening.Wait()
		}
		w := b.sender.find(id)
		require.Nil(t, w.line, address)
		require.Equal(t, closedMin, w.failed, "it was tried once")
		b.clock.Advance(closedMin)
		b.sender.Met([]layout.WorkerID{id})
		b.sender.opening.Wait()
		require.Equal(t, 2*closedMin, w.failed)
	}
	b.sender.Met([]layout.WorkerID{"0123456789abcdef"}) // it left
	b.sender.opening.Wait()
	require.Equal(t, 2, b.hint(2), "the others don't matter")
	b.sender.Close()
	b.sender.Met([]layout.WorkerID{stuck.id})
	require.Zero(t, b.hint(2))
	b.sender.Close()
}

// TestConnectionsAreBounded meets more workers than a sender connects to: those that
// don't heed make room, one each second.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	all := make([]*target, maxLines+3)
	for i := range all {
		all[i] = b.worker(&target{})
		if i < maxLines {
			b.meet(all[i])
		}
	}
	require.Len(t, b.sender.known, maxLines)
	last := all[maxLines:]
	for i := range last {
		b.meet(last[i])
		require.Nil(t, b.sender.find(last[i].id), "nobody has refused yet")
	}
	require.Zero(t, b.hint(1)) // four refuse
	b.meet(last[0])
	require.NotNil(t, b.sender.find(last[0].id))
	b.meet(last[1])
	require.Nil(t, b.sender.find(last[1].id), "just now another one made room")
	b.clock.Advance(evictEvery)
	b.meet(last[1])
	require.NotNil(t, b.sender.find(last[1].id))
	require.Len(t, b.sender.known, maxLines)
	for i := range 2 * maxKnown {
		b.sender.Met([]layout.WorkerID{layout.WorkerID(fmt.Sprintf("%016x", i))})
		b.clock.Advance(evictEvery)
		b.sender.opening.Wait()
	}
	require.LessOrEqual(t, len(b.sender.known), maxKnown)
}

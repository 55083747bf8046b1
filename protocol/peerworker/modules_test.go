package peerworker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// toldStore is a store that tells once of the next change of modules.
type toldStore struct {
	kv.Database
	tell atomic.Pointer[func()]
}

func (s *toldStore) Begin(o kv.Options) kv.Tx {
	if o.Tag != "futura-code" {
		return s.Database.Begin(o)
	}
	return &toldTx{s.Database.Begin(o), s}
}

type toldTx struct {
	kv.Tx
	store *toldStore
}

func (t *toldTx) Commit(ctx context.Context) (kv.Committed, error) {
	if tell := t.store.tell.Swap(nil); tell != nil {
		(*tell)()
	}
	return t.Tx.Commit(ctx)
}

// gatedRunner has modules wait while it has a gate.
type gatedRunner struct{ gate atomic.Pointer[chan struct{}] }

func (r *gatedRunner) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	if gate := r.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
		}
	}
	return echoRunner{}.RunModule(ctx, call)
}

// offer has a head have a module of so many bytes, and returns an order for it.
func (h *fakeHead) offer(size int, content string) *protocol.WorkOrderBatch {
	code := append([]byte("\x00asm"), bytes.Repeat([]byte(content), size)[:size-4]...)
	cid := cidOf(h.t, code)
	h.set(func() { h.blobs[cid] = code })
	return moduleOrder(cid, []string{})
}

// TestAModuleThatIsOrderedStays has a head order a module at the moment in which others are removed before it.
func TestAModuleThatIsOrderedStays(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	o, store, runner, gate := options(n), &toldStore{}, &gatedRunner{}, make(chan struct{})
	o.Modules = runner
	o.Seam = &seam.PeerWorker{Open: func(ctx context.Context) (db kv.Database, err error) {
		store.Database, err = kvopen.Open(ctx, "memory:", kvopen.Options{Exclusive: true})
		return store, err
	}}
	w := run(t, o)
	var cids []string
	for _, content := range []string{"a", "b"} {
		m := h.offer(100, content)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		h.all(m.ChunkID, 1)
		w.idle()
		cids = append(cids, m.Module)
	}
	runner.gate.Store(&gate)
	w.options.ModuleCache = 1
	again := h.offer(100, "b")
	order := func() { require.Equal(t, protocol.CodeAccepted, h.order(again).Code) }
	store.tell.Store(&order)
	require.NoError(t, w.modules.evict(t.Context(), ""))
	stored, err := modules.Of(w.node.cluster).List(t.Context())
	require.NoError(t, err)
	isStored := func(cid string) bool {
		return slices.ContainsFunc(stored, func(s layout.Module) bool { return s.CID == cid })
	}
	require.False(t, isStored(cids[0]))
	require.True(t, isStored(cids[1]))
	close(gate)
	require.True(t, h.all(again.ChunkID, 1)[0].OK())
	w.idle()
}

// TestModulesWithoutRoomTakeNoTurns has two heads order more modules than there is room for, and as many at a time as
// are fetched. A third one gets its module.
func TestModulesWithoutRoomTakeNoTurns(t *testing.T) {
	t.Parallel()
	n := newMemory()
	o, runner, gate := options(n), &gatedRunner{}, make(chan struct{})
	heads := []*fakeHead{newHead(t, n, headID), newHead(t, n, "12D3KooWOther"), newHead(t, n, "12D3KooWThird")}
	for _, h := range heads[1:] {
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/"+h.id)
	}
	o.Modules, o.Slots, o.ModuleCache = runner, 100, 1000
	runner.gate.Store(&gate)
	w := run(t, o)
	for _, h := range heads[:2] {
		require.Equal(t, protocol.CodeAccepted, h.order(h.offer(700, h.id)).Code)
		before := int64(slices.Index(heads, h))
		require.Eventually(t, func() bool { return w.counts.fetched.Load() > before }, testTime, time.Millisecond)
	}
	for _, h := range heads[:2] {
		for i := range maxDownloads / 2 {
			require.Equal(t, protocol.CodeAccepted, h.order(h.offer(100, fmt.Sprint(h.id, i))).Code)
		}
		require.Eventually(t, func() bool { return len(w.modules.turnsOf(h.id)) == maxDownloads/2 }, testTime,
			time.Millisecond)
	}
	m := heads[2].offer(100, "c")
	require.Equal(t, protocol.CodeAccepted, heads[2].order(m).Code)
	require.Eventually(t, func() bool { return w.counts.fetched.Load() > 2 }, testTime, time.Millisecond)
	close(gate)
	require.True(t, heads[2].all(m.ChunkID, 1)[0].OK())
}

// TestWhatWasCutOffGoesAfterAWhile has no order ask again for a module of which some has come.
func TestWhatWasCutOffGoesAfterAWhile(t *testing.T) {
	t.Parallel()
	n := newMemory()
	newHead(t, n, headID)
	o, moved := options(n), clock.NewVirtual(time.Unix(0, 0))
	o.clock = moved
	w := run(t, o)
	one, err := newSpool()
	require.NoError(t, err)
	w.modules.cut.put(blobName{headID, "some"}, one)
	moved.Advance(spoolFor)
	require.Eventually(t, func() bool {
		w.modules.cut.mu.Lock()
		defer w.modules.cut.mu.Unlock()
		return len(w.modules.cut.by) == 0
	}, testTime, time.Millisecond)
	_, err = one.Write([]byte("more"))
	require.ErrorIs(t, err, os.ErrClosed)
}

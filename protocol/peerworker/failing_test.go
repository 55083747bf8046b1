package peerworker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/protocol"
)

// fullStore is a store whose commits of the journal fail while it has an error for them.
type fullStore struct {
	kv.Database
	err atomic.Pointer[error]
	all bool // others fail as well
	// stalled has commits of the journal wait until it is closed.
	stalled atomic.Pointer[chan struct{}]
	log     stacktest.Buffer
}

// stall has commits of the journal wait until the returned function is called.
func (s *fullStore) stall() (goOn func()) {
	until := make(chan struct{})
	s.stalled.Store(&until)
	return sync.OnceFunc(func() {
		s.stalled.Store(nil)
		close(until)
	})
}

func (s *fullStore) Begin(o kv.Options) kv.Tx {
	return &fullTx{s.Database.Begin(o), s, s.all || o.Tag == "futura-peer"}
}

type fullTx struct {
	kv.Tx
	store *fullStore
	ofIt  bool
}

func (t *fullTx) Commit(ctx context.Context) (kv.Committed, error) {
	if until := t.store.stalled.Load(); until != nil && t.ofIt {
		<-*until
	}
	if err := t.store.err.Load(); err != nil && t.ofIt {
		return kv.Committed{}, *err
	}
	return t.Tx.Commit(ctx)
}

// fill has commits of the journal fail from now on; nil ends that.
func (s *fullStore) fill(kind error) {
	if kind == nil {
		s.err.Store(nil)
		return
	}
	err := fmt.Errorf("%w: %w", kind, syscall.ENOSPC)
	s.err.Store(&err)
}

// onFullStore are options with a directory whose store may be full.
func onFullStore(t *testing.T) (*memory, *fakeHead, Options, *fullStore) {
	n, h, o := withState(t)
	store := &fullStore{}
	o.Logger = slog.New(slog.NewTextHandler(&store.log, nil))
	o.Seam = &seam.PeerWorker{Open: func(ctx context.Context) (kv.Database, error) {
		db, err := kvopen.Open(ctx, "embedded:"+o.State, kvopen.Options{Exclusive: true})
		store.Database = db
		return store, err
	}}
	return n, h, o, store
}

// TestAFullDiskLosesNoResult has the disk be full when outcomes are written: heads get them, the
// worker takes no orders, says so once, and goes on once there is room.
func TestAFullDiskLosesNoResult(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	w, called, release := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	<-called
	store.fill(kv.ErrReadOnly)
	close(release)
	for i, x := range h.all(m.ChunkID, 2) {
		require.Equal(t, string(m.Items[i].Args), string(x.Value))
	}
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("double", "a")).Code)
	require.NotNil(t, r.chunk(chunkName{headID, m.ChunkID}), "the journal has it still")
	store.fill(nil)
	later := goOrder("double", "c")
	require.Eventually(t, func() bool { return h.order(later).Code == protocol.CodeAccepted }, testTime, lookAgain/10)
	require.Equal(t, "cc", string(h.all(later.ChunkID, 1)[0].Value))
	r.idle()
	require.Equal(t, 1, strings.Count(store.log.String(), "the journal can't be written"), store.log.String())
	require.Equal(t, 1, strings.Count(store.log.String(), "the journal can be written again"), store.log.String())
}

// TestAFailedStoreLosesNoResult has the store fail for good: the worker ends, after it has sent
// what it has.
func TestAFailedStoreLosesNoResult(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	w, called, release := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	<-called
	store.fill(kv.ErrStoreFailed)
	close(release)
	h.all(m.ChunkID, 2)
	require.ErrorIs(t, <-r.done, kv.ErrStoreFailed)
	close(r.done)
}

// TestAFailedStoreGivesBackWhatRuns has all of the store fail while functions run.
func TestAFailedStoreGivesBackWhatRuns(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	store.all = true
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	r.awaitHead()
	m := goOrder("held", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	store.fill(kv.ErrStoreFailed)
	require.ErrorIs(t, <-r.done, kv.ErrStoreFailed)
	close(r.done)
	last := h.goodbyes[len(h.goodbyes)-1]
	require.Equal(t, []protocol.Returned{{ChunkID: m.ChunkID, Indexes: []int{0}}}, last.Returned)
	require.NotContains(t, store.log.String(), "results that the head has not taken")
}

// TestAnOrderThatCantBeWrittenIsRefused has the disk be full when an order is written: nothing is
// left of it, and the head may send it again.
func TestAnOrderThatCantBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	w, _, _ := holding(t, o)
	r := start(t, w, n)
	store.fill(kv.ErrReadOnly)
	m := goOrder("double", "a")
	require.Equal(t, protocol.CodeUnavailable, h.order(m).Code)
	require.Zero(t, r.Stats().Chunks)
	require.Zero(t, r.Stats().Bytes)
	store.fill(nil)
	require.Eventually(t, func() bool { return h.order(m).Code == protocol.CodeAccepted }, testTime, lookAgain/10)
	require.Equal(t, "aa", string(h.all(m.ChunkID, 1)[0].Value))
	r.idle()
}

// TestACancelDoesNotWaitForTheJournal has a write of the journal last while a head cancels what runs.
func TestACancelDoesNotWaitForTheJournal(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	w, called, _ := holding(t, o)
	ended := make(chan struct{})
	require.NoError(t, w.Register("heeds", func(ctx context.Context, _ []byte) ([]byte, error) {
		called <- ""
		<-ctx.Done()
		close(ended)
		return nil, context.Cause(ctx)
	}))
	r := start(t, w, n)
	m := goOrder("heeds", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	goOn := store.stall()
	defer goOn()
	answers := make(chan protocol.Code, 1)
	go func() { answers <- h.order(&protocol.CancelOrder{ChunkID: m.ChunkID, Reason: "no more"}).Code }()
	<-ended
	goOn()
	require.Equal(t, protocol.CodeOK, <-answers)
	require.Equal(t, string(layout.KindCancelled), h.all(m.ChunkID, 1)[0].Kind)
	r.idle()
}

// TestWhatIsWantedBackOfAnOrderThatIsBeingWritten is given back once it is.
func TestWhatIsWantedBackOfAnOrderThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	n, h, o, store := onFullStore(t)
	o.Slots = 1
	w, called, release := holding(t, o)
	r := start(t, w, n)
	first, m := goOrder("held", "a"), goOrder("held", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(first).Code)
	<-called
	goOn := store.stall()
	defer goOn()
	answers := make(chan protocol.Code, 1)
	go func() { answers <- h.order(m).Code }()
	name := chunkName{headID, m.ChunkID}
	require.Eventually(t, func() bool { return r.chunk(name) != nil }, testTime, time.Millisecond)
	require.Equal(t, protocol.CodeOK, h.takeBack(m))
	c := r.chunk(name)
	require.Eventually(t, func() bool { // it was looked at once
		r.mu.Lock()
		defer r.mu.Unlock()
		asked, waits := r.asked[c]
		return !waits || !asked.due.IsZero()
	}, testTime, time.Millisecond)
	goOn()
	require.Equal(t, protocol.CodeAccepted, <-answers)
	require.Equal(t, protocol.CodeUnavailable, h.all(m.ChunkID, 1)[0].Code)
	close(release)
	h.all(first.ChunkID, 1)
	r.idle()
}

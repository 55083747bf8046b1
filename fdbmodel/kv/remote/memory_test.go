package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestOpenTransactionsShareTheMemory has one client open transactions with
// megabytes each until it gets no more: another client is served meanwhile, and
// the first one again when it has given some back.
func TestOpenTransactionsShareTheMemory(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{MaxMemory: 32 << 20})
	greedy, other := dial(t, at), dial(t, at)
	var open []kv.Tx
	var refused error
	for range 80 {
		tx := greedy.Begin(kv.Options{})
		for i := range 10 {
			tx.Set([]byte{'k', byte(i)}, make([]byte, kv.MaxValueSize))
		}
		open = append(open, tx)
		if _, refused = tx.Get([]byte("k")).Wait(t.Context()); refused != nil {
			break
		}
	}
	require.ErrorIs(t, refused, kv.ErrUnavailable)
	require.ErrorContains(t, refused, "MaxMemory")
	require.LessOrEqual(t, len(open), 4)
	update(t, other, func(tx kv.Tx) { tx.Set([]byte("a"), []byte("other")) })
	require.Equal(t, "other", get(t, other, "a"))
	for _, tx := range open {
		tx.Cancel()
	}
	update(t, greedy, func(tx kv.Tx) { tx.Set([]byte("a"), []byte("greedy")) })
	require.Equal(t, "greedy", get(t, other, "a"))

	// Many small operations take more than their bytes.
	tx := greedy.Begin(kv.Options{})
	for i := range uint32(1 << 17) {
		tx.Clear(binary.BigEndian.AppendUint32(nil, i>>8))
	}
	_, err := tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrTxTooLarge)
}

// TestWatchesShareTheMemory sets more watches than a connection may have: another one
// has room for its own.
func TestWatchesShareTheMemory(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{MaxMemory: 32 << 20})
	db, other := dial(t, at), dial(t, at)
	var watches []kv.Watch
	watch := func(key []byte) (w kv.Watch) {
		update(t, db, func(tx kv.Tx) { w = tx.Watch(key) })
		watches = append(watches, w)
		return w
	}
	var last kv.Watch
	for i := range uint32(800) {
		last = watch(binary.BigEndian.AppendUint32(nil, i))
	}
	require.Equal(t, "", get(t, db, "a"))
	require.NoError(t, watches[600].Err())
	ended := func(w kv.Watch) bool {
		select {
		case <-w.Done():
			return true
		case <-time.After(patience):
			return false
		}
	}
	require.True(t, ended(last))
	require.ErrorIs(t, last.Err(), kv.ErrTooManyWatches)
	require.ErrorContains(t, last.Err(), "of this connection")
	var its kv.Watch
	update(t, other, func(tx kv.Tx) { its = tx.Watch([]byte("b")) })
	update(t, db, func(tx kv.Tx) { tx.Set([]byte("b"), []byte("news")) })
	require.True(t, ended(its))
	require.NoError(t, its.Err())
	for _, w := range watches {
		w.Cancel()
	}
	require.Eventually(t, func() bool {
		w := watch([]byte("a"))
		defer w.Cancel()
		return get(t, db, "a") == "" && w.Err() == nil
	}, patience, time.Millisecond)
}

// endingWatches is a store whose watches end at once.
type endingWatches struct {
	kv.Database
	watches *atomic.Int64
}

func (e endingWatches) Begin(o kv.Options) kv.Tx { return endingTx{e.Database.Begin(o), e} }

type endingTx struct {
	kv.Tx
	of endingWatches
}

func (t endingTx) Watch([]byte) kv.Watch {
	t.of.watches.Add(1)
	w := &watch{done: make(chan struct{})}
	w.settle(kv.ErrTooManyWatches)
	return w
}

// TestEndedWatchesHoldTheirMemory has a client set watches that end at once, and
// read none of what it is told.
func TestEndedWatchesHoldTheirMemory(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	ending := endingWatches{store, &atomic.Int64{}}
	o := ServerOptions{MaxMemory: 32 << 20, WriteTimeout: time.Second}.withDefaults()
	s := newServer(t.Context(), ending, o)
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serve(near)
	}()
	_, err := greet(far, bufio.NewReader(far), hello{version: protocolVersion, id: "x"}, time.Now().Add(patience))
	require.NoError(t, err)
	for number := uint64(1); err == nil; number++ {
		ask := append(binary.AppendUvarint(nil, number), flagBegin, 0)
		for id := range uint64(50) {
			ask = append(binary.AppendUvarint(append(ask, opWatch), 50*number+id), 1, 'w')
		}
		if _, err = far.Write(appendFrame(nil, frameBatch, ask, nil)); err == nil {
			_, err = far.Write(appendFrame(nil, frameCancelTx, binary.AppendUvarint(nil, number), nil))
		}
	}
	<-ended // it gave up writing
	require.NoError(t, far.Close())
	// Those that hold memory, those whose end fits maxUnread, and a few more.
	require.Less(t, ending.watches.Load(), o.MaxMemory/16/watchMemory+2000)
	s.leaveAll()
}

// TestMemoryIsGivenBack has clients come and go in the middle of everything:
// the server holds nothing for them in the end.
func TestMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	update(t, store, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set([]byte{'k', byte(i)}, make([]byte, kv.MaxValueSize))
		}
	})
	s := newServer(t.Context(), store, ServerOptions{}.withDefaults())
	for round := range 20 {
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.serve(near)
		}()
		r := bufio.NewReader(far)
		_, err := greet(far, r, hello{version: protocolVersion, id: "x"}, time.Now().Add(patience))
		require.NoError(t, err)
		for number := range byte(10) {
			ask := []byte{number, flagBegin, 0, opWatch, number, 1, 'w', opGetRange, 1, 0, 1, 'k', 1, 'l', 0, 0}
			ask = appendBytes(appendBytes(append(ask, opSet), []byte("a")), make([]byte, 10_000*round))
			_, err = far.Write(appendFrame(nil, frameBatch, ask, nil))
			require.NoError(t, err)
		}
		_, err = far.Write(appendFrame(nil, frameBatch, []byte{1, 0}, make([]byte, 100_000))[:1000*round])
		require.NoError(t, err)
		_, _, err = readFrame(r, maxAnswerFrame)
		require.NoError(t, err)
		require.NoError(t, far.Close())
		<-ended
	}
	for _, b := range []interface {
		Total() int64
		TryAcquire(int64) bool
	}{s.memory.transactions, s.memory.watches, s.memory.frames, s.memory.reads} {
		require.True(t, b.TryAcquire(b.Total()))
	}
	require.Zero(t, s.connections)
	require.Empty(t, s.unauthenticated.conns)
	s.leaveAll()
}

// TestFrameMustEnd sends the beginning of a frame, after a pause that is as long
// as it likes.
func TestFrameMustEnd(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	in := inbox{conn: near, r: bufio.NewReader(near), limit: 100, timeout: 10 * time.Millisecond}
	frame := appendFrame(nil, framePing, nil, make([]byte, 50))
	go func() {
		_, _ = far.Write(frame)
		time.AfterFunc(3*in.timeout, func() { _, _ = far.Write(frame[:20]) })
	}()
	kind, body, err := in.next(nil)
	require.NoError(t, err)
	require.Equal(t, framePing, kind)
	require.Len(t, body, 50)
	_, _, err = in.next(nil)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	refused := errors.New("refused")
	_, _, err = (&inbox{conn: near, r: bufio.NewReader(near), limit: 100}).next(func(int) error { return refused })
	require.Error(t, err)
}

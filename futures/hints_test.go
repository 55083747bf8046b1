package futures_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// serverStore is a store as one on a server is: several processes reach it. Its watches
// of mail can be held up, and the looks for mail are counted.
type serverStore struct {
	kv.Database
	deaf  atomic.Bool
	looks atomic.Int64
	wakes atomic.Int64
}

func (s *serverStore) Begin(o kv.Options) kv.Tx {
	switch tx := s.Database.Begin(o); o.Tag {
	case "futura-read":
		return &readingTx{tx, s}
	case "futura-wake":
		s.wakes.Add(1)
		return tx
	default:
		return tx
	}
}

type readingTx struct {
	kv.Tx
	store *serverStore
}

// Watch is called once for each look that finds no mail.
func (t *readingTx) Watch(key []byte) kv.Watch {
	t.store.looks.Add(1)
	w := t.Tx.Watch(key)
	if t.store.deaf.Load() {
		return deafWatch{w}
	}
	return w
}

// deafWatch never fires.
type deafWatch struct{ kv.Watch }

func (deafWatch) Done() <-chan struct{} { return nil }

// processes are a client and the worker of another process.
type processes struct {
	*testing.T
	ctx    context.Context
	db     *serverStore
	client *futures.Client
	worker *workers.Worker
	stop   func()
}

func newProcesses(t *testing.T, o futures.Options, w workers.Options) *processes {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a client's recheck
	t.Cleanup(cancel)
	p := &processes{T: t, ctx: ctx, db: &serverStore{Database: storetest.New(t)}}
	// What is lost shows, because nothing else has a worker look.
	o.Config = layout.Config{Heartbeat: time.Second, DeadAfter: time.Minute, Shards: 2}
	var err error
	p.client, err = futures.New(ctx, p.db, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.client.Close(context.Background())) })
	w.Objects.Memory = 1 << 20
	p.worker, p.stop = p.work(w)
	return p
}

// work starts a worker with a client of its own.
func (p *processes) work(o workers.Options) (*workers.Worker, func()) {
	o.Poll = time.Hour
	theirs, err := futures.New(p.ctx, p.db, futures.Options{NoHints: true})
	require.NoError(p, err)
	p.Cleanup(func() { require.NoError(p, theirs.Close(context.Background())) })
	w, err := workers.New(theirs, o)
	require.NoError(p, err)
	require.NoError(p, w.Register("f", func(context.Context, []byte) ([]byte, error) { return nil, nil }))
	stop := storetest.Background(p, w.Run)
	<-w.Ready()
	return w, stop
}

func (p *processes) one() {
	p.Helper()
	f, err := p.client.Submit(p.ctx, futures.Task{Function: "go:f"})
	require.NoError(p, err)
	_, err = f.Await(p.ctx)
	require.NoError(p, err)
}

// TestHintsBetweenProcesses has futures begin without a transaction that wakes a worker,
// and end without a watch that fires.
func TestHintsBetweenProcesses(t *testing.T) {
	t.Parallel()
	p := newProcesses(t, futures.Options{}, workers.Options{})
	for p.worker.Stats().Hinted == 0 {
		p.one()
	}
	p.db.deaf.Store(true)
	p.one() // its watch is from before
	const number = 20
	for few := false; !few; { // a hint that takes too long on a busy machine counts as none
		wakes, hinted := p.db.wakes.Load(), p.worker.Stats().Hinted
		for range number {
			p.one()
		}
		few = p.db.wakes.Load()-wakes < number && p.worker.Stats().Hinted > hinted
	}
}

// TestHintsToAWorkerThatIsGone are not heeded: another worker, which takes none, is
// woken through the store.
func TestHintsToAWorkerThatIsGone(t *testing.T) {
	t.Parallel()
	p := newProcesses(t, futures.Options{}, workers.Options{})
	for p.worker.Stats().Hinted == 0 {
		p.one()
	}
	p.stop()
	p.work(workers.Options{NoHints: true})
	for range 5 {
		p.one()
	}
}

// TestNoHints has none in either direction if one of the sides wants none.
func TestNoHints(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{false, true} {
		p := newProcesses(t, futures.Options{NoHints: mine}, workers.Options{NoHints: !mine})
		for range 5 {
			p.one()
		}
		require.Zero(t, p.worker.Stats().Hinted)
		require.Equal(t, !mine, p.client.SendsHints())
	}
}

// TestAFloodOfHintsOfMail costs a bounded number of looks.
func TestAFloodOfHintsOfMail(t *testing.T) {
	t.Parallel()
	p := newProcesses(t, futures.Options{}, workers.Options{})
	p.one()
	const vain = 5 + 1 // one that no hint led to may be on its way
	looks, start := p.db.looks.Load(), time.Now()
	for p.db.looks.Load() < looks+vain {
		p.client.HintMail()
	}
	require.Greater(t, time.Since(start), 25*time.Millisecond, "2 + 4 + 8 + 16 ms lie between them")
	p.one() // the watch brings the result
}

// TestAwaitWithoutAWatchPolls: a client that gets no watch looks less and less often while nothing comes, says so
// once, and still gets the ends of its futures.
func TestAwaitWithoutAWatchPolls(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := storetest.NewUnwatched(newBubble())
		c, err := futures.New(t.Context(), store, futures.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		one, err := c.Submit(t.Context(), futures.Task{Function: "go:f"})
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = one.Await(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, store.Asked(), 60)
		_, err = c.Cancel(t.Context(), one.ID(), "enough")
		require.NoError(t, err)
		_, err = one.Await(t.Context())
		require.ErrorIs(t, err, futures.ErrFailed)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, store.Close())
		require.Equal(t, 1, strings.Count(log.String(), "watches are open"), log.String())
	})
}

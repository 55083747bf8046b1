package peerhead_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// inLarge is inWorld with the result b of 3 MiB, which the peers answer with, and which
// comes at a rate.
func inLarge(t *testing.T, o peerhead.Options, rate int, test func(w *world, value []byte)) {
	t.Helper()
	inWorld(t, o, func(w *world) {
		value := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
		w.blobs["b"] = value
		w.fetches = func(ctx context.Context, blob []byte, to io.Writer, o p2p.FetchOptions) error {
			return trickle(ctx, blob, rate, to, o)
		}
		test(w, value)
	})
}

// trickle writes what is missing of a blob, a rate of bytes per second.
func trickle(ctx context.Context, blob []byte, rate int, to io.Writer, o p2p.FetchOptions) error {
	done := 0
	if o.Have != nil {
		have, err := io.ReadAll(o.Have)
		if err != nil || !bytes.HasPrefix(blob, have) {
			return errors.Join(p2p.ErrBlobContent, err)
		}
		done = len(have)
	}
	for done < len(blob) {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		n, err := to.Write(blob[done:min(done+rate, len(blob))])
		if err != nil {
			return err
		}
		done += n
		o.Progress(int64(done), int64(len(blob)))
	}
	return nil
}

// large answers with the blob b.
func large(size int) func(*fakePeer) {
	return func(p *fakePeer) {
		p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
			return protocol.Outcome{Index: i, Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "b", Size: int64(size)}}
		}
	}
}

// requireValue requires that a future has a value.
func (w *world) requireValue(id layout.ID, value []byte) {
	w.Helper()
	row := w.rows([]layout.ID{id})[0]
	require.Equal(w, layout.Realized, row.State())
	got, err := results.Of(w.cluster).Value(context.Background(), id, row.Result)
	require.NoError(w, err)
	require.True(w, bytes.Equal(value, got))
}

// deliverAgain has a peer send what is not acknowledged, as peers do, until all is.
func (p *fakePeer) deliverAgain() {
	for len(p.unacknowledged()) > 0 {
		for _, chunk := range p.unacknowledged() {
			if p.deliver(chunk) == "" {
				return
			}
		}
		elapse(30 * time.Second)
	}
}

// TestASlowValueComes has a result take many times longer than an answer, the timeout of
// its attempt and the grace of a peer. Its progress is told, and it is run once.
func TestASlowValueComes(t *testing.T) {
	inLarge(t, peerhead.Options{}, 4<<10, func(w *world, value []byte) {
		p := w.join("p", 1, large(len(value)))
		id := w.submit(1, func(s *layout.Spec) { s.Timeout = 10 * time.Second })[0]
		go func() {
			elapse(time.Second)
			p.deliverAgain()
		}()
		w.settle(5 * time.Minute)
		moving := w.head.Peers()[0].Transfers
		require.Len(w, moving, 1)
		require.Equal(w, "result", moving[0].What)
		require.Equal(w, id.String(), moving[0].Name)
		require.InDelta(w, 5*60*4<<10, moving[0].Done, 10*4<<10)
		require.EqualValues(w, len(value), moving[0].Total)
		row := w.rows([]layout.ID{id})[0]
		require.NotNil(w, row.Progress)
		require.EqualValues(w, len(value), row.Progress.Total)
		require.InDelta(w, moving[0].Done, row.Progress.Done, 10*4<<10)
		w.settle(10 * time.Minute)
		w.requireValue(id, value)
		require.Empty(w, w.head.Peers()[0].Transfers)
		require.Equal(w, 1, w.runs())
		require.Empty(w, p.unacknowledged())
	})
}

// TestAValueThatIsCutOffGoesOn has the fetch of a result fail in the middle, after which the
// future is run anew. No byte comes twice.
func TestAValueThatIsCutOffGoesOn(t *testing.T) {
	inLarge(t, peerhead.Options{}, 1<<20, func(w *world, value []byte) {
		came, cuts := 0, 2
		slow := w.fetches
		w.fetches = func(ctx context.Context, blob []byte, to io.Writer, o p2p.FetchOptions) error {
			counted := writerFunc(func(b []byte) (int, error) {
				came += len(b)
				return to.Write(b)
			})
			if cuts--; cuts >= 0 {
				if err := slow(ctx, blob[:len(blob)*(2-cuts)/3], counted, o); err != nil {
					return err
				}
				return errors.New("cut")
			}
			return slow(ctx, blob, counted, o)
		}
		p := w.join("p", 1, large(len(value)))
		id := w.submit(1)[0]
		for range 4 {
			w.settle(time.Minute)
			p.deliverAgain()
		}
		w.requireValue(id, value)
		require.Equal(w, len(value), came)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestALateValueIsFetchedOnceItIsWanted has a head restart before it has a result. The peer
// keeps that until the attempt is claimed again.
func TestALateValueIsFetchedOnceItIsWanted(t *testing.T) {
	inLarge(t, peerhead.Options{}, 1<<20, func(w *world, value []byte) {
		p := w.join("p", 1, large(len(value)), func(p *fakePeer) { p.silent = true })
		id := w.submit(1)[0]
		w.settle(time.Second)
		w.stop()
		w.start(peerhead.Options{})
		p.silent = false
		p.sayHello()
		p.deliverAgain()
		w.settle(time.Minute)
		w.requireValue(id, value)
		require.LessOrEqual(w, w.runs(), 2, "the head may order it before it hears that it is done")
	})
}

// TestLargeValuesAreCompared has one of three peers answer with another value.
func TestLargeValuesAreCompared(t *testing.T) {
	inLarge(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, 1<<20, func(w *world, value []byte) {
		w.blobs["c"] = []byte("a lie")
		lie := w.join("a", 1, func(p *fakePeer) {
			p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "c", Size: int64(len(value))}}
			}
		})
		all := []*fakePeer{lie, w.join("b", 1, large(len(value))), w.join("c", 1, large(len(value)))}
		id := w.submit(1)[0]
		w.settle(time.Minute)
		w.requireValue(id, value)
		for _, p := range all {
			p.deliverAgain()
		}
	})
}

// TestANewHeadGoesOnWithAValue has a head end while it fetches a value. The next one, which
// finds what that stored, has the rest come.
func TestANewHeadGoesOnWithAValue(t *testing.T) {
	inLarge(t, peerhead.Options{}, 256<<10, func(w *world, value []byte) {
		came, stop := w.counting()
		p := w.join("p", 1, large(len(value)))
		id := w.submit(1)[0]
		elapse(10 * time.Second)
		stop()
		before := came.Load()
		require.Greater(w, before, int64(len(value)/2))
		require.Less(w, before, int64(len(value)))
		w.start(peerhead.Options{})
		p.sayHello()
		p.deliverAgain()
		w.settle(time.Minute)
		w.requireValue(id, value)
		require.Less(w, came.Load(), int64(len(value)+1<<20), "what was not stored yet comes twice")
		require.Zero(w, w.head.Peers()[0].Refused)
	})
}

// TestANewHeadFindsAnotherValue has a head end while it fetches a value, and the function
// return another one of the same size to the next.
func TestANewHeadFindsAnotherValue(t *testing.T) {
	inLarge(t, peerhead.Options{}, 256<<10, func(w *world, value []byte) {
		came, stop := w.counting()
		w.join("p", 1, large(len(value)))
		id := w.submit(1)[0]
		elapse(10 * time.Second)
		stop()
		before := came.Load()
		require.Greater(w, before, int64(len(value)/2))
		other := bytes.Repeat([]byte("fedcba9876543210"), len(value)/16)
		w.blobs["b"] = other
		w.start(peerhead.Options{})
		w.peer("p").sayHello()
		w.peer("p").deliverAgain()
		w.settle(time.Minute)
		w.requireValue(id, other)
		require.Zero(w, w.head.Peers()[0].Refused, "the peer is not to blame")
		require.Equal(w, before+int64(len(other)), came.Load())
	})
}

// counting counts the bytes that come. stop stops the head, without which none come.
func (w *world) counting() (came *atomic.Int64, stop func()) {
	var dead atomic.Bool
	came, slow := new(atomic.Int64), w.fetches
	w.fetches = func(ctx context.Context, blob []byte, to io.Writer, o p2p.FetchOptions) error {
		return slow(ctx, blob, writerFunc(func(b []byte) (int, error) {
			if dead.Load() {
				return 0, errors.New("the head is dead")
			}
			came.Add(int64(len(b)))
			return to.Write(b)
		}), o)
	}
	return came, func() {
		dead.Store(true)
		w.stop()
		dead.Store(false)
	}
}

// TestAnotherPeerHasTheValue has the first of two peers that agree on a value send another one.
func TestAnotherPeerHasTheValue(t *testing.T) {
	inLarge(t, peerhead.Options{Verify: peerhead.Verify{Peers: 2, Agree: 2}}, 1<<20, func(w *world, value []byte) {
		honest, fetches := w.fetches, 0
		w.fetches = func(ctx context.Context, blob []byte, to io.Writer, o p2p.FetchOptions) error {
			if fetches++; fetches == 1 {
				_, err := to.Write(bytes.Repeat([]byte("x"), len(blob)))
				return errors.Join(p2p.ErrBlobContent, err)
			}
			return honest(ctx, blob, to, o)
		}
		for _, name := range []string{"p", "q"} {
			w.join(name, 1, large(len(value)))
		}
		id := w.submit(1)[0]
		w.settle(10 * time.Second)
		w.requireValue(id, value)
		require.Equal(w, 2, fetches)
		require.Equal(w, 2, w.runs(), "once by each")
		require.EqualValues(w, 1, w.about("p").Refused+w.about("q").Refused)
	})
}

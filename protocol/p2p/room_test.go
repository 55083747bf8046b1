package p2p

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/budget"
)

// requireNoRoom has a message get no more memory.
func requireNoRoom(t *testing.T, m *holding, n int64) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	waited, err := m.grow(over, n)
	require.True(t, waited)
	require.ErrorIs(t, err, context.Canceled)
}

func requireRoom(t *testing.T, m *holding, n int64, waited bool) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	has, err := m.grow(over, n)
	require.NoError(t, err)
	require.Equal(t, waited, has)
}

// TestRoomOfAPeer has a peer take all that it may: others have the rest.
func TestRoomOfAPeer(t *testing.T) {
	t.Parallel()
	all := newRoom(100, 2, 10)
	evil, friend := newRoom(30, 1, 10), newRoom(30, 1, 10)
	var held []*holding
	for range 3 {
		m := &holding{own: evil, all: all}
		held = append(held, m)
		requireRoom(t, m, 10, len(held) == 3)
	}
	requireNoRoom(t, &holding{own: evil, all: all}, 1)
	m := &holding{own: friend, all: all}
	requireRoom(t, m, 10, false)
	held[0].shrink(3)
	require.Equal(t, int64(3), held[0].bytes)
	held[2].shrink(8)
	require.True(t, held[2].inTurn, "seven are free")
	held[2].shrink(7)
	require.False(t, held[2].inTurn)
	requireRoom(t, &holding{own: evil, all: all}, 1, true)
}

// TestRoomOfAll has peers take all that there is, each a part of what it wants. One after the
// other has its turn, one message of each peer at a time.
func TestRoomOfAll(t *testing.T) {
	t.Parallel()
	all := newRoom(50, 2, 10)
	var held []*holding
	for range 3 {
		own := newRoom(50, 1, 10)
		for range 2 {
			m := &holding{own: own, all: all}
			held = append(held, m)
			requireRoom(t, m, 5, false)
		}
	}
	requireRoom(t, held[0], 10, true)
	requireNoRoom(t, held[1], 10)
	requireRoom(t, held[2], 10, true)
	requireNoRoom(t, held[4], 10)
	requireRoom(t, held[0], 10, false)
	held[0].giveBack()
	requireRoom(t, held[1], 10, false)
	requireRoom(t, held[4], 10, true)
	for _, m := range held {
		m.giveBack()
		m.giveBack()
	}
	require.True(t, all.free.TryAcquire(30))
	require.True(t, all.turns.TryAcquire(2))
}

// crowded has a host be short of memory: two peers may have all.
func crowded(o *Options) {
	l := &o.Limits
	l.MaxMessage, l.PeerMemory, l.Memory = 256<<10, 512<<10, 1<<20
}

// stop sends part of a large message, and no more.
func stop(t *testing.T, from *node, to *Host, n int) network.Stream {
	t.Helper()
	s := from.stream(t, to, ProtocolFutura)
	_, err := s.Write(bytes.Repeat([]byte("x"), n))
	require.NoError(t, err)
	return s
}

// requireFull waits until a host has no more memory for large messages, and no turn.
func requireFull(t *testing.T, h *Host) {
	t.Helper()
	all := h.table.all.room
	require.Eventually(t, func() bool {
		for _, b := range []*budget.Bytes{all.free, all.turns} {
			n := min(small, b.Total())
			if b.TryAcquire(n) {
				b.Release(n)
				return false
			}
		}
		return true
	}, testTime, time.Millisecond)
}

// TestSmallMessagesPassLargeOnes has hostile peers take all memory of large messages, and
// stop. The small ones of others are answered meanwhile.
func TestSmallMessagesPassLargeOnes(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) {
		crowded(o)
		o.Limits.MessageTimeout = 4 * testTime
	})
	for range 4 {
		evil := hostile(t, h)
		for range 8 {
			stop(t, evil, h, 2*small)
		}
	}
	requireFull(t, h)
	requireWell(t, h)
	requireFull(t, h)
	require.Zero(t, h.Stats().RefusedBusy+h.Stats().RefusedSlow)
}

// TestLargeMessagesThatStop has messages stop that would have time for more by what has come.
func TestLargeMessagesThatStop(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) { o.Limits.MessageTimeout, o.Limits.MinRate = time.Second, 1 })
	s := stop(t, hostile(t, h), h, 2*small)
	require.NoError(t, s.SetReadDeadline(time.Now().Add(testTime)))
	_, err := io.ReadAll(s)
	require.ErrorIs(t, err, network.ErrReset)
	require.Equal(t, int64(1), h.Stats().RefusedSlow)
	requireNothingHeld(t, h)
}

// TestATurnEnds has a message that had to wait come so slowly that it holds up others.
func TestATurnEnds(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) {
		crowded(o)
		o.Limits.MessageTimeout, o.Limits.MinRate = time.Second, 1
	})
	all := h.table.all.room
	require.True(t, all.free.TryAcquire(all.free.Total()))
	s := stop(t, hostile(t, h), h, small+1)
	trickle(t, s)
	require.Equal(t, int64(1), h.Stats().RefusedSlow)
	all.free.Release(all.free.Total())
	requireNothingHeld(t, h)
}

// TestLargeMessagesThatAreSlow has the first parts of many messages take all memory before the
// next parts come. All of them arrive, and small ones meanwhile.
func TestLargeMessagesThatAreSlow(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) {
		crowded(o)
		o.Limits.MessageTimeout = 4 * testTime
	})
	var streams []network.Stream
	for range 5 {
		slow := hostile(t, h)
		for range 4 {
			streams = append(streams, stop(t, slow, h, 100<<10))
		}
	}
	requireFull(t, h)
	requireWell(t, h)
	before := h.Stats().Answered
	for _, s := range streams {
		_, err := s.Write(bytes.Repeat([]byte("y"), 100<<10))
		require.NoError(t, err)
		require.NoError(t, s.CloseWrite())
	}
	for _, s := range streams {
		require.NoError(t, s.SetReadDeadline(time.Now().Add(testTime)))
		answer, err := io.ReadAll(s)
		require.NoError(t, err)
		require.Len(t, answer, 200<<10+len("echo "))
	}
	require.Equal(t, before+int64(len(streams)), h.Stats().Answered)
	requireNothingHeld(t, h)
}

package peerworker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// counted is a worker whose function counts its runs by their arguments.
func counted(t *testing.T, n *memory, o Options, during func()) (w *running, runs func(string) int) {
	made, err := New(o)
	require.NoError(t, err)
	var mu sync.Mutex
	ran := map[string]int{}
	require.NoError(t, made.Register("count", func(_ context.Context, args []byte) ([]byte, error) {
		mu.Lock()
		ran[string(args)]++
		mu.Unlock()
		during()
		return args, nil
	}))
	return start(t, made, n), func(item string) int {
		mu.Lock()
		defer mu.Unlock()
		return ran[item]
	}
}

func (h *fakeHead) takeBack(m *protocol.WorkOrderBatch, indexes ...int) protocol.Code {
	return h.order(&protocol.TakeBack{ChunkID: m.ChunkID, Indexes: indexes}).Code
}

// TestItemsThatHaveNotBegunAreGivenBack has a head want back all items of a chunk while one
// runs, and order the same attempts again: each then runs once.
func TestItemsThatHaveNotBegunAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"memory", "on disk"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			n, h, o := withHead(t)
			o.Slots = 1
			if state == "on disk" {
				o.State = t.TempDir()
			}
			began, end := make(chan struct{}, 10), make(chan struct{})
			w, runs := counted(t, n, o, func() {
				began <- struct{}{}
				<-end
			})
			m := goOrder("count", "0", "1", "2", "3")
			require.Equal(t, protocol.CodeNotFound, h.takeBack(m))
			require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
			<-began
			require.Equal(t, protocol.CodeOK, h.takeBack(m))
			h.await("three items", func() bool { return len(h.outcomes[m.ChunkID]) == 3 })
			require.EqualValues(t, 3, w.Stats().GivenUp)
			require.Equal(t, protocol.CodeOK, h.takeBack(m, 0, 0, 3), "nothing is left to give back")
			again := *m
			again.ChunkID, again.Arguments, again.Items = m.ChunkID+"a", nil, nil
			for i := range h.outcomes[m.ChunkID] {
				again.Arguments, again.Items = append(again.Arguments, m.Arguments[i]), append(again.Items, m.Items[i])
			}
			require.Equal(t, protocol.CodeAccepted, h.order(&again).Code)
			close(end)
			kept := 0
			for _, x := range h.all(m.ChunkID, 4) {
				if x.Code == protocol.CodeOK {
					kept++
					require.Equal(t, 1, runs(string(x.Value)))
				} else {
					require.Equal(t, protocol.CodeUnavailable, x.Code)
				}
			}
			require.Equal(t, 1, kept)
			for _, x := range h.all(again.ChunkID, 3) {
				if x.Code == protocol.CodeOK {
					require.Equal(t, 1, runs(string(x.Value)))
				}
			}
			w.idle()
		})
	}
}

// TestWhatIsGivenBackWasNotRun wants items back at any time while others run: each is given
// back or run, and never both.
func TestWhatIsGivenBackWasNotRun(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w, runs := counted(t, n, options(n), func() {})
	const items, orders = 60, 5
	var all []*protocol.WorkOrderBatch
	for o := range orders {
		args := make([]string, items)
		for i := range args {
			args[i] = fmt.Sprint(o, ":", i)
		}
		m := goOrder("count", args...)
		all = append(all, m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		for range 6 {
			indexes := make([]int, 1+rand.IntN(items))
			for i := range indexes {
				indexes[i] = rand.IntN(items)
			}
			h.takeBack(m, indexes...)
		}
	}
	back := 0
	for o, m := range all {
		for i, x := range h.all(m.ChunkID, items) {
			switch ran := runs(fmt.Sprint(o, ":", i)); x.Code {
			case protocol.CodeOK:
				require.Equal(t, 1, ran, "item %d of %d", i, o)
			default:
				require.Equal(t, protocol.CodeUnavailable, x.Code)
				require.Zero(t, ran, "item %d of %d", i, o)
				back++
			}
		}
	}
	require.EqualValues(t, back, w.Stats().GivenUp)
	w.idle()
}

// TestOnlyTheHeadOfAChunkTakesItBack has a second head name the chunk of the first.
func TestOnlyTheHeadOfAChunkTakesItBack(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h, other := newHead(t, n, headID), newHead(t, n, "12D3KooWOther")
	o := options(n)
	o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWOther")
	o.Slots = 1
	end := make(chan struct{})
	w, _ := counted(t, n, o, func() { <-end })
	m := goOrder("count", "0", "1")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	require.Equal(t, protocol.CodeNotFound, other.takeBack(m))
	close(end)
	for _, x := range h.all(m.ChunkID, 2) {
		require.Equal(t, protocol.CodeOK, x.Code)
	}
	w.idle()
}

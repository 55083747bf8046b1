package peerworker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// TestOrdersOfAllKinds has a head that loses answers order items with limits, some of them
// twice in other chunks, and cancel some. Each chunk ends, and nothing is left. What a chunk was
// the last to order, and its head has not cancelled there, has a result.
func TestOrdersOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", t.TempDir()} {
		t.Run(fmt.Sprintf("state %t", state != ""), func(t *testing.T) {
			t.Parallel()
			requireOrders(t, state)
		})
	}
}

func requireOrders(t *testing.T, state string) {
	const orders, items = 40, 30
	random := rand.New(rand.NewPCG(1, 2))
	n := newMemory()
	h := newHead(t, n, headID)
	var mu sync.Mutex
	answered := 0
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
		mu.Lock()
		defer mu.Unlock()
		if answered++; answered%7 == 3 {
			return nil // the answer is lost
		}
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	o := options(n)
	o.State, o.Slots = state, 5
	w, err := New(o)
	require.NoError(t, err)
	ran := map[string]int{}
	require.NoError(t, w.Register("mark", func(ctx context.Context, args []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[string(args)]++
		return args, context.Cause(ctx)
	}))
	r := start(t, w, n)
	requests := []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
	var all []*protocol.WorkOrderBatch
	last, cancelled := map[string]int{}, map[string]bool{}
	for i := range orders {
		args := make([]string, items)
		for k := range args {
			args[k] = fmt.Sprint(i, k)
		}
		m := goOrder("mark", args...)
		at := random.IntN(len(requests))
		m.RequestID, m.Concurrency, m.Priority = requests[at], uint64(at), random.IntN(3)
		if len(all) > 0 && random.IntN(3) == 0 { // attempts that are in another chunk too
			other := all[random.IntN(len(all))]
			copy(m.Items, other.Items[:random.IntN(items)])
		}
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		all = append(all, m)
		for k := range m.Items {
			last[m.Items[k].ID] = i
		}
		if random.IntN(3) == 0 {
			target := all[random.IntN(len(all))]
			indexes := []int{random.IntN(items), random.IntN(items)}
			h.order(&protocol.CancelOrder{ChunkID: target.ChunkID, Indexes: indexes})
			for _, k := range indexes {
				cancelled[target.ChunkID+target.Items[k].ID] = true
			}
		}
	}
	r.idle()
	for i, m := range all {
		for k, item := range m.Items {
			if last[item.ID] != i || cancelled[m.ChunkID+item.ID] {
				continue
			}
			got := h.outcomes[m.ChunkID][k]
			require.NotEmpty(t, got, "order %d, item %d", i, k)
			require.Equal(t, protocol.CodeOK, got[0].Code, "order %d, item %d: %+v", i, k, got[0])
		}
	}
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, len(ran), orders*items/2)
}

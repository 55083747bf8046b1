package peerworker

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/protocol"
)

// together counts what runs at a time, by name.
type together struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (c *together) begin(name string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[name]++
	c.most[name] = max(c.most[name], c.now[name])
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now[name]--
	}
}

// TestLimitsOfRequests has a head order items of requests with a limit, each in several
// chunks, and of one without. As many run at a time as their limits say, beside each other.
func TestLimitsOfRequests(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", t.TempDir()} {
		t.Run(fmt.Sprintf("state %t", state != ""), func(t *testing.T) {
			t.Parallel()
			requireLimits(t, state)
		})
	}
}

func requireLimits(t *testing.T, state string) {
	const slots, chunks, items = 8, 3, 100
	n, h, o := withHead(t)
	o.Slots, o.State = slots, state
	w, err := New(o)
	require.NoError(t, err)
	count := &together{now: map[string]int{}, most: map[string]int{}}
	var met sync.WaitGroup // the first of each request, and one more of the second
	met.Add(4)
	seen := map[string]int{}
	require.NoError(t, w.Register("count", func(_ context.Context, args []byte) ([]byte, error) {
		name := string(args)
		defer count.begin(name)()
		count.mu.Lock()
		seen[name]++
		wait := name != "two" && seen[name] == 1 || name == "two" && seen[name] <= 2
		count.mu.Unlock()
		if wait {
			met.Done()
			met.Wait()
		}
		return nil, nil
	}))
	r := start(t, w, n)
	limits := map[string]uint64{"one": 1, "two": 2, "any": 0}
	requests := map[string]string{}
	var orders []*protocol.WorkOrderBatch
	for name, limit := range limits {
		request := uuid.NewString()
		requests[name] = request
		for range chunks {
			args := make([]string, items)
			for i := range args {
				args[i] = name
			}
			m := goOrder("count", args...)
			m.RequestID, m.Concurrency = request, limit
			orders = append(orders, m)
		}
	}
	for _, m := range orders {
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	}
	for _, m := range orders {
		for i, x := range h.all(m.ChunkID, items) {
			require.True(t, x.OK(), "%d: %+v", i, x)
		}
	}
	require.Equal(t, 1, count.most["one"])
	require.Equal(t, 2, count.most["two"])
	require.LessOrEqual(t, count.most["any"], slots, fmt.Sprint(count.most))
	r.idle()
	empty := true
	for name := range limits {
		if name != "any" {
			empty = empty && r.ownerIsGone(requests[name])
		}
	}
	require.True(t, empty, "nothing is left of owners")
}

// ownerIsGone reports whether the store has nothing of the owner of a request's items.
func (r *running) ownerIsGone(request string) bool {
	owner := chunkName{headID, request}.owner()
	found := false
	all := kv.Range{Begin: []byte{}, End: []byte{0xff}}
	require.NoError(r.t, r.node.cluster.EachKey(r.t.Context(), all, func(k kv.KeyValue) error {
		found = found || bytes.Contains(k.Key, []byte(owner))
		return nil
	}))
	return !found
}

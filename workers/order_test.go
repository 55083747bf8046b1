package workers

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestOrderByShards measures how far the order in which one slot runs futures of many
// submits is from that of their priorities: not at all with one shard, and without a
// bound but the shards' own order with many.
func TestOrderByShards(t *testing.T) {
	t.Parallel()
	const number, priorities = 400, 8
	for _, shards := range []int{1, 16} {
		b := newBed(t, layout.Config{Shards: shards}, clock.NewVirtual(epoch))
		var mu sync.Mutex
		var order []layout.ID
		at := map[layout.ID]int{}
		for n := range number {
			id := b.one("go:note", func(s *fdbmodel.Submission) { s.Spec.Priority = uint8(n % priorities) })
			at[id] = n % priorities
		}
		ends := make(chan struct{}, number)
		b.start(Options{Slots: 1}, map[string]Function{"note": func(ctx context.Context, _ []byte) ([]byte, error) {
			info, _ := InfoFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, info.ID)
			ends <- struct{}{}
			return nil, nil
		}})
		for range number {
			<-ends
		}
		mu.Lock()
		most := 0
		waiting := [priorities]int{}
		for _, p := range at {
			waiting[p]++
		}
		for _, id := range order {
			above := 0
			for p := at[id] + 1; p < priorities; p++ {
				above += waiting[p]
			}
			most = max(most, above)
			waiting[at[id]]--
		}
		mu.Unlock()
		t.Logf("%d shards: a future was run before up to %d of %d with a higher priority", shards, most, number)
		if shards == 1 {
			require.Zero(t, most)
		} else {
			require.Less(t, most, number, "the higher ones wait in their own shards")
		}
	}
}

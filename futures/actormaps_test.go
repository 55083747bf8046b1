package futures_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestAStateWithAMapChangesOnlyIfItDoes reads an actor whose state has a map, and deletes it: neither changes the
// state, whatever the order of the map's keys.
func TestAStateWithAMapChangesOnlyIfItDoes(t *testing.T) {
	t.Parallel()
	type stock struct {
		Items map[string]int
		Any   map[string]any
		Deep  []map[int]string
	}
	cluster := futurestest.New(t)
	shop := futures.DefineActor[stock]("shop")
	fill := futures.DefineMethod(shop, "fill", func(_ context.Context, s *stock, n int) (int, error) {
		*s = stock{Items: map[string]int{}, Any: map[string]any{}, Deep: []map[int]string{{}}}
		for i := range n {
			name := string(rune('a' + i))
			s.Items[name], s.Any[name], s.Deep[0][i] = i, map[string]any{name: i, "z": true}, name
		}
		return n, nil
	})
	count := futures.DefineMethod(shop, "count", func(_ context.Context, s *stock, _ int) (int, error) {
		return len(s.Items) + len(s.Any) + len(s.Deep[0]), nil
	})
	remove := futures.DefineMethod(shop, "remove", func(ctx context.Context, _ *stock, _ int) (int, error) {
		return 0, shop.Delete(ctx, futures.ActorKey(ctx))
	})
	cluster.Register(fill.Bind())
	cluster.Register(count.Bind())
	cluster.Register(remove.Bind())
	for range 5 {
		_, err := fill.Call(t.Context(), cluster.Client, "basel", 20)
		require.NoError(t, err)
		before, err := cluster.Client.ActorState(t.Context(), "shop", "basel")
		require.NoError(t, err)
		n, err := count.Call(t.Context(), cluster.Client, "basel", 0)
		require.NoError(t, err)
		require.Equal(t, 60, n)
		after, err := cluster.Client.ActorState(t.Context(), "shop", "basel")
		require.NoError(t, err)
		require.Equal(t, before.Version, after.Version, "a call that only reads makes no version")
		_, err = remove.Call(t.Context(), cluster.Client, "basel", 0)
		require.NoError(t, err)
	}
}

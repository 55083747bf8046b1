package futures_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

// TestKeysAndUniqueFuturesCompareValues submits arguments with maps again, which are encoded anew each time.
func TestKeysAndUniqueFuturesCompareValues(t *testing.T) {
	t.Parallel()
	type order struct {
		Items map[string]int
		At    map[int]string
	}
	newOrder := func() order {
		o := order{map[string]int{}, map[int]string{}}
		for i := range 20 {
			o.Items[string(rune('a'+i))], o.At[i] = i, "shelf"
		}
		return o
	}
	c := newClient(t, storetest.New(t))
	once := futures.WithUnique(futures.Unique{OnConflict: futures.ConflictReturn})
	pack := futures.Define[order, int]("pack")
	first, err := pack.Submit(t.Context(), c, newOrder(), futures.Key("order/1"))
	require.NoError(t, err)
	one, err := pack.Submit(t.Context(), c, newOrder(), once)
	require.NoError(t, err)
	value, err := futures.PutValue(t.Context(), c, newOrder(), futures.PutOptions{Key: "value/1"})
	require.NoError(t, err)
	for range 20 {
		again, err := pack.Submit(t.Context(), c, newOrder(), futures.Key("order/1"))
		require.NoError(t, err)
		require.Equal(t, first.ID(), again.ID())
		again, err = pack.Submit(t.Context(), c, newOrder(), once)
		require.NoError(t, err)
		require.Equal(t, one.ID(), again.ID())
		same, err := futures.PutValue(t.Context(), c, newOrder(), futures.PutOptions{Key: "value/1"})
		require.NoError(t, err)
		require.Equal(t, value.ID(), same.ID())
	}
}

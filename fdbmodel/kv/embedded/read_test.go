package embedded

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// readEverything returns what a transaction that writes as well can get hold of.
func readEverything(t *testing.T, s *Store) []kv.KeyValue {
	ctx := context.Background()
	tx := s.Begin(kv.Options{})
	defer tx.Cancel()
	var items []kv.KeyValue
	get := func(key string) {
		value, err := tx.Get([]byte(key)).Wait(ctx)
		require.NoError(t, err)
		items = append(items, kv.KeyValue{Key: []byte(key), Value: value})
	}
	pages := func() {
		for _, reverse := range []bool{false, true} {
			for _, limit := range []int{0, 2, 300} {
				o := kv.RangeOptions{Limit: limit, Reverse: reverse}
				page, err := tx.Snapshot().GetRange(kv.Prefix([]byte("k")), o).Wait(ctx)
				require.NoError(t, err)
				items = append(items, page.Items...)
			}
		}
	}
	get("k1")
	pages()
	tx.Set([]byte("k001"), []byte("mine"))
	tx.Atomic(kv.Add, []byte("k100"), []byte("12345678"))
	tx.Clear([]byte("k200"))
	get("k001")
	get("k100")
	pages()
	return items
}

// TestWhatWasReadStays: memory is reused when a transaction ends, and none of it
// is what the transaction gave away.
func TestWhatWasReadStays(t *testing.T) {
	t.Parallel()
	s := OpenMemory(Options{})
	defer s.Close()
	tx := s.Begin(kv.Options{})
	for i := range 400 {
		tx.Set(fmt.Appendf(nil, "k%03d", i), fmt.Appendf(nil, "value of %d", i))
	}
	commit(t, tx)
	items := readEverything(t, s)
	var copies []kv.KeyValue
	for _, item := range items {
		copies = append(copies, kv.KeyValue{Key: bytes.Clone(item.Key), Value: bytes.Clone(item.Value)})
	}
	for range 20 {
		other := s.Begin(kv.Options{})
		for i := range 300 {
			other.Set(fmt.Appendf(nil, "other%d", i), bytes.Repeat([]byte("x"), 30))
		}
		_, err := other.GetRange(kv.Prefix([]byte("o")), kv.RangeOptions{}).Wait(context.Background())
		require.NoError(t, err)
		commit(t, other)
	}
	require.Equal(t, copies, items)

	// Whoever owns what was read may also write on it.
	for _, item := range items {
		_ = append(item.Key, "behind"...)
		_ = append(item.Value, "behind"...)
	}
	require.Equal(t, copies, items)
	for _, item := range items {
		clear(item.Key)
		clear(item.Value)
	}
	require.Equal(t, copies, readEverything(t, s))
}

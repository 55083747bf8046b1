package rest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// largeStore has items of which a page has room for the results of two.
type largeStore struct {
	batch.Store
	items, read int
}

func (s *largeStore) Items(_ context.Context, _ string, from, limit int, _ ...batch.Status,
) (page []batch.Item, _ error) {
	for i := from; i < min(s.items, from+limit); i++ {
		item := batch.Item{Index: i, Result: &batch.Result{}}
		if i >= from+2 {
			item.Result, item.LeftOut = nil, 1
		}
		page = append(page, item)
	}
	s.read += len(page)
	return page, nil
}

func (s *largeStore) Result(context.Context, string, int) (*batch.Result, error) {
	return &batch.Result{}, nil
}

// TestItemsWithLargeResultsAreReadAFewTimes passes over items of which each page is cut short.
func TestItemsWithLargeResultsAreReadAFewTimes(t *testing.T) {
	t.Parallel()
	store := &largeStore{items: 600}
	s := &server{head: storeHead{store: store}}
	next := 0
	require.NoError(t, s.eachItem(t.Context(), "", 0, store.items, nil, func(item *batch.Item) error {
		require.Equal(t, next, item.Index)
		require.NotNil(t, item.Result)
		next++
		return nil
	}))
	require.Equal(t, store.items, next)
	require.Less(t, store.read, 3*store.items)
}

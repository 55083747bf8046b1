package rest_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// deletingStore deletes a batch once it has been listed.
type deletingStore struct {
	batch.Store
	id string
}

func (s *deletingStore) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	found, err := s.Store.List(ctx, active, after, limit)
	if err == nil && s.id != "" {
		err = s.Delete(ctx, s.id)
		s.id = ""
	}
	return found, err
}

// TestABatchThatIsDeletedWhileItIsListedIsLeftOut lists three batches of which one goes meanwhile, in one page and
// in pages of three.
func TestABatchThatIsDeletedWhileItIsListedIsLeftOut(t *testing.T) {
	t.Parallel()
	for query, more := range map[string]bool{"": false, "?limit=3": true} {
		for at := range 3 {
			f := newFixture(t, rest.Options{})
			var ids []string
			for range 4 {
				id := f.submit("a")
				f.run(id, 1)
				ids = append(ids, id)
				// Their order is that of their times.
				require.Eventually(t, func() bool { return time.Now().UnixMilli() > created(f, id) }, time.Minute, time.Millisecond)
			}
			store := &deletingStore{f.head.store, ids[at]}
			server := httptest.NewServer(rest.Handler(largeHead{f.head, store}, rest.Options{}))
			t.Cleanup(server.Close)
			f.url = server.URL
			var page struct {
				Batches []view
				Next    string
			}
			f.send("GET", batchesPath+query, "").Into(200, &page)
			var got []string
			for _, b := range page.Batches {
				got = append(got, b.ID)
			}
			left := append(append([]string{}, ids[:at]...), ids[at+1:]...)
			if more {
				left = left[:2]
				require.Equal(t, left[1], page.Next)
			}
			require.Equal(t, left, got)
		}
	}
}

func created(f *fixture, id string) int64 {
	b, err := f.head.store.Get(f.Context(), id)
	require.NoError(f, err)
	return b.CreatedAt.UnixMilli()
}

// TestResultsOfManyItemsCountTheirPlaces asks for more small results than there is memory for where each is.
func TestResultsOfManyItemsCountTheirPlaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Stack: stack.Options{Limits: stack.Limits{
		Memory: 20 << 20, ClientMemory: 20 << 20, MemoryWait: time.Millisecond,
	}}})
	for n, status := range map[int]int{1000: 200, 50_000: 429} {
		b := &batch.Batch{ID: f.submit("a"), MaxAttempts: 1, CreatedAt: time.Now()}
		b.ID = b.ID[:len(b.ID)-4] + "0000"
		require.NoError(t, f.head.store.Create(t.Context(), b, make([][]string, n)))
		f.run(b.ID, n)
		require.Equal(t, status, f.send("POST", resultPath, `{"id":"`+b.ID+`"}`).Status)
	}
}

package futurestore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestAnUnknownCommitCountsNoItemTwice assigns an item by commits of which one is unknown.
func TestAnUnknownCommitCountsNoItemTwice(t *testing.T) {
	t.Parallel()
	for i, tag := range []string{"futura-assign", "futura-batch"} {
		d := newData(t)
		faults := faultkv.Wrap(d.db, faultkv.Options{})
		cluster, err := fdbmodel.Open(t.Context(), faults, "batches", fdbmodel.Options{})
		require.NoError(t, err)
		s := &store{futurestore.New(cluster, futurestore.Options{}), d}
		b := &batch.Batch{
			ID: fmt.Sprintf("11111111-2222-4333-8444-%012d", i), Template: suiteFunction, MaxAttempts: 1,
		}
		require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}}))
		faults.FailNext(faultkv.UnknownCommitted, func(found string) bool { return found == tag })
		c := &batch.Chunk{ID: "chunk", Batch: b.ID, Worker: "w"}
		assigned, err := s.Assign(t.Context(), c, []int{0})
		require.NoError(t, err)
		require.Equal(t, []int{0}, assigned)
		require.EqualValues(t, 1, faults.Counts().Injected[faultkv.UnknownCommitted])
		require.Equal(t, 1, c.Items, tag)
		chunks, err := s.Chunks(t.Context(), b.ID)
		require.NoError(t, err)
		require.Len(t, chunks, 1)
		require.Equal(t, 1, chunks[0].Items, tag)
		got, err := s.Get(t.Context(), b.ID)
		require.NoError(t, err)
		require.Equal(t, batch.InProgress, got.Status, tag)
	}
}

// TestAChunkIsReleasedAlone has two heads give a worker items of a batch, one of them by indexes that come twice.
func TestAChunkIsReleasedAlone(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := &store{futurestore.New(d.cluster, futurestore.Options{}), d}
	b := &batch.Batch{ID: "11111111-2222-4333-8444-555555555555", Template: suiteFunction, MaxAttempts: 1}
	require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}, {"b"}, {"c"}}))
	one, other := batch.Chunk{ID: "one", Batch: b.ID, Worker: "w"}, batch.Chunk{ID: "other", Batch: b.ID, Worker: "w"}
	assigned, err := s.Assign(t.Context(), &one, []int{2, 0, 0, 2, -1, 9})
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, assigned)
	require.Equal(t, 2, one.Items)
	assigned, err = s.Assign(t.Context(), &other, []int{1})
	require.NoError(t, err)
	require.Equal(t, []int{1}, assigned)
	released, err := s.Release(t.Context(), b.ID, one.ID)
	require.NoError(t, err)
	require.Equal(t, 2, released)
	progress, err := s.Progress(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, 1, progress[batch.InProgress])
}

// TestAChunkThatCantBeReadKeepsNoOtherFromBeingListed, and keeps its batch from nothing.
func TestAChunkThatCantBeReadKeepsNoOtherFromBeingListed(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := &store{futurestore.New(d.cluster, futurestore.Options{}), d}
	b := &batch.Batch{ID: "11111111-2222-4333-8444-555555555555", Template: suiteFunction, MaxAttempts: 1}
	require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}, {"b"}}))
	for i, id := range []string{"bad", "good"} {
		_, err := s.Assign(t.Context(), &batch.Chunk{ID: id, Batch: b.ID, Worker: "w"}, []int{i})
		require.NoError(t, err)
	}
	_, err := d.cluster.Transact(t.Context(), kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(d.cluster.Keys().BatchChunk(b.ID, "bad"), []byte{layout.RecordVersion + 1, 0x80})
		return nil
	})
	require.NoError(t, err)
	chunks, err := s.Chunks(t.Context(), b.ID)
	require.NoError(t, err)
	require.Len(t, chunks, 1)
	require.Equal(t, "good", chunks[0].ID)
	items, err := s.Items(t.Context(), b.ID, 0, 9)
	require.NoError(t, err)
	require.Len(t, items, 2)
	_, err = s.Settle(t.Context(), b.ID, b.CreatedAt)
	require.NoError(t, err)
}

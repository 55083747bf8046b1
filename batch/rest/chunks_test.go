package rest_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
)

type chunkList struct {
	Chunks []struct {
		ID, Worker, Peer, State string
		Status, Items           int
		CreatedAt               time.Time `json:"created_at"`
		FinishedAt              time.Time `json:"finished_at"`
	}
	Next string
}

// TestTheChunksOfABatchAreListed gives items to a worker, to a peer, and to a
// worker that is lost.
func TestTheChunksOfABatchAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b", "c")
	var list chunkList
	f.send("GET", batchesPath+"/"+id+"/chunks", "").Into(200, &list)
	require.Empty(t, list.Chunks)
	first := f.assign(id, "w1", 0)
	peer := batch.Chunk{
		ID: uuid.NewString(), Batch: id, Worker: "w2", Peer: "12D3KooWPeer", CreatedAt: time.Now().Add(time.Second),
	}
	_, err := f.head.store.Assign(t.Context(), &peer, []int{1, 2})
	require.NoError(t, err)
	f.complete(id, first, map[int]batch.Result{0: {Stdout: "ok"}})
	_, err = f.head.store.Release(t.Context(), id, peer.ID)
	require.NoError(t, err)
	f.send("GET", batchesPath+"/"+id+"/chunks", "").Into(200, &list)
	require.Len(t, list.Chunks, 2)
	done, lost := list.Chunks[0], list.Chunks[1]
	require.Equal(t, []string{first, "w1", "w1", "done"}, []string{done.ID, done.Worker, done.Peer, done.State})
	require.Equal(t, []string{peer.ID, "w2", "12D3KooWPeer", "failed"},
		[]string{lost.ID, lost.Worker, lost.Peer, lost.State})
	require.Equal(t, []int{100, 1, -1, 2}, []int{done.Status, done.Items, lost.Status, lost.Items})
	require.False(t, done.CreatedAt.IsZero() || done.FinishedAt.IsZero() || lost.FinishedAt.IsZero())

	f.send("GET", batchesPath+"/"+id+"/chunks?limit=1", "").Into(200, &list)
	require.Equal(t, []string{first, first}, []string{list.Chunks[0].ID, list.Next})
	list = chunkList{}
	f.send("GET", batchesPath+"/"+id+"/chunks?limit=1&after="+first, "").Into(200, &list)
	require.Equal(t, []string{peer.ID, ""}, []string{list.Chunks[0].ID, list.Next})
	f.send("GET", batchesPath+"/"+id+"/chunks?limit=0", "").Problem(400, "bad_request", "limit")
	f.send("GET", batchesPath+"/"+id+"/chunks?after=x", "").Problem(404, "not_found", "no chunk")
	f.send("GET", batchesPath+"/"+uuid.NewString()+"/chunks", "").Problem(404, "not_found", "")
}

// TestAPeerIsNamedByItsOwnID compares what b7s's shape says of a peer and of a
// worker.
func TestAPeerIsNamedByItsOwnID(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b")
	peer := batch.Chunk{ID: uuid.NewString(), Batch: id, Worker: "w2", Peer: "12D3KooWPeer", CreatedAt: time.Now()}
	_, err := f.head.store.Assign(t.Context(), &peer, []int{1})
	require.NoError(t, err)
	worker := f.assign(id, "w1", 0)
	f.complete(id, peer.ID, map[int]batch.Result{1: {}})
	f.complete(id, worker, map[int]batch.Result{0: {}})
	c := f.result(id)
	require.Equal(t, "12D3KooWPeer", c.Chunks[peer.ID].Peer)
	require.Equal(t, "w1", c.Chunks[worker].Peer)
}

package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// ChunkView is the view of a chunk.
type ChunkView struct {
	ID         string       `json:"id" format:"uuid"`
	Worker     string       `json:"worker" doc:"The id of the worker's start"`
	Peer       string       `json:"peer" doc:"The worker's libp2p peer id, or the same as worker if it has none"`
	Status     batch.Status `json:"status" doc:"1 in progress, 100 done, -1 failed: its worker was lost or left with some"`
	State      string       `json:"state" enum:"created,in_progress,done,failed,permanently_failed"`
	Items      int          `json:"items" doc:"How many it was given, without those moved"`
	Lost       int          `json:"lost,omitempty" doc:"Of items: how many went back because its worker was lost or left"`
	Moved      int          `json:"moved,omitempty" doc:"How many went to other chunks before its worker began them"`
	CreatedAt  time.Time    `json:"created_at"`
	FinishedAt *time.Time   `json:"finished_at,omitempty" doc:"When it was found to be over; left out while it runs"`
}

// ChunkList is a page of chunks.
type ChunkList struct {
	Chunks []ChunkView `json:"chunks"`
	Next   string      `json:"next,omitempty" doc:"What to send as after for the next page; left out at the end"`
}

func chunkViewOf(c *batch.Chunk) ChunkView {
	return ChunkView{
		ID: c.ID, Worker: c.Worker, Peer: c.PeerID(), Status: c.Status, State: stateName(c.Status), Items: c.Items,
		Lost: c.Lost, Moved: c.Moved, CreatedAt: c.CreatedAt.UTC(), FinishedAt: httpapi.TimeIfAny(c.FinishedAt),
	}
}

// chunkBytes is what a chunk holds in memory.
const chunkBytes = 512

// sortedChunks returns the chunks of a batch in the order of their creation.
func (s *server) sortedChunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	chunks, err := s.head.Store().Chunks(ctx, id)
	if err == nil {
		err = stack.Reserve(ctx, int64(len(chunks))*chunkBytes)
	}
	slices.SortFunc(chunks, func(a, b batch.Chunk) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return chunks, err
}

// listChunks returns a page of a batch's chunks.
func (s *server) listChunks(w http.ResponseWriter, r *http.Request, id string) error {
	limit, err := number(r, "limit", 100, 1, MaxPage)
	if err != nil {
		return err
	}
	chunks, err := s.sortedChunks(r.Context(), id)
	if err != nil {
		return err
	}
	if after := r.URL.Query().Get("after"); after != "" {
		at := slices.IndexFunc(chunks, func(c batch.Chunk) bool { return c.ID == after })
		if at < 0 {
			return stack.NewProblem(http.StatusNotFound, "not_found", nil, "batch %s has no chunk %.60q", id, after)
		}
		chunks = chunks[at+1:]
	}
	list := ChunkList{Chunks: []ChunkView{}}
	for i := range chunks[:min(limit, len(chunks))] {
		list.Chunks = append(list.Chunks, chunkViewOf(&chunks[i]))
	}
	if len(chunks) > limit {
		list.Next = chunks[limit-1].ID
	}
	return stack.WriteJSON(w, http.StatusOK, list)
}

// peers returns what b7s calls the peers of a batch's chunks, by their ids.
func (s *server) peers(ctx context.Context, id string) (map[string]string, error) {
	chunks, err := s.head.Store().Chunks(ctx, id)
	if err == nil {
		err = stack.Reserve(ctx, int64(len(chunks))*chunkBytes)
	}
	peers := make(map[string]string, len(chunks))
	for i := range chunks {
		peers[chunks[i].ID] = chunks[i].PeerID()
	}
	return peers, err
}

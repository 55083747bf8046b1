package mongostore

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// maxWitnesses bounds how many batches have witnesses.
const maxWitnesses = 10_000

// witnesses are items that were seen to be open: of a batch, or under a chunk.
// While such an item is still open, so is what it is part of, and no other need
// be looked for. A worker runs items in their order, so the last one is the best
// witness. The zero value is ready to use.
type witnesses struct {
	mu      sync.Mutex
	batches map[string]*batchWitnesses
}

type batchWitnesses struct {
	// open is an item that was not over, -1 for none.
	open int32
	// chunks are items in progress by their chunks' keys.
	chunks map[string]int32
}

// change changes the witnesses of a batch.
func (w *witnesses) change(id string, change func(*batchWitnesses)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.batches == nil || len(w.batches) > maxWitnesses {
		w.batches = map[string]*batchWitnesses{}
	}
	if w.batches[id] == nil {
		w.batches[id] = &batchWitnesses{open: -1, chunks: map[string]int32{}}
	}
	change(w.batches[id])
}

// sawChunk notes an item in progress under a chunk.
func (w *witnesses) sawChunk(id, chunk string, index int32) {
	w.change(id, func(b *batchWitnesses) { b.chunks[chunk] = index })
}

// forget drops what is known of a batch.
func (w *witnesses) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.batches, id)
}

// witnessDocument is what an item says about its batch and its chunk.
type witnessDocument struct {
	Index  int32  `bson:"index"`
	Status int32  `bson:"status"`
	Chunk  string `bson:"chunk_id"`
}

var witnessFields = bson.D{field("index", int32(1)), field("status", int32(1)), field("chunk_id", int32(1))}

// lastItem returns the last item of a batch that matches, nil if there is none.
func (s *Store) lastItem(ctx context.Context, id string, match bson.D) (*witnessDocument, error) {
	last := options.FindOne().SetProjection(witnessFields).SetSort(bson.D{field("index", int32(-1))})
	return findOne[witnessDocument](ctx, s.items, ofBatch(id, match), last, "look for open items of batch %s", id)
}

// allOver reports whether all items of a batch are over. An item that changes while
// open ones are looked for may be missed, so the items that are over are counted
// first: they stay over.
func (s *Store) allOver(ctx context.Context, d *batchDocument) (bool, error) {
	open, err := s.hasOpen(ctx, d.ID)
	if err != nil || open {
		return false, err
	}
	n, err := count(ctx, s.items, bson.D{field("batch_id", d.ID), status(batch.Done, batch.PermanentlyFailed)})
	return n == int(d.Items), err
}

// hasOpen reports whether an item of a batch was found that is not over.
func (s *Store) hasOpen(ctx context.Context, id string) (bool, error) {
	known := int32(-1)
	s.open.change(id, func(b *batchWitnesses) { known = b.open })
	if known >= 0 {
		seen, err := find[witnessDocument](ctx, s.items, bson.D{field("_id", itemKey(id, known))},
			options.Find().SetProjection(witnessFields))
		if err != nil || len(seen) == 1 && !batch.Status(seen[0].Status).Over() {
			return err == nil, err
		}
	}
	last, err := s.lastItem(ctx, id, bson.D{status(batch.Created, batch.InProgress, batch.Failed)})
	if err != nil {
		return false, err
	}
	if last == nil {
		s.open.forget(id)
		return false, nil
	}
	s.open.change(id, func(b *batchWitnesses) { b.open = last.Index })
	return true, nil
}

// running returns which of a batch's chunks have an item in progress.
func (s *Store) running(ctx context.Context, id string, chunks []chunkDocument) (map[string]bool, error) {
	running := make(map[string]bool, len(chunks))
	var known []int32
	s.open.change(id, func(b *batchWitnesses) {
		for i := range chunks {
			if index, is := b.chunks[chunks[i].ID]; is {
				known = append(known, index)
			}
		}
		b.chunks = map[string]int32{}
	})
	var seen []witnessDocument
	if len(known) > 0 {
		var err error
		seen, err = find[witnessDocument](ctx, s.items, bson.D{field("_id", itemKeys(id, known))},
			options.Find().SetProjection(witnessFields))
		if err != nil {
			return nil, err
		}
	}
	for i := range seen {
		if seen[i].Status == int32(batch.InProgress) {
			running[seen[i].Chunk] = true
			s.open.sawChunk(id, seen[i].Chunk, seen[i].Index)
		}
	}
	for i := range chunks {
		if running[chunks[i].ID] {
			continue
		}
		last, err := s.lastItem(ctx, id, inChunk(id, chunkOf(chunks[i].ID)))
		if err != nil {
			return nil, err
		}
		if last != nil {
			running[chunks[i].ID] = true
			s.open.sawChunk(id, chunks[i].ID, last.Index)
		}
	}
	return running, nil
}

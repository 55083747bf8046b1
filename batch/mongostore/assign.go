package mongostore

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// indexDocument is an item's index, with the fields that decide what it becomes.
type indexDocument struct {
	Index    int32    `bson:"index"`
	Attempts int32    `bson:"attempts"`
	FailedOn []string `bson:"failed_on"`
}

// places leaves out all but what an indexDocument has.
func places() *options.FindOptionsBuilder {
	return options.Find().SetProjection(
		bson.D{field("index", int32(1)), field("attempts", int32(1)), field("failed_on", int32(1))})
}

// Assign implements batch.Store.
//
// The server changes each item only if it is waiting, whatever other requests
// run at the same time; an item with the chunk's id afterwards belongs to the
// chunk. If a server does not guarantee that, two heads may believe that they
// have an item: both run it, and the result of one counts, because Complete
// compares the chunk.
func (s *Store) Assign(ctx context.Context, c *batch.Chunk, items []int) ([]int, error) {
	d, err := s.read(ctx, c.Batch)
	if err != nil || batch.Status(d.Status).Over() {
		return nil, err
	}
	wanted := make([]int32, 0, len(items))
	for _, i := range items {
		if i >= 0 && i < int(d.Items) {
			wanted = append(wanted, int32(i))
		}
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if len(wanted) == 0 {
		return nil, nil
	}
	made, err := s.openChunk(ctx, c)
	if err != nil {
		return nil, err
	}
	var given []int
	for part := range slices.Chunk(wanted, updatesAtOnce) {
		won, err := s.take(ctx, c, part)
		if err != nil {
			return nil, err
		}
		given = append(given, won...)
	}
	if len(given) > 0 {
		s.open.sawChunk(c.Batch, chunkKey(c.Batch, c.ID), int32(given[len(given)-1]))
		return given, s.begin(ctx, c, len(given), made)
	}
	if made {
		_, err = s.chunks.DeleteOne(ctx,
			bson.D{field("_id", chunkKey(c.Batch, c.ID)), status(batch.Created), field("version", int32(0))})
		if err != nil {
			return nil, failed(ctx, err, "remove the empty chunk %s of batch %s", c.ID, c.Batch)
		}
	}
	return nil, nil
}

// openChunk creates the chunk's document, before any item names it. It reports
// whether the document did not exist.
func (s *Store) openChunk(ctx context.Context, c *batch.Chunk) (made bool, err error) {
	createdAt := c.CreatedAt
	if createdAt.IsZero() {
		createdAt = now()
	}
	key := chunkKey(c.Batch, c.ID)
	_, err = s.chunks.InsertOne(ctx, &chunkDocument{
		Key: key, ID: key, Batch: c.Batch, Worker: c.Worker, Status: int32(batch.Created),
		CreatedAt: milliseconds(createdAt), Peer: c.Peer,
	})
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	if err != nil {
		return false, failed(ctx, err, "create chunk %s of batch %s", c.ID, c.Batch)
	}
	return true, nil
}

// take gives items that wait to a chunk, and returns which of them it has.
func (s *Store) take(ctx context.Context, c *batch.Chunk, items []int32) (won []int, err error) {
	changed, err := s.items.UpdateMany(ctx,
		bson.D{field("_id", itemKeys(c.Batch, items)), status(batch.Created, batch.Failed)},
		bson.D{set(status(batch.InProgress), field("chunk_id", chunkKey(c.Batch, c.ID)),
			field("worker", c.Worker), field("updated_at", now()))})
	if err != nil {
		return nil, failed(ctx, err, "assign items of batch %s", c.Batch)
	}
	if int(changed.MatchedCount) == len(items) {
		for _, index := range items {
			won = append(won, int(index))
		}
		return won, nil
	}
	// Others have some, or this chunk has had them since an interrupted call.
	found, err := find[indexDocument](ctx, s.items,
		append(bson.D{field("_id", itemKeys(c.Batch, items))}, inChunk(c.Batch, c.ID)...),
		places().SetSort(ascending("index")))
	for i := range found {
		won = append(won, int(found[i].Index))
	}
	return won, err
}

// inChunk reports whether an item is in progress under a chunk.
func inChunk(id, chunk string) bson.D {
	return bson.D{field("chunk_id", chunkKey(id, chunk)), status(batch.InProgress)}
}

// ofBatch finds the items of a batch that match.
func ofBatch(id string, match bson.D) bson.D { return append(bson.D{field("batch_id", id)}, match...) }

// begin makes a chunk that was given n items, its first if it is new, and its
// batch be in progress.
func (s *Store) begin(ctx context.Context, c *batch.Chunk, n int, isNew bool) error {
	key := chunkKey(c.Batch, c.ID)
	if !isNew {
		var err error
		if n, err = count(ctx, s.items, bson.D{field("batch_id", c.Batch), field("chunk_id", key)}); err != nil {
			return err
		}
	}
	_, err := update(ctx, s.chunks, bson.D{field("_id", key)}, bson.D{
		set(status(batch.InProgress)), unset("finished_at"), field("$max", bson.D{field("items", int32(n))}),
		increment("version"),
	}, "begin chunk %s of batch %s", c.ID, c.Batch)
	if err == nil {
		_, err = update(ctx, s.batches, visible(c.Batch, status(batch.Created)), bson.D{set(status(batch.InProgress))},
			"begin batch %s", c.Batch)
	}
	return err
}

// Release implements batch.Store.
func (s *Store) Release(ctx context.Context, id, chunk string) (int, error) {
	d, err := s.read(ctx, id)
	if err != nil {
		return 0, err
	}
	if _, err := s.readChunk(ctx, id, chunk); err != nil {
		return 0, err
	}
	found, err := find[indexDocument](ctx, s.items, ofBatch(id, inChunk(id, chunk)), places())
	if err != nil {
		return 0, err
	}
	var fresh, tried []int32
	for i := range found {
		if found[i].Attempts > 0 {
			tried = append(tried, found[i].Index)
		} else {
			fresh = append(fresh, found[i].Index)
		}
	}
	at := now()
	freshSet := bson.D{status(batch.Created), field("updated_at", at)}
	triedSet := bson.D{status(batch.Failed), field("updated_at", at)}
	if d.cancelled() {
		freshSet = failure(string(d.Reason), at)
		triedSet = freshSet
	}
	none, some := field("attempts", int32(0)), field("attempts", bson.D{field("$gt", int32(0))})
	a, err := s.updateParts(ctx, id, fresh, append(inChunk(id, chunk), none), bson.D{set(freshSet...)})
	if err != nil {
		return a, err
	}
	b, err := s.updateParts(ctx, id, tried, append(inChunk(id, chunk), some), bson.D{set(triedSet...), unset("due_at")})
	if err != nil {
		return a + b, err
	}
	notDone := bson.D{field("_id", chunkKey(id, chunk)), field("status", bson.D{field("$ne", int32(batch.Done))})}
	_, err = update(ctx, s.chunks, notDone, bson.D{set(status(batch.Failed), field("finished_at", at))},
		"release chunk %s of batch %s", chunk, id)
	if err == nil && !d.cancelled() {
		err = s.endIfCancelled(ctx, id)
	}
	return a + b, err
}

// updateParts changes the items of a batch with some indexes that match, a part
// at a time, and returns how many it changed.
func (s *Store) updateParts(ctx context.Context, id string, items []int32, match, update bson.D) (n int, err error) {
	for part := range slices.Chunk(items, updatesAtOnce) {
		changed, err := s.items.UpdateMany(ctx, append(bson.D{field("_id", itemKeys(id, part))}, match...), update)
		if err != nil {
			return n, failed(ctx, err, "update items")
		}
		n += int(changed.MatchedCount)
	}
	return n, nil
}

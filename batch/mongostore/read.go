package mongostore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// read returns the document of a visible batch, or ErrNotFound.
func (s *Store) read(ctx context.Context, id string) (*batchDocument, error) {
	d, err := findOne[batchDocument](ctx, s.batches, visible(id), nil, "read batch %s", id)
	if err == nil && d == nil {
		err = notFound(id)
	}
	return d, err
}

func (s *Store) readChunk(ctx context.Context, id, chunk string) (*chunkDocument, error) {
	d, err := findOne[chunkDocument](ctx, s.chunks, bson.D{field("_id", chunkKey(id, chunk))}, nil,
		"read chunk %s of batch %s", chunk, id)
	if err == nil && d == nil {
		err = fmt.Errorf("chunk %s of batch %s: %w", chunk, id, batch.ErrNotFound)
	}
	return d, err
}

// Get implements batch.Store.
func (s *Store) Get(ctx context.Context, id string) (batch.Batch, error) {
	d, err := s.read(ctx, id)
	if err != nil {
		return batch.Batch{}, err
	}
	return d.batch(), nil
}

// List implements batch.Store.
func (s *Store) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	if limit <= 0 {
		return nil, nil
	}
	filter := bson.D{field("hidden", absent)}
	if active {
		filter = append(filter, status(batch.Created, batch.InProgress, batch.Failed))
	}
	if after != "" {
		d, err := s.read(ctx, after)
		if err != nil {
			return nil, err
		}
		filter = append(filter, field("$or", bson.A{
			bson.D{field("created_at", bson.D{field("$gt", d.CreatedAt)})},
			bson.D{field("created_at", d.CreatedAt), field("id", bson.D{field("$gt", d.ID)})},
		}))
	}
	found, err := find[batchDocument](ctx, s.batches, filter,
		options.Find().SetSort(ascending("created_at", "id")).SetLimit(int64(limit)))
	if err != nil {
		return nil, err
	}
	batches := make([]batch.Batch, len(found))
	for i := range found {
		batches[i] = found[i].batch()
	}
	return batches, nil
}

// Progress implements batch.Store.
func (s *Store) Progress(ctx context.Context, id string) (batch.Progress, error) {
	if _, err := s.read(ctx, id); err != nil {
		return nil, err
	}
	return s.progress(ctx, id)
}

func (s *Store) progress(ctx context.Context, id string) (batch.Progress, error) {
	cursor, err := s.items.Aggregate(ctx, bson.A{
		bson.D{field("$match", bson.D{field("batch_id", id)})},
		bson.D{field("$group", bson.D{field("_id", "$status"), field("n", bson.D{field("$sum", int32(1))})})},
	})
	if err != nil {
		return nil, failed(ctx, err, "count the items of batch %s", id)
	}
	var groups []struct {
		Status int32 `bson:"_id"`
		N      int64 `bson:"n"`
	}
	if err := cursor.All(ctx, &groups); err != nil {
		return nil, failed(ctx, err, "count the items of batch %s", id)
	}
	progress := batch.Progress{}
	for _, group := range groups {
		progress[batch.Status(group.Status)] = int(group.N)
	}
	return progress, nil
}

// Items implements batch.Store.
func (s *Store) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	held := int64(0)
	return s.find(ctx, id, from, limit, states, nil, func(found *itemDocument) (batch.Item, error) {
		size := found.Result.size()
		if held+size > batch.PageBytes {
			found.Result = nil
			item := found.item()
			item.LeftOut = size
			return item, nil
		}
		held += size
		err := s.loadOutput(ctx, found)
		return found.item(), err
	})
}

// Outline implements batch.Store. It has nothing of an output that has documents of its own.
func (s *Store) Outline(ctx context.Context, id string, from, limit, most int, states ...batch.Status,
) ([]batch.Item, error) {
	var without bson.D
	if most <= 0 {
		without = bson.D{field("result", int32(0))}
	}
	return s.find(ctx, id, from, limit, states, without, func(found *itemDocument) (batch.Item, error) {
		item := found.item()
		item.Result, item.LeftOut = item.Result.Begin(most)
		if found.Result != nil {
			item.LeftOut += found.Result.apart()
		}
		return item, nil
	})
}

// find returns the items of a page, as made of their documents, which lack the fields of without.
func (s *Store) find(ctx context.Context, id string, from, limit int, states []batch.Status, without bson.D,
	made func(*itemDocument) (batch.Item, error),
) ([]batch.Item, error) {
	d, err := s.read(ctx, id)
	if err != nil || limit <= 0 || from >= int(d.Items) {
		return nil, err
	}
	from = max(from, 0)
	filter := bson.D{field("_id", bson.D{field("$gte", itemKey(id, int32(from))), field("$lt", behindItems(id))})}
	order := ascending("_id")
	if len(states) > 0 {
		filter = bson.D{field("batch_id", id), status(states...),
			field("index", bson.D{field("$gte", int32(from))})}
		order = ascending("index")
	}
	how := options.Find().SetSort(order).SetLimit(int64(limit))
	if without != nil {
		how.SetProjection(without)
	}
	cursor, err := s.items.Find(ctx, filter, how)
	if err != nil {
		return nil, failed(ctx, err, "read %s", s.items.Name())
	}
	defer func() { _ = cursor.Close(ctx) }() // it was read, or has failed
	var items []batch.Item
	for cursor.Next(ctx) {
		var found itemDocument
		if err := cursor.Decode(&found); err != nil {
			return nil, failed(ctx, err, "read an item of batch %s", id)
		}
		item, err := made(&found)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if err := cursor.Err(); err != nil {
		return nil, failed(ctx, err, "read %s", s.items.Name())
	}
	return items, nil
}

// Result implements batch.Store.
func (s *Store) Result(ctx context.Context, id string, index int) (*batch.Result, error) {
	d, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= int(d.Items) {
		return nil, fmt.Errorf("item %d of batch %s: %w", index, id, batch.ErrNotFound)
	}
	found, err := findOne[itemDocument](ctx, s.items, bson.D{field("_id", itemKey(id, int32(index)))}, nil,
		"read the result of item %d of batch %s", index, id)
	if err == nil && found == nil {
		err = fmt.Errorf("item %d of batch %s: %w", index, id, batch.ErrNotFound)
	}
	if err == nil {
		err = s.loadOutput(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	return found.item().Result, nil
}

// Waiting implements batch.Store. Results are left out.
func (s *Store) Waiting(ctx context.Context, id string, now time.Time, limit int) (
	[]batch.Item, time.Time, error,
) {
	if _, err := s.read(ctx, id); err != nil || limit <= 0 {
		return nil, time.Time{}, err
	}
	now = milliseconds(now)
	// Those that are due at once have no time and come first. One more than was
	// asked for says when more become due.
	found, err := find[itemDocument](ctx, s.items,
		bson.D{field("batch_id", id), status(batch.Created, batch.Failed)},
		options.Find().SetSort(ascending("due_at", "index")).SetLimit(int64(limit)+1).
			SetProjection(bson.D{field("result", int32(0))}))
	if err != nil {
		return nil, time.Time{}, err
	}
	due := slices.IndexFunc(found, func(d itemDocument) bool { return d.DueAt.After(now) })
	var next time.Time
	switch {
	case due >= 0:
		next = utc(found[due].DueAt)
		found = found[:due]
	case len(found) > limit:
		if next, err = s.nextDue(ctx, id, now); err != nil {
			return nil, time.Time{}, err
		}
	}
	items := make([]batch.Item, min(len(found), limit))
	for i := range items {
		items[i] = found[i].item()
	}
	return items, next, nil
}

// nextDue is when more failed items become due, zero if none do.
func (s *Store) nextDue(ctx context.Context, id string, now time.Time) (time.Time, error) {
	later, err := find[itemDocument](ctx, s.items,
		bson.D{field("batch_id", id), status(batch.Failed),
			field("due_at", bson.D{field("$gt", now)})},
		options.Find().SetSort(ascending("due_at")).SetLimit(1).SetProjection(bson.D{field("due_at", int32(1))}))
	if err != nil || len(later) == 0 {
		return time.Time{}, err
	}
	return utc(later[0].DueAt), nil
}

// Chunks implements batch.Store.
func (s *Store) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	if _, err := s.read(ctx, id); err != nil {
		return nil, err
	}
	found, err := find[chunkDocument](ctx, s.chunks, bson.D{field("batch_id", id)})
	if err != nil {
		return nil, err
	}
	chunks := make([]batch.Chunk, len(found))
	for i := range found {
		chunks[i] = found[i].chunk()
	}
	return chunks, nil
}

package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// abandonedAfter is the age from which a chunk without items counts as
// abandoned by its head.
const abandonedAfter = 10 * time.Minute

// Settle implements batch.Store. It also repairs what an interrupted call left
// behind: items that wait in a cancelled batch, and chunks that an Assign made
// and did not begin.
func (s *Store) Settle(ctx context.Context, id string, now time.Time) (batch.Batch, error) {
	for {
		d, err := s.read(ctx, id)
		if err != nil {
			return batch.Batch{}, err
		}
		if err := s.settleChunks(ctx, d, now); err != nil {
			return batch.Batch{}, err
		}
		if d.cancelled() {
			return d.batch(), s.endWaiting(ctx, d)
		}
		if batch.Status(d.Status).Over() {
			return d.batch(), nil
		}
		over, err := s.allOver(ctx, d)
		if err != nil || !over {
			return d.batch(), err
		}
		// A Retry that began since then has counted up the version.
		_, err = update(ctx, s.batches, visible(id, field("status", d.Status), field("version", d.Version)),
			bson.D{set(status(batch.Done), field("finished_at", milliseconds(now))), unset("reason")}, "settle batch %s", id)
		if err != nil {
			return batch.Batch{}, err
		}
	}
}

// settleChunks makes chunks Done that have no item in progress. The chunks are
// read before their items: one that gets items since then has another version.
func (s *Store) settleChunks(ctx context.Context, d *batchDocument, now time.Time) error {
	chunks, err := find[chunkDocument](ctx, s.chunks,
		bson.D{field("batch_id", d.ID), status(batch.Created, batch.InProgress)})
	if err != nil || len(chunks) == 0 {
		return err
	}
	running, err := s.running(ctx, d.ID, chunks)
	if err != nil {
		return err
	}
	var writes []mongo.WriteModel
	for i := range chunks {
		c := &chunks[i]
		as := bson.D{field("_id", c.ID), field("status", c.Status), field("version", c.Version)}
		change := bson.D{set(status(batch.Done), field("finished_at", milliseconds(now)))}
		switch {
		case running[c.ID] == (c.Status == int32(batch.InProgress)):
			if !running[c.ID] && now.Sub(c.CreatedAt) > abandonedAfter {
				writes = append(writes, mongo.NewDeleteOneModel().SetFilter(as))
			}
			continue
		case running[c.ID]:
			n, err := count(ctx, s.items, ofBatch(d.ID, inChunk(d.ID, chunkOf(c.ID))))
			if err != nil {
				return err
			}
			change = bson.D{set(status(batch.InProgress), field("items", int32(n)))}
		}
		writes = append(writes, mongo.NewUpdateOneModel().SetFilter(as).SetUpdate(change))
	}
	for part := range slices.Chunk(writes, bulkWriteLimit) {
		if _, err := s.chunks.BulkWrite(ctx, part, options.BulkWrite().SetOrdered(false)); err != nil {
			return failed(ctx, err, "settle the chunks of batch %s", d.ID)
		}
	}
	return nil
}

// SetReason implements batch.Store.
func (s *Store) SetReason(ctx context.Context, id, reason string) error {
	changed, err := update(ctx, s.batches, visible(id, status(batch.Created, batch.InProgress)),
		bson.D{set(field("reason", text(reason)))}, "set the reason of batch %s", id)
	if err != nil || changed {
		return err
	}
	d, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	return isOver(d)
}

func isOver(d *batchDocument) error {
	return fmt.Errorf("batch %s is %v: %w", d.ID, batch.Status(d.Status), batch.ErrState)
}

// Cancel implements batch.Store. The batch comes first: a call that makes items
// wait later ends them itself.
func (s *Store) Cancel(ctx context.Context, id, reason string, now time.Time) error {
	changed, err := update(ctx, s.batches, visible(id, status(batch.Created, batch.InProgress)), bson.D{set(
		status(batch.PermanentlyFailed), field("reason", text(reason)), field("finished_at", milliseconds(now)),
	)}, "cancel batch %s", id)
	if err != nil {
		return err
	}
	d, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	if d.cancelled() {
		if err := s.endWaiting(ctx, d); err != nil {
			return err
		}
	}
	if !changed {
		return isOver(d)
	}
	return nil
}

// endIfCancelled ends the items that wait if the batch was cancelled meanwhile.
func (s *Store) endIfCancelled(ctx context.Context, id string) error {
	d, err := s.read(ctx, id)
	if errors.Is(err, batch.ErrNotFound) {
		return nil
	}
	if err != nil || !d.cancelled() {
		return err
	}
	return s.endWaiting(ctx, d)
}

// endWaiting makes the waiting items of a cancelled batch fail for good, except
// those that a later Retry made wait.
func (s *Store) endWaiting(ctx context.Context, d *batchDocument) error {
	match := bson.D{status(batch.Created, batch.Failed), field("round", bson.D{field("$lte", d.Round)})}
	_, err := s.eachPart(ctx, d.ID, match, bson.D{set(failure(string(d.Reason), now())...), unset("due_at")})
	return err
}

// eachPart changes items of a batch that match until none does, and returns how
// many. The change makes an item one that does not match.
func (s *Store) eachPart(ctx context.Context, id string, match, update bson.D) (n int, err error) {
	for {
		found, err := find[indexDocument](ctx, s.items, ofBatch(id, match), places().SetLimit(updatesAtOnce))
		if err != nil || len(found) == 0 {
			return n, err
		}
		indexes := make([]int32, len(found))
		for i := range found {
			indexes[i] = found[i].Index
		}
		changed, err := s.updateParts(ctx, id, indexes, match, update)
		if err != nil {
			return n, err
		}
		n += changed
	}
}

// Retry implements batch.Store. It sets the batch in progress before its items
// wait, and again after: a Settle that counted the items before may have ended it
// in between.
func (s *Store) Retry(ctx context.Context, id string) (int, error) {
	d, err := s.read(ctx, id)
	if err != nil {
		return 0, err
	}
	progress, err := s.progress(ctx, id)
	if err != nil {
		return 0, err
	}
	cutOff := batch.Status(d.Status).Over() && !d.cancelled() && !progress.Over(int(d.Items))
	if progress[batch.PermanentlyFailed] == 0 && !cutOff {
		return 0, nil
	}
	again := bson.D{set(status(batch.InProgress)), unset("reason", "finished_at")}
	err = s.batches.FindOneAndUpdate(ctx, visible(id),
		append(again, field("$inc", bson.D{field("round", int32(1)), field("version", int32(1))})),
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(d)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return 0, notFound(id)
	}
	if err != nil {
		return 0, failed(ctx, err, "retry batch %s", id)
	}
	n, err := s.eachPart(ctx, id,
		bson.D{status(batch.PermanentlyFailed), field("round", bson.D{field("$lt", d.Round)})},
		bson.D{
			set(status(batch.Created), field("attempts", int32(0)), field("round", d.Round), field("updated_at", now())),
			unset("reason", "due_at"),
		})
	if err != nil {
		return n, err
	}
	_, err = update(ctx, s.batches, visible(id, field("round", d.Round)), bson.D{increment("version")},
		"retry batch %s", id)
	if err == nil {
		_, err = update(ctx, s.batches, visible(id, field("round", d.Round), status(batch.Done)), again,
			"retry batch %s", id)
	}
	if err == nil {
		err = s.endIfCancelled(ctx, id)
	}
	return n, err
}

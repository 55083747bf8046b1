package mongostore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// Numbers of documents that are sent at a time.
const (
	insertsAtOnce  = 1000
	updatesAtOnce  = 300
	bulkWriteLimit = 40
)

// cleanupTimeout bounds how long a Create that failed removes what it wrote.
const cleanupTimeout = 5 * time.Second

// visible matches a batch that is not hidden.
func visible(id string, more ...bson.E) bson.D {
	return append(bson.D{field("_id", id), field("hidden", absent)}, more...)
}

// Create implements batch.Store. The batch's document comes first, hidden, and
// takes the id; it is shown when all items are there.
func (s *Store) Create(ctx context.Context, b *batch.Batch, arguments [][]string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("%w: no arguments: a batch needs at least one list of arguments", batch.ErrBadBatch)
	}
	if _, err := b.Template.Encode(); err != nil {
		return err
	}
	d := newBatchDocument(b, len(arguments))
	if b.CreatedAt.IsZero() {
		d.CreatedAt = now()
	}
	d.Hidden, d.Creator, d.Digest = creating, rand.Text(), hex.EncodeToString(batch.Digest(b, arguments))
	_, err := s.batches.InsertOne(ctx, d)
	takenOver := mongo.IsDuplicateKeyError(err)
	if takenOver {
		if err := s.takeOver(ctx, d); err != nil {
			return err
		}
	} else if err != nil {
		s.undoCreate(ctx, d)
		return failed(ctx, err, "create batch %s", b.ID)
	}
	if err := s.fill(ctx, b, d, arguments, takenOver); err != nil {
		s.undoCreate(ctx, d)
		return err
	}
	return nil
}

// takeOver makes this call the creator of a batch that another call is creating
// with the same content. It returns batch.ErrExists if there is none.
func (s *Store) takeOver(ctx context.Context, d *batchDocument) error {
	same := bson.D{field("_id", d.ID), field("hidden", creating), field("digest", d.Digest)}
	changed, err := update(ctx, s.batches, same,
		bson.D{set(field("creator", d.Creator), field("created_at", d.CreatedAt))}, "create batch %s", d.ID)
	if err != nil {
		return err
	}
	if !changed {
		return fmt.Errorf("batch %s: %w", d.ID, batch.ErrExists)
	}
	return nil
}

// mine matches the batch while the document's creator creates it.
func (d *batchDocument) mine() bson.D {
	return bson.D{field("_id", d.ID), field("hidden", creating), field("creator", d.Creator)}
}

// fill inserts the items of a hidden batch and shows it. Items of one that was
// taken over may exist.
func (s *Store) fill(ctx context.Context, b *batch.Batch, d *batchDocument, arguments [][]string, takenOver bool,
) error {
	unordered := options.InsertMany().SetOrdered(false)
	part := make([]any, 0, min(insertsAtOnce, len(arguments)))
	for item := range itemDocuments(b, arguments, d.CreatedAt) {
		part = append(part, item)
		if len(part) < insertsAtOnce && int(item.Index) < len(arguments)-1 {
			continue
		}
		_, err := s.items.InsertMany(ctx, part, unordered)
		if onlyDuplicates(err) && !takenOver {
			// A caller that took this batch over meanwhile inserts the same.
			if owned, gone := s.creates(ctx, d); gone == nil && !owned {
				return fmt.Errorf("batch %s: %w", b.ID, batch.ErrBusy)
			}
		} else if onlyDuplicates(err) {
			err = nil
		}
		if err != nil {
			return failed(ctx, err, "create the items of batch %s", b.ID)
		}
		part = part[:0]
	}
	shown, err := update(ctx, s.batches, d.mine(), bson.D{unset("hidden", "creator", "digest")}, "create batch %s", b.ID)
	if err != nil {
		return err
	}
	if !shown {
		others, err := s.batches.CountDocuments(ctx,
			bson.D{field("_id", b.ID), field("hidden", bson.D{field("$ne", deleting)})})
		if err == nil && others > 0 {
			return fmt.Errorf("batch %s: %w", b.ID, batch.ErrBusy)
		}
		return fmt.Errorf("create batch %s: it took so long that a sweep removed it: try again", b.ID)
	}
	return nil
}

// onlyDuplicates reports whether documents could not be inserted only because
// they exist already.
func onlyDuplicates(err error) bool {
	var bulk mongo.BulkWriteException
	if !errors.As(err, &bulk) || bulk.WriteConcernError != nil {
		return false
	}
	return !slices.ContainsFunc(bulk.WriteErrors, func(e mongo.BulkWriteError) bool { return e.Code != codeDuplicateKey })
}

// creates reports whether the creator of a document is still creating the
// batch.
func (s *Store) creates(ctx context.Context, d *batchDocument) (bool, error) {
	n, err := s.batches.CountDocuments(ctx, bson.D{field("_id", d.ID), field("creator", d.Creator)})
	return n > 0, err
}

// undoCreate removes what a Create wrote that failed, unless the batch is shown
// or another creates it. What it can't remove stays hidden, for Sweep. If the
// batch was swept away, it takes the id again while it removes the items that
// came after that; a caller that has the id by then keeps it.
func (s *Store) undoCreate(ctx context.Context, d *batchDocument) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	mine, err := update(ctx, s.batches, d.mine(), bson.D{set(field("hidden", deleting))}, "remove batch %s", d.ID)
	switch {
	case mine:
		err = s.remove(ctx, d.ID)
	case err == nil:
		again := *d
		again.Hidden = deleting
		if _, err = s.batches.InsertOne(ctx, &again); err == nil {
			err = s.remove(ctx, d.ID)
		} else if mongo.IsDuplicateKeyError(err) {
			err = nil
		}
	}
	if err != nil {
		s.log.Warn("a batch that was not created stays hidden until the next sweep", "batch", d.ID, "error", err)
	}
}

// Delete implements batch.Store. The batch is hidden first.
func (s *Store) Delete(ctx context.Context, id string) error {
	_, err := update(ctx, s.batches, visible(id, status(batch.Done, batch.PermanentlyFailed)),
		bson.D{set(field("hidden", deleting))}, "delete batch %s", id)
	if err != nil {
		return err
	}
	d, err := findOne[batchDocument](ctx, s.batches, bson.D{field("_id", id)}, nil, "delete batch %s", id)
	switch {
	case err != nil:
		return err
	case d == nil || d.Hidden == creating:
		return notFound(id)
	case d.Hidden != deleting:
		return fmt.Errorf("batch %s is %v: %w: cancel it first", id, batch.Status(d.Status), batch.ErrState)
	}
	return s.remove(ctx, id)
}

// remove removes a batch that is being deleted, its own document last.
func (s *Store) remove(ctx context.Context, id string) error {
	of := bson.D{field("batch_id", id)}
	for _, collection := range []*mongo.Collection{s.items, s.chunks, s.outputs} {
		if _, err := collection.DeleteMany(ctx, of); err != nil {
			return failed(ctx, err, "remove batch %s", id)
		}
	}
	if _, err := s.batches.DeleteOne(ctx, bson.D{field("_id", id), field("hidden", deleting)}); err != nil {
		return failed(ctx, err, "remove batch %s", id)
	}
	return nil
}

// Sweep implements batch.Store. What a Delete left behind goes at any age. A
// batch that is being created can't be shown once it is swept.
func (s *Store) Sweep(ctx context.Context, now time.Time, age time.Duration) error {
	_, err := s.batches.UpdateMany(ctx,
		bson.D{field("hidden", creating), field("created_at", bson.D{field("$lt", milliseconds(now.Add(-age)))})},
		bson.D{set(field("hidden", deleting))})
	if err != nil {
		return failed(ctx, err, "sweep")
	}
	found, err := find[batchDocument](ctx, s.batches, bson.D{field("hidden", deleting)})
	for i := 0; err == nil && i < len(found); i++ {
		err = s.remove(ctx, found[i].ID)
	}
	return err
}

func notFound(id string) error { return fmt.Errorf("batch %s: %w", id, batch.ErrNotFound) }

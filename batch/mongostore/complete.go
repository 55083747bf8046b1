package mongostore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

// rememberedWorkers is how many workers of failed attempts an item keeps.
const rememberedWorkers = 8

// report is what one call of Complete is about.
type report struct {
	batch *batchDocument
	chunk *chunkDocument
	// token is written to the items that it ends, to tell them from those that
	// another report ended.
	token string
	now   time.Time
}

// Complete implements batch.Recorder. Each item is changed only if it is still
// in progress under the chunk, with as many attempts as were seen.
func (s *Store) Complete(ctx context.Context, id, chunk string, ended []batch.Completion) ([]bool, error) {
	d, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := s.readChunk(ctx, id, chunk)
	if err != nil {
		return nil, err
	}
	r := &report{batch: d, chunk: c, token: rand.Text(), now: now()}
	counted := make([]bool, 0, len(ended))
	retries := false
	for part := range slices.Chunk(ended, bulkWriteLimit) {
		done, err := s.completePart(ctx, r, part)
		if err != nil {
			return nil, err
		}
		for i := range done {
			retries = retries || done[i] && !succeeded(&part[i])
		}
		counted = append(counted, done...)
	}
	if retries && !d.cancelled() {
		return counted, s.endIfCancelled(ctx, id)
	}
	return counted, nil
}

func succeeded(end *batch.Completion) bool { return !end.Failed && end.Result.ExitCode == 0 }

// completePart ends as many attempts as one write may have, each item once.
func (s *Store) completePart(ctx context.Context, r *report, ended []batch.Completion) ([]bool, error) {
	counted := make([]bool, len(ended))
	var asked []int32
	for i := range ended {
		if index := ended[i].Index; index >= 0 && index < int(r.batch.Items) {
			asked = append(asked, int32(index))
		}
	}
	if len(asked) == 0 {
		return counted, nil
	}
	chunk := inChunk(r.batch.ID, chunkOf(r.chunk.ID))
	keys := itemKeys(r.batch.ID, asked)
	found, err := find[indexDocument](ctx, s.items, append(bson.D{field("_id", keys)}, chunk...), places())
	if err != nil {
		return nil, err
	}
	seen := make(map[int]*indexDocument, len(found))
	for i := range found {
		seen[int(found[i].Index)] = &found[i]
	}
	var writes []mongo.WriteModel
	written := map[int]int{}
	for i := range ended {
		item := seen[ended[i].Index]
		if item == nil {
			continue
		}
		delete(seen, ended[i].Index)
		update, err := s.ending(ctx, r, item, &ended[i])
		if err != nil {
			return nil, err
		}
		as := bson.D{field("_id", itemKey(r.batch.ID, item.Index)), field("attempts", item.Attempts)}
		writes = append(writes, mongo.NewUpdateOneModel().SetUpdate(update).SetFilter(append(as, chunk...)))
		written[ended[i].Index] = i
	}
	if len(writes) == 0 {
		return counted, nil
	}
	result, err := s.items.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return nil, failed(ctx, err, "complete items of batch %s", r.batch.ID)
	}
	if int(result.MatchedCount) == len(writes) {
		for _, i := range written {
			counted[i] = true
		}
		return counted, nil
	}
	mine, err := find[indexDocument](ctx, s.items, bson.D{field("_id", keys), field("ended_by", r.token)}, places())
	for i := range mine {
		if at, ok := written[int(mine[i].Index)]; ok {
			counted[at] = true
		}
	}
	return counted, err
}

// ending is the change of an item whose attempt ended.
func (s *Store) ending(ctx context.Context, r *report, item *indexDocument, end *batch.Completion) (bson.D, error) {
	result, err := s.saveOutput(ctx, r, end)
	if err != nil {
		return nil, err
	}
	at := r.now
	if !end.At.IsZero() {
		at = milliseconds(end.At)
	}
	change := bson.D{field("result", result), field("ended_by", r.token), field("updated_at", at)}
	if succeeded(end) {
		return bson.D{set(append(change, status(batch.Done))...), unset("due_at")}, nil
	}
	failedOn := append(slices.Clone(item.FailedOn), r.chunk.Worker)
	failedOn = failedOn[max(0, len(failedOn)-rememberedWorkers):]
	attempts := item.Attempts + 1
	change = append(change, field("attempts", attempts), field("failed_on", failedOn))
	reason := text(cmp.Or(end.Reason, fmt.Sprintf("exit code %d", end.Result.ExitCode)))
	switch {
	case end.Permanent || attempts >= r.batch.MaxAttempts:
	case r.batch.cancelled():
		reason = r.batch.Reason
	default:
		change = append(change, status(batch.Failed))
		if end.DueAt.IsZero() {
			return bson.D{set(change...), unset("due_at")}, nil
		}
		return bson.D{set(append(change, field("due_at", milliseconds(end.DueAt)))...)}, nil
	}
	change = append(change, status(batch.PermanentlyFailed), field("reason", reason))
	return bson.D{set(change...), unset("due_at")}, nil
}

// failure makes an item one that has failed for good.
func failure(reason string, now time.Time) bson.D {
	return bson.D{status(batch.PermanentlyFailed), field("reason", text(reason)), field("updated_at", now)}
}

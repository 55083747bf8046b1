package futurestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// itemPage is how many items are read in one transaction.
const itemPage = 100

// Items implements batch.Store.
func (s *Store) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	workers, err := s.chunkWorkers(ctx, id)
	if err != nil {
		return nil, err
	}
	var items []batch.Item
	var held int64
	for from = max(from, 0); from < b.Items && len(items) < limit; from += itemPage {
		rows, err := s.cluster.BatchItems(ctx, id, from, min(itemPage, b.Items-from))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if len(states) > 0 && !slices.Contains(states, statusOf(&rows[i])) || len(items) == limit {
				continue
			}
			item := bareItem(&b, &rows[i], workers)
			if size := resultSize(&rows[i]); held+size > batch.PageBytes {
				if item.LeftOut = size; rows[i].State() == layout.Realized {
					item.UpdatedAt = time.UnixMilli(rows[i].Result.At).UTC()
				}
			} else {
				held += size
				if item.Result, err = s.result(ctx, &rows[i], &item.UpdatedAt); err != nil {
					return nil, err
				}
			}
			items = append(items, item)
		}
	}
	return items, nil
}

// Result implements batch.Store.
func (s *Store) Result(ctx context.Context, id string, index int) (*batch.Result, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= b.Items {
		return nil, fmt.Errorf("item %d of batch %s: %w", index, id, batch.ErrNotFound)
	}
	rows, err := s.cluster.BatchItems(ctx, id, index, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var at time.Time
	return s.result(ctx, &rows[0], &at)
}

// resultSize is how many bytes a result has at most.
func resultSize(row *layout.Row) int64 {
	part := func(inline []byte, ref *layout.ChunkRef) int64 {
		if ref != nil {
			return ref.Size
		}
		return int64(len(inline))
	}
	if r := row.Result; r != nil && row.State() == layout.Realized {
		return part(r.Value, r.ValueRef) + part(r.Stderr, r.StderrRef)
	}
	if e := row.Exception; e != nil {
		return int64(len(e.Stdout)+len(e.Message)) + part(e.Stderr, e.StderrRef)
	}
	return 0
}

// chunkWorkers are the workers of a batch's chunks.
func (s *Store) chunkWorkers(ctx context.Context, id string) (map[string]string, error) {
	chunks, err := s.cluster.BatchChunks(ctx, id)
	if err != nil {
		return nil, err
	}
	workers := make(map[string]string, len(chunks))
	for _, c := range chunks {
		workers[c.ID] = string(c.Worker)
	}
	return workers, nil
}

// statusOf is the state of an item by its future's.
func statusOf(row *layout.Row) batch.Status {
	switch row.State() {
	case layout.Claimed:
		return batch.InProgress
	case layout.Realized:
		return batch.Done
	case layout.Failed:
		return batch.PermanentlyFailed
	}
	switch {
	case row.Attempts.Assigned != "":
		return batch.InProgress
	case row.Attempts.Failed > 0:
		return batch.Failed
	default:
		return batch.Created
	}
}

// bareItem is an item without its result.
func bareItem(b *batch.Batch, row *layout.Row, workers map[string]string) batch.Item {
	item := batch.Item{
		Index: layout.BatchItemIndex(row.ID), ID: batch.ItemID(&b.Template, row.Spec.Argv), Arguments: row.Spec.Argv,
		Status: statusOf(row), Attempts: row.Attempts.Failed, UpdatedAt: time.UnixMilli(row.Spec.SubmittedAt).UTC(),
	}
	if e := row.Exception; e != nil {
		item.UpdatedAt = time.UnixMilli(e.At).UTC()
		for _, w := range e.FailedOn {
			item.FailedOn = append(item.FailedOn, string(w))
		}
		if e.Final {
			item.Reason = reasonOf(e)
		}
	}
	item.Chunk, item.Worker = row.Attempts.Why, workers[row.Attempts.Why]
	if row.State() == layout.Delayed {
		item.DueAt = time.UnixMilli(row.Attempts.Due).UTC()
	}
	return item
}

// reasonOf says why an item failed for good.
func reasonOf(e *layout.Exception) string {
	if e.Kind == layout.KindCancelled || e.Kind == layout.KindExit {
		return e.Message
	}
	return string(e.Kind) + ": " + e.Message
}

// result is what the last attempt that ended left behind.
func (s *Store) result(ctx context.Context, row *layout.Row, at *time.Time) (*batch.Result, error) {
	if r := row.Result; r != nil && row.State() == layout.Realized {
		*at = time.UnixMilli(r.At).UTC()
		stdout, err := s.cluster.ResultValue(ctx, row.ID, r)
		if err != nil {
			return nil, err
		}
		stderr, err := s.cluster.Stderr(ctx, row.ID, r.Stderr, r.StderrRef)
		return &batch.Result{Stdout: string(stdout), Stderr: string(stderr), ExitCode: r.ExitCode}, err
	}
	e := row.Exception
	if e == nil || e.Attempt == 0 {
		return nil, nil
	}
	stderr, err := s.cluster.Stderr(ctx, row.ID, e.Stderr, e.StderrRef)
	result := &batch.Result{Stdout: string(e.Stdout), Stderr: string(stderr), ExitCode: e.ExitCode}
	if result.ExitCode == 0 {
		result.ExitCode = batch.NoExitCode
	}
	if len(stderr) == 0 {
		result.Stderr = e.Message
	}
	return result, err
}

// Progress implements batch.Store.
func (s *Store) Progress(ctx context.Context, id string) (batch.Progress, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	counts, err := s.cluster.OwnerCounts(ctx, s.options.Queue, id)
	if err != nil {
		return nil, err
	}
	open, err := s.cluster.OwnerOpen(ctx, id)
	if err != nil {
		return nil, err
	}
	again, _, err := s.cluster.HeldRetries(ctx, id, time.Time{})
	if err != nil {
		return nil, err
	}
	running := 0
	for _, n := range open {
		running += int(n)
	}
	waiting := max(0, int(counts[layout.Ready]+counts[layout.Claimed]+counts[layout.Delayed])-running)
	again = min(again, waiting)
	return batch.Progress{
		batch.Created: waiting - again, batch.InProgress: running, batch.Failed: again,
		batch.Done: int(counts[layout.Realized]), batch.PermanentlyFailed: int(counts[layout.Failed]),
	}, nil
}

// Waiting implements batch.Store.
func (s *Store) Waiting(ctx context.Context, id string, now time.Time, limit int) ([]batch.Item, time.Time, error) {
	var next time.Time
	b, err := s.Get(ctx, id)
	if err != nil || b.Status.Over() {
		return nil, next, err
	}
	workers, err := s.chunkWorkers(ctx, id)
	if err != nil {
		return nil, next, err
	}
	var items []batch.Item
	for cursor, more := []byte(nil), true; more && len(items) < limit; {
		page, behind, err := s.cluster.Held(ctx, id, cursor, itemPage)
		if err != nil {
			return nil, next, err
		}
		var ids []layout.ID
		for _, h := range page {
			if h.Due <= now.UnixMilli() && len(items)+len(ids) < limit {
				ids = append(ids, h.ID)
			}
		}
		if items, err = s.appendWaiting(ctx, items, &b, ids, workers); err != nil {
			return nil, next, err
		}
		cursor, more = behind, behind != nil
	}
	_, next, err = s.cluster.HeldRetries(ctx, id, now)
	return items, next, err
}

func (s *Store) appendWaiting(ctx context.Context, items []batch.Item, b *batch.Batch, ids []layout.ID,
	workers map[string]string,
) ([]batch.Item, error) {
	rows, err := s.cluster.GetMany(ctx, ids)
	for i := range rows {
		// It may have been given out meanwhile.
		if status := statusOf(&rows[i]); status == batch.Created || status == batch.Failed {
			items = append(items, bareItem(b, &rows[i], workers))
		}
	}
	return items, err
}

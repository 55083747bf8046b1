package futurestore

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
)

// itemPage is how many items are read in one transaction.
const itemPage = 100

// Items implements batch.Store.
func (s *Store) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	chunks, err := s.chunkNames(ctx, id)
	if err != nil {
		return nil, err
	}
	var items []batch.Item
	for from = max(from, 0); from < b.Items && len(items) < limit; from += itemPage {
		rows, err := s.cluster.BatchItems(ctx, id, from, min(itemPage, b.Items-from))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if len(states) > 0 && !slices.Contains(states, statusOf(&rows[i])) || len(items) == limit {
				continue
			}
			item, err := s.item(ctx, &b, &rows[i], chunks)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	return items, nil
}

// chunkNames are the ids of a batch's chunks by their workers.
func (s *Store) chunkNames(ctx context.Context, id string) (map[fdbmodel.WorkerID]string, error) {
	chunks, err := s.cluster.BatchChunks(ctx, id)
	if err != nil {
		return nil, err
	}
	names := make(map[fdbmodel.WorkerID]string, len(chunks))
	for _, c := range chunks {
		names[c.Worker] = c.Chunk
	}
	return names, nil
}

// statusOf is the state of an item by its future's.
func statusOf(row *fdbmodel.Row) batch.Status {
	switch row.State() {
	case fdbmodel.Claimed:
		return batch.InProgress
	case fdbmodel.Realized:
		return batch.Done
	case fdbmodel.Failed:
		return batch.PermanentlyFailed
	case fdbmodel.Delayed:
		return batch.Failed
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

// item is an item by its future's records.
func (s *Store) item(ctx context.Context, b *batch.Batch, row *fdbmodel.Row, chunks map[fdbmodel.WorkerID]string,
) (batch.Item, error) {
	item := batch.Item{
		Index: fdbmodel.BatchItemIndex(row.ID), ID: batch.ItemID(&b.Template, row.Spec.Argv), Arguments: row.Spec.Argv,
		Status: statusOf(row), Attempts: row.Attempts.Failed, UpdatedAt: time.UnixMilli(row.Spec.SubmittedAt).UTC(),
	}
	worker := row.Attempts.Assigned
	if e := row.Exception; e != nil {
		item.UpdatedAt = time.UnixMilli(e.At).UTC()
		if e.Worker != "" && item.Attempts > 0 {
			item.FailedOn = []string{string(e.Worker)}
		}
		if worker == "" {
			worker = e.Worker
		}
		if e.Final {
			item.Reason = string(e.Kind) + ": " + e.Message
		}
	}
	if row.Claim != nil {
		worker = row.Claim.Worker
	}
	item.Worker, item.Chunk = string(worker), chunks[worker]
	if row.State() == fdbmodel.Delayed {
		item.DueAt = time.UnixMilli(row.Attempts.Due).UTC()
	}
	var err error
	item.Result, err = s.result(ctx, row, &item.UpdatedAt)
	return item, err
}

// result is what the last attempt that ended left behind.
func (s *Store) result(ctx context.Context, row *fdbmodel.Row, at *time.Time) (*batch.Result, error) {
	if r := row.Result; r != nil && row.State() == fdbmodel.Realized {
		*at = time.UnixMilli(r.At).UTC()
		stdout, err := s.cluster.ResultValue(ctx, row.ID, r)
		if err != nil {
			return nil, err
		}
		stderr, err := s.cluster.Stderr(ctx, row.ID, r.Stderr, r.StderrRef)
		return &batch.Result{Stdout: string(stdout), Stderr: string(stderr), ExitCode: r.ExitCode}, err
	}
	e := row.Exception
	if e == nil || row.Attempts.Failed == 0 {
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

// Progress implements batch.Store. It takes as long as it takes to count what
// waits to be assigned.
func (s *Store) Progress(ctx context.Context, id string) (batch.Progress, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	counts, err := s.cluster.GroupCounts(ctx, s.options.Queue, id)
	if err != nil {
		return nil, err
	}
	p := batch.Progress{
		batch.Done: int(counts[fdbmodel.Realized]), batch.PermanentlyFailed: int(counts[fdbmodel.Failed]),
		batch.Failed: int(counts[fdbmodel.Delayed]),
	}
	ready, held := int(counts[fdbmodel.Ready]), 0
	var cursor []byte
	for ready > 0 {
		page, next, err := s.cluster.Held(ctx, id, cursor, heldPage)
		if err != nil {
			return nil, err
		}
		for _, h := range page {
			if held++; h.Failed > 0 {
				p[batch.Failed]++
			} else {
				p[batch.Created]++
			}
		}
		if cursor = next; next == nil {
			break
		}
	}
	p[batch.InProgress] = int(counts[fdbmodel.Claimed]) + max(ready-held, 0)
	return p, nil
}

// heldPage is how many held futures are read in one transaction.
const heldPage = 5000

// Waiting implements batch.Store. What failed is due once its worker's janitor
// has made it so. The items are without their arguments and results.
func (s *Store) Waiting(ctx context.Context, id string, _ time.Time, limit int) ([]batch.Item, time.Time, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, time.Time{}, err
	}
	var items []batch.Item
	var failed []fdbmodel.ID
	var cursor []byte
	for len(items) < limit {
		page, next, err := s.cluster.Held(ctx, id, cursor, min(heldPage, limit-len(items)))
		if err != nil {
			return nil, time.Time{}, err
		}
		for _, h := range page {
			item := batch.Item{Index: fdbmodel.BatchItemIndex(h.ID), Status: batch.Created, Attempts: h.Failed}
			if h.Failed > 0 {
				item.Status = batch.Failed
				failed = append(failed, h.ID)
			}
			items = append(items, item)
		}
		if cursor = next; next == nil {
			break
		}
	}
	slices.SortFunc(items, func(a, b batch.Item) int { return a.Index - b.Index })
	workers, err := s.failedOn(ctx, failed)
	if err != nil {
		return nil, time.Time{}, err
	}
	for i := range items {
		if w := workers[items[i].Index]; w != "" {
			items[i].FailedOn = []string{w}
		}
	}
	return items, time.Time{}, nil
}

// failedOn returns the workers of the last attempts of futures, by their index.
func (s *Store) failedOn(ctx context.Context, ids []fdbmodel.ID) (map[int]string, error) {
	workers := map[int]string{}
	for _, id := range ids {
		row, err := s.cluster.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if row.Exception != nil {
			workers[fdbmodel.BatchItemIndex(id)] = string(row.Exception.Worker)
		}
	}
	return workers, nil
}

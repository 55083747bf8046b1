package futurestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/fdbmodel/results"
)

// itemPage is how many items are read in one transaction.
const itemPage = 100

// Items implements batch.Store.
func (s *Store) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	held := int64(0)
	return s.find(ctx, id, from, limit, states, func(item *batch.Item, ending layout.Ending) (err error) {
		size := ending.Size()
		if held+size > batch.PageBytes {
			item.LeftOut = size
			return nil
		}
		held += size
		item.Result, err = s.result(ctx, ending)
		return err
	})
}

// Outline implements batch.Store. Of a result that is an object it has none of the standard output: to look at an item
// is no reason to make a lost result again.
func (s *Store) Outline(ctx context.Context, id string, from, limit, most int, states ...batch.Status,
) ([]batch.Item, error) {
	return s.find(ctx, id, from, limit, states, func(item *batch.Item, ending layout.Ending) error {
		if most <= 0 || !hasResult(&ending) {
			return nil
		}
		size := ending.Size()
		if err := s.begin(ctx, &ending); err != nil {
			return err
		}
		apart := size - ending.Size() // what is not read
		result := ResultOf(&ending)
		item.Result, item.LeftOut = result.Begin(most)
		item.LeftOut += apart
		return nil
	})
}

// find returns the items of a page. result gives an item what its future came to.
func (s *Store) find(ctx context.Context, id string, from, limit int, states []batch.Status,
	result func(*batch.Item, layout.Ending) error,
) ([]batch.Item, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	workers, err := s.chunkWorkers(ctx, id)
	if err != nil {
		return nil, err
	}
	var items []batch.Item
	for from = max(from, 0); from < b.Items && len(items) < limit; from += itemPage {
		rows, err := s.batches.Items(ctx, id, from, min(itemPage, b.Items-from))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if len(states) > 0 && !slices.Contains(states, statusOf(&rows[i])) || len(items) == limit {
				continue
			}
			item := bareItem(&b, &rows[i], workers)
			if err := result(&item, rows[i].Ending()); err != nil {
				return nil, err
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
	rows, err := s.batches.Items(ctx, id, index, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return s.result(ctx, rows[0].Ending())
}

// chunkWorkers are the workers of a batch's chunks.
func (s *Store) chunkWorkers(ctx context.Context, id string) (map[string]string, error) {
	chunks, err := s.batches.Chunks(ctx, id)
	if err != nil {
		return nil, err
	}
	workers := make(map[string]string, len(chunks))
	for _, c := range chunks {
		workers[c.ID] = string(c.Worker)
	}
	return workers, nil
}

// bareItem is an item without its result.
func bareItem(b *batch.Batch, row *layout.Row, workers map[string]string) batch.Item {
	ending := row.Ending()
	item := batch.Item{
		Index: layout.BatchItemIndex(row.ID), ID: batch.ItemID(&b.Template, row.Spec.Argv), Arguments: row.Spec.Argv,
		Status: statusOf(row), Attempts: row.Attempts.Failed,
		Chunk: row.Attempts.Reason, Worker: workers[row.Attempts.Reason],
		UpdatedAt: time.UnixMilli(cmp.Or(ending.At(), row.Spec.SubmittedAt)).UTC(),
	}
	if e := row.Exception; e != nil {
		for _, w := range e.FailedOn {
			item.FailedOn = append(item.FailedOn, string(w))
		}
	}
	for i := range row.Attempts.Refused[:row.Attempts.Refused.Len()] {
		if w := string(row.Attempts.Refused[i].Worker); !slices.Contains(item.FailedOn, w) {
			item.FailedOn = append(item.FailedOn, w)
		}
	}
	if ending.State == layout.Failed {
		item.Reason = ReasonOf(ending.Failure)
	}
	if ending.State == layout.Delayed {
		item.DueAt = time.UnixMilli(row.Attempts.Due).UTC()
	}
	return item
}

// hasResult reports whether an attempt has ended.
func hasResult(e *layout.Ending) bool {
	return e.Result != nil || e.Failure != nil && e.Failure.Attempt > 0
}

// begin puts the beginnings of what is stored apart in their place: the first piece of each.
func (s *Store) begin(ctx context.Context, e *layout.Ending) (err error) {
	if e.Result != nil {
		r := *e.Result
		if r.Value, err = s.firstPiece(ctx, e.ID, r.Value, r.ValueRef); err == nil {
			r.Stderr, err = s.firstPiece(ctx, e.ID, r.Stderr, r.StderrRef)
		}
		r.ValueRef, r.StderrRef, r.Object = nil, nil, ""
		e.Result = &r
		return err
	}
	f := *e.Failure
	f.Stderr, err = s.firstPiece(ctx, e.ID, f.Stderr, f.StderrRef)
	f.StderrRef, e.Failure = nil, &f
	return err
}

// firstPiece is the beginning of a value, empty if it was removed meanwhile.
func (s *Store) firstPiece(ctx context.Context, id layout.ID, inline []byte, ref *layout.ChunkRef) ([]byte, error) {
	if ref == nil {
		return inline, nil
	}
	piece := make([]byte, min(max(ref.Size, 0), layout.ChunkSize))
	err := results.Of(s.cluster).Open(id, &layout.Result{ValueRef: ref}).ReadAt(ctx, piece, 0)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil, nil
	}
	return piece, err
}

// result is what the last attempt that ended left behind, nil if there was none.
func (s *Store) result(ctx context.Context, e layout.Ending) (*batch.Result, error) {
	if !hasResult(&e) {
		return nil, nil
	}
	if err := results.Of(s.cluster).Load(ctx, &e); err != nil {
		return nil, err
	}
	result := ResultOf(&e)
	return &result, nil
}

// Progress implements batch.Store.
func (s *Store) Progress(ctx context.Context, id string) (batch.Progress, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	counts, err := owners.Of(s.cluster).Counts(ctx, Queue(&b.Template), id)
	if err != nil {
		return nil, err
	}
	open, err := owners.Of(s.cluster).Open(ctx, id)
	if err != nil {
		return nil, err
	}
	again, _, err := owners.Of(s.cluster).Retries(ctx, id, time.Time{})
	if err != nil {
		return nil, err
	}
	running, unfinished := 0, 0
	for _, n := range open {
		running += int(n)
	}
	for state, n := range counts {
		if !state.Terminal() {
			unfinished += int(n)
		}
	}
	waiting := max(0, unfinished-running)
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
		page, behind, err := owners.Of(s.cluster).Held(ctx, id, cursor, itemPage)
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
	_, next, err = owners.Of(s.cluster).Retries(ctx, id, now)
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

package futurestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/internal/signal"
)

// Assign implements batch.Store. It returns fdbmodel.ErrNotFound for a worker
// that is not registered.
func (s *Store) Assign(ctx context.Context, c *batch.Chunk, items []int) ([]int, error) {
	b, err := s.Get(ctx, c.Batch)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(slices.Clone(items), func(index int) bool { return index < 0 || index >= b.Items })
	slices.Sort(items)
	assigned, added, err := s.assign(ctx, b.ID, recordOf(c), slices.Compact(items))
	if added > 0 {
		// Only this says how many; a chunk that says too few misleads people alone.
		made, failed := s.batches.UpdateChunk(ctx, b.ID, c.ID, func(c *layout.BatchChunk) (bool, error) {
			c.Items += added
			c.Status, c.FinishedAt = int(batch.InProgress), 0
			return true, nil
		})
		c.Items, c.Status = made.Items, batch.InProgress
		err = errors.Join(err, failed)
	}
	if added > 0 && b.Status == batch.Created {
		_, failed := s.batches.Update(ctx, b.ID, func(r *layout.BatchRecord) (bool, error) {
			write := batch.Status(r.Status) == batch.Created
			r.Status = int(batch.InProgress)
			return write, nil
		})
		err = errors.Join(err, failed)
	}
	return assigned, translate(err)
}

// assign gives items to a chunk's worker, and returns those that are there then
// and how many were not before.
func (s *Store) assign(ctx context.Context, id string, chunk layout.BatchChunk, items []int) ([]int, int, error) {
	type answer struct {
		there []bool
		added int
		err   error
	}
	parts := slices.Collect(slices.Chunk(items, fdbmodel.MaxAssign))
	answers := make([]answer, len(parts))
	inLanes(len(parts), func(at int) bool {
		ids := make([]layout.ID, len(parts[at]))
		for i, index := range parts[at] {
			ids[i] = layout.BatchItemID(id, index)
		}
		a := &answers[at]
		a.there, a.added, a.err = s.batches.AssignChunk(ctx, id, chunk, ids, isOpen)
		return a.err == nil
	})
	var assigned []int
	var errs []error
	added := 0
	for at, a := range answers {
		added += a.added
		for i := range a.there {
			if a.there[i] && a.err == nil {
				assigned = append(assigned, parts[at][i])
			}
		}
		if a.err != nil && !errors.Is(a.err, fdbmodel.ErrTransition) {
			errs = append(errs, a.err)
		}
	}
	return assigned, added, errors.Join(errs...)
}

// isOpen reports whether items of a batch are given out.
func isOpen(r *layout.BatchRecord) bool {
	return r.Made && !batch.Status(r.Status).Over() && r.CancelledAt == 0
}

// Chunks implements batch.Store.
func (s *Store) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	records, err := s.batches.Chunks(ctx, id)
	if err != nil {
		return nil, err
	}
	chunks := make([]batch.Chunk, len(records))
	for i, r := range records {
		chunks[i] = batch.Chunk{
			ID: r.ID, Batch: id, Worker: string(r.Worker), Status: batch.Status(r.Status), Items: r.Items,
			CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), Peer: r.Peer, Lost: r.Lost, Moved: r.Moved,
		}
		if r.FinishedAt != 0 {
			chunks[i].FinishedAt = time.UnixMilli(r.FinishedAt).UTC()
		}
	}
	return chunks, nil
}

// Release implements batch.Store. Running items stay with the chunk's worker
// while it is registered: a dead worker loses them without this call.
func (s *Store) Release(ctx context.Context, id, chunk string) (int, error) {
	b, err := s.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	c, err := s.batches.UpdateChunk(ctx, id, chunk, func(c *layout.BatchChunk) (bool, error) {
		write := !batch.Status(c.Status).Over()
		if write {
			c.Status, c.FinishedAt = int(batch.Failed), s.cluster.Now().UnixMilli()
		}
		return write, nil
	})
	if err != nil {
		return 0, translate(err)
	}
	released := 0
	for first := 0; first < b.Items; first += itemPage {
		rows, err := s.batches.Items(ctx, id, first, min(itemPage, b.Items-first))
		if err != nil {
			return released, err
		}
		var ids []layout.ID
		for i := range rows {
			if a := &rows[i].Attempts; a.Reason == chunk && a.Assigned == c.Worker && rows[i].State() == layout.Ready {
				ids = append(ids, rows[i].ID)
			}
		}
		outcomes, err := s.cluster.Unassign(ctx, c.Worker, ids)
		for _, o := range outcomes {
			if o == fdbmodel.Applied {
				released++
			}
		}
		if err != nil {
			return released, err
		}
	}
	return released, nil
}

// eachPage calls fn for the ids of all items, some pages at a time.
func (s *Store) eachPage(ctx context.Context, b *batch.Batch, fn func([]layout.ID) error) error {
	pages := (b.Items + itemPage - 1) / itemPage
	errs := make([]error, pages)
	inLanes(pages, func(at int) bool {
		first := at * itemPage
		ids := make([]layout.ID, min(itemPage, b.Items-first))
		for i := range ids {
			ids[i] = layout.BatchItemID(b.ID, first+i)
		}
		errs[at] = fn(ids)
		return errs[at] == nil && ctx.Err() == nil
	})
	return errors.Join(translate(errors.Join(errs...)), ctx.Err())
}

// Cancel implements batch.Store. Items that run are asked to stop. A cancel that
// was cut off is completed by Settle.
func (s *Store) Cancel(ctx context.Context, id, reason string, now time.Time) error {
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	r, err := s.batches.Update(ctx, id, func(r *layout.BatchRecord) (bool, error) {
		if batch.Status(r.Status).Over() {
			return false, fmt.Errorf("batch %s is over: %w", id, batch.ErrState)
		}
		if r.CancelledAt != 0 {
			return false, nil
		}
		r.Reason, r.CancelledAt = reason, now.UnixMilli()
		return true, nil
	})
	if err == nil {
		_, err = s.completeCancel(ctx, &r)
	}
	return translate(err)
}

// completeCancel ends a batch whose cancel has begun. Each item is over, or asked
// to stop for good, before the batch says so. Items that start over once another call has
// completed it stay.
func (s *Store) completeCancel(ctx context.Context, r *layout.BatchRecord) (layout.BatchRecord, error) {
	at := r.CancelledAt
	goesOn := func(r *layout.BatchRecord) bool { return r.CancelledAt == at }
	b, err := batchOf(r)
	if err == nil {
		err = s.eachPage(ctx, &b, func(ids []layout.ID) error {
			return s.batches.Cancel(ctx, b.ID, ids, r.Reason, goesOn)
		})
	}
	if err != nil {
		return *r, err
	}
	return s.batches.Update(ctx, r.ID, func(r *layout.BatchRecord) (bool, error) {
		if !goesOn(r) {
			return false, nil
		}
		r.Status, r.FinishedAt, r.CancelledAt = int(batch.PermanentlyFailed), r.CancelledAt, 0
		return true, nil
	})
}

// Retry implements batch.Store.
func (s *Store) Retry(ctx context.Context, id string) (int, error) {
	b, err := s.settled(ctx, id)
	if err != nil {
		return 0, err
	}
	retried := 0
	for first := 0; first < b.Items; first += itemPage {
		rows, err := s.batches.Items(ctx, id, first, min(itemPage, b.Items-first))
		if err != nil {
			return retried, err
		}
		n, err := s.retry(ctx, id, rows)
		if retried += n; err != nil {
			return retried, translate(err)
		}
	}
	return retried, nil
}

// retry has the failed ones of some items start over, and returns how many did.
func (s *Store) retry(ctx context.Context, id string, rows []layout.Row) (int, error) {
	var ids []layout.ID
	for i := range rows {
		if rows[i].State() == layout.Failed {
			ids = append(ids, rows[i].ID)
		}
	}
	retried := 0
	for part := range slices.Chunk(ids, fdbmodel.MaxAssign) {
		n, err := s.batches.Retry(ctx, id, part, func(r *layout.BatchRecord) error {
			switch {
			case !r.Made:
				return fmt.Errorf("batch %s: %w", id, fdbmodel.ErrNotFound)
			case r.CancelledAt != 0:
				return fmt.Errorf("batch %s is being cancelled: %w; try again once it is over", id, batch.ErrState)
			}
			r.Status, r.Reason, r.FinishedAt = int(batch.InProgress), "", 0
			return nil
		})
		if retried += n; err != nil {
			return retried, err
		}
	}
	return retried, nil
}

// Delete implements batch.Store. It returns batch.ErrState while items of a
// cancelled batch have not stopped. The batch is invisible before its items go: one whose
// removal was cut off is removed by another call, or by Sweep.
func (s *Store) Delete(ctx context.Context, id string) error {
	r, err := s.batches.Get(ctx, id)
	if err == nil && !r.Made && !batches.IsBuried(&r) {
		err = fmt.Errorf("batch %s: %w", id, fdbmodel.ErrNotFound)
	}
	if err != nil {
		return translate(err)
	}
	err = s.batches.Bury(ctx, id, func(r *layout.BatchRecord) error {
		if status := batch.Status(r.Status); !status.Over() {
			return fmt.Errorf("batch %s is %v: %w; cancel it first", id, status, batch.ErrState)
		}
		return nil
	})
	if errors.Is(err, fdbmodel.ErrTransition) {
		return fmt.Errorf("batch %s was cancelled and some of its items still run: %w: try again when they have stopped",
			id, translate(err))
	}
	if err != nil {
		return translate(err)
	}
	return s.drop(ctx, &r)
}

// drop removes a batch that is buried, and whose items are over.
func (s *Store) drop(ctx context.Context, r *layout.BatchRecord) error {
	b := &batch.Batch{ID: r.ID, Items: r.Items}
	err := s.eachPage(ctx, b, func(ids []layout.ID) error {
		_, err := s.cluster.DiscardMany(ctx, ids)
		return err
	})
	if err == nil {
		err = owners.Of(s.cluster).Drop(ctx, r.Queue, r.ID)
	}
	if err == nil {
		err = s.batches.Drop(ctx, r.ID)
	}
	return translate(err)
}

// Sweep implements batch.Store. What a Delete left behind goes at any age.
func (s *Store) Sweep(ctx context.Context, now time.Time, age time.Duration) error {
	var last *layout.BatchRecord
	for {
		page, err := s.batches.Behind(ctx, last, listPage)
		if err != nil || len(page) == 0 {
			return translate(err)
		}
		for i := range page {
			r := &page[i]
			if r.Made || !batches.IsBuried(r) && now.Sub(time.UnixMilli(r.CreatedAt)) < age {
				continue
			}
			if err := s.sweep(ctx, r); err != nil {
				return err
			}
		}
		if last = &page[len(page)-1]; len(page) < listPage {
			return nil
		}
	}
}

// errTakenOver is returned for the remains of a creation that another call goes on with.
var errTakenOver = errors.New("the batch is being created")

// sweep removes the remains of a batch, unless another call makes it by now.
func (s *Store) sweep(ctx context.Context, seen *layout.BatchRecord) error {
	err := s.batches.Bury(ctx, seen.ID, func(r *layout.BatchRecord) error {
		if r.Made || r.Maker != seen.Maker {
			return errTakenOver
		}
		return nil
	})
	if errors.Is(err, errTakenOver) || errors.Is(err, fdbmodel.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = s.eachPage(ctx, &batch.Batch{ID: seen.ID, Items: seen.Items}, func(ids []layout.ID) error {
			_, err := s.cluster.CancelMany(ctx, ids, "the creation of its batch was interrupted")
			return err
		})
	}
	if err != nil {
		return translate(err)
	}
	return s.drop(ctx, seen)
}

// watchWait is the pause after a watch that failed.
const watchWait = time.Second

// Watch implements batch.Store.
func (s *Store) Watch(ctx context.Context, id string) (<-chan struct{}, func(), bool, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, nil, false, err
	}
	watch, err := owners.Of(s.cluster).Watch(ctx, id)
	if err != nil {
		return nil, nil, false, err
	}
	changed, ended := make(chan struct{}, 1), make(chan struct{})
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		for watching.Err() == nil {
			watch = s.rewatch(watching, id, watch, changed)
		}
		if watch != nil {
			watch.Cancel()
		}
	}()
	return changed, func() { cancel(); <-ended }, true, nil
}

// rewatch waits for a watch, rings, and returns the next one: nil if there is
// none for now.
func (s *Store) rewatch(ctx context.Context, id string, watch kv.Watch, changed chan struct{}) kv.Watch {
	if watch != nil {
		select {
		case <-ctx.Done():
			return watch
		case <-watch.Done():
		}
	}
	failed := watch == nil || watch.Err() != nil
	if failed {
		timer := time.NewTimer(watchWait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
	next, err := owners.Of(s.cluster).Watch(ctx, id)
	if err != nil {
		next = nil
	}
	// A change from before the new watch is seen by the caller that is notified.
	signal.Send(changed)
	return next
}

package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
)

// rememberedWorkers is how many workers of failed attempts an item keeps.
const rememberedWorkers = 8

// Assign implements batch.Store.
func (s *Store) Assign(ctx context.Context, c *batch.Chunk, items []int) ([]int, error) {
	r, err := s.locked(ctx, c.Batch)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if r.batch.Status.Over() {
		return nil, nil
	}
	now := milliseconds(time.Now())
	target := r.chunks[c.ID]
	var given []int
	for _, i := range items {
		if i < 0 || i >= len(r.items) {
			continue
		}
		item := &r.items[i]
		switch {
		case item.Status == batch.InProgress && item.Chunk == c.ID:
			given = append(given, i)
		case waits(item):
			if target == nil {
				target = &chunk{Chunk: *c}
				target.Items, target.CreatedAt = 0, milliseconds(c.CreatedAt)
				r.chunks[c.ID] = target
			}
			item.Chunk, item.Worker = c.ID, target.Worker
			r.set(item, batch.InProgress, now)
			target.members = append(target.members, i)
			given = append(given, i)
		}
	}
	if target != nil && target.running > 0 {
		slices.Sort(target.members)
		target.members = slices.Compact(target.members)
		target.Items, target.Status, target.FinishedAt = len(target.members), batch.InProgress, time.Time{}
		r.batch.Status = batch.InProgress
		r.ring()
	}
	slices.Sort(given)
	return slices.Compact(given), nil
}

// Release implements batch.Store.
func (s *Store) Release(ctx context.Context, id, chunkID string) (int, error) {
	r, c, err := s.lockedChunk(ctx, id, chunkID)
	if err != nil {
		return 0, err
	}
	defer r.mu.Unlock()
	now := milliseconds(time.Now())
	running := r.inProgress(c)
	for _, item := range running {
		switch {
		case r.batch.Status == batch.PermanentlyFailed:
			r.fail(item, r.batch.Reason, now)
		case item.Attempts > 0:
			item.DueAt = time.Time{}
			r.set(item, batch.Failed, now)
		default:
			r.set(item, batch.Created, now)
		}
	}
	if c.Status != batch.Done {
		c.Status, c.FinishedAt = batch.Failed, now
	}
	r.ring()
	return len(running), nil
}

func (s *Store) lockedChunk(ctx context.Context, id, chunkID string) (*record, *chunk, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	c := r.chunks[chunkID]
	if c == nil {
		r.mu.Unlock()
		return nil, nil, fmt.Errorf("chunk %s of batch %s: %w", chunkID, id, batch.ErrNotFound)
	}
	return r, c, nil
}

// Complete implements batch.Recorder.
func (s *Store) Complete(ctx context.Context, id, chunkID string, ended []batch.Completion) ([]bool, error) {
	r, c, err := s.lockedChunk(ctx, id, chunkID)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	counted := make([]bool, len(ended))
	for n := range ended {
		i := ended[n].Index
		if i < 0 || i >= len(r.items) || r.items[i].Status != batch.InProgress || r.items[i].Chunk != c.ID {
			continue
		}
		r.complete(&r.items[i], &ended[n], milliseconds(time.Now()))
		counted[n] = true
	}
	if slices.Contains(counted, true) {
		r.ring()
	}
	return counted, nil
}

func (r *record) complete(item *batch.Item, end *batch.Completion, now time.Time) {
	if !end.At.IsZero() {
		now = milliseconds(end.At)
	}
	result := end.Result
	item.Result, item.DueAt = &result, time.Time{}
	if !end.Failed && result.ExitCode == 0 {
		r.set(item, batch.Done, now)
		return
	}
	item.Attempts++
	item.FailedOn = append(slices.Clone(item.FailedOn), item.Worker)
	item.FailedOn = item.FailedOn[max(0, len(item.FailedOn)-rememberedWorkers):]
	reason := cmp.Or(end.Reason, fmt.Sprintf("exit code %d", result.ExitCode))
	switch {
	case end.Permanent || item.Attempts >= r.batch.MaxAttempts:
		r.fail(item, reason, now)
	case r.batch.Status == batch.PermanentlyFailed:
		r.fail(item, r.batch.Reason, now)
	default:
		item.DueAt = milliseconds(end.DueAt)
		r.set(item, batch.Failed, now)
	}
}

// Settle implements batch.Store.
func (s *Store) Settle(ctx context.Context, id string, now time.Time) (batch.Batch, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return batch.Batch{}, err
	}
	defer r.mu.Unlock()
	changed := false
	for _, c := range r.chunks {
		if c.Status == batch.InProgress && c.running == 0 {
			c.Status, c.FinishedAt, changed = batch.Done, milliseconds(now), true
		}
	}
	if !r.batch.Status.Over() && batch.Progress(r.counts).Over(len(r.items)) {
		r.batch.Status, r.batch.Reason, r.batch.FinishedAt = batch.Done, "", milliseconds(now)
		changed = true
	}
	if changed {
		r.ring()
	}
	return r.batch, nil
}

// lockedOpen returns a batch, locked, or ErrState if it is over.
func (s *Store) lockedOpen(ctx context.Context, id string) (*record, error) {
	r, err := s.locked(ctx, id)
	if err == nil && r.batch.Status.Over() {
		err = fmt.Errorf("batch %s is %v: %w", id, r.batch.Status, batch.ErrState)
		r.mu.Unlock()
	}
	return r, err
}

// SetReason implements batch.Store.
func (s *Store) SetReason(ctx context.Context, id, reason string) error {
	r, err := s.lockedOpen(ctx, id)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	if r.batch.Reason != reason {
		r.batch.Reason = reason
		r.ring()
	}
	return nil
}

// Cancel implements batch.Store.
func (s *Store) Cancel(ctx context.Context, id, reason string, now time.Time) error {
	r, err := s.lockedOpen(ctx, id)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	now = milliseconds(now)
	r.batch.Status, r.batch.Reason, r.batch.FinishedAt = batch.PermanentlyFailed, reason, now
	for i := range r.items {
		if item := &r.items[i]; waits(item) {
			r.fail(item, reason, now)
		}
	}
	r.ring()
	return nil
}

// Retry implements batch.Store.
func (s *Store) Retry(ctx context.Context, id string) (int, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return 0, err
	}
	defer r.mu.Unlock()
	n := r.counts[batch.PermanentlyFailed]
	if n == 0 {
		return 0, nil
	}
	now := milliseconds(time.Now())
	r.batch.Status, r.batch.Reason, r.batch.FinishedAt = batch.InProgress, "", time.Time{}
	for i := range r.items {
		if item := &r.items[i]; item.Status == batch.PermanentlyFailed {
			item.Attempts, item.Reason = 0, ""
			r.set(item, batch.Created, now)
		}
	}
	r.ring()
	return n, nil
}

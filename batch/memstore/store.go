// Package memstore keeps batches in memory: for one process, until it ends.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/batch"
)

// Store is a batch.Recorder in memory. Batches stay until they are deleted.
type Store struct {
	mu      sync.RWMutex
	batches map[string]*record
}

var _ batch.Recorder = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{batches: map[string]*record{}} }

func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Create implements batch.Store.
func (s *Store) Create(ctx context.Context, b *batch.Batch, arguments [][]string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("%w: no arguments: a batch needs at least one list of arguments", batch.ErrBadBatch)
	}
	if _, err := b.Template.Encode(); err != nil {
		return err
	}
	r := newRecord(b, arguments, milliseconds(time.Now()))
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batches[b.ID] != nil {
		return fmt.Errorf("batch %s: %w", b.ID, batch.ErrExists)
	}
	s.batches[b.ID] = r
	return nil
}

// locked returns a batch, locked, or ErrNotFound.
func (s *Store) locked(ctx context.Context, id string) (*record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	r := s.batches[id]
	s.mu.RUnlock()
	if r == nil {
		return nil, notFound(id)
	}
	r.mu.Lock()
	if r.deleted {
		r.mu.Unlock()
		return nil, notFound(id)
	}
	return r, nil
}

func notFound(id string) error { return fmt.Errorf("batch %s: %w", id, batch.ErrNotFound) }

// Get implements batch.Store.
func (s *Store) Get(ctx context.Context, id string) (batch.Batch, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return batch.Batch{}, err
	}
	defer r.mu.Unlock()
	return r.batch, nil
}

// List implements batch.Store.
func (s *Store) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	var behind batch.Batch
	if after != "" {
		var err error
		if behind, err = s.Get(ctx, after); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	records := make([]*record, 0, len(s.batches))
	for _, r := range s.batches {
		records = append(records, r)
	}
	s.mu.RUnlock()
	var found []batch.Batch
	for _, r := range records {
		r.mu.Lock()
		b, deleted := r.batch, r.deleted
		r.mu.Unlock()
		if !deleted && (after == "" || inOrder(behind, b) < 0) && (!active || !b.Status.Over()) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, inOrder)
	return found[:min(len(found), max(limit, 0))], nil
}

func inOrder(a, b batch.Batch) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Progress implements batch.Store.
func (s *Store) Progress(ctx context.Context, id string) (batch.Progress, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	progress := batch.Progress{}
	for status, n := range r.counts {
		if n > 0 {
			progress[status] = n
		}
	}
	return progress, nil
}

// Items implements batch.Store.
func (s *Store) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	held := int64(0)
	return s.find(ctx, id, from, limit, states, func(item *batch.Item) {
		if size := item.Result.Size(); held+size > batch.PageBytes {
			item.Result, item.LeftOut = nil, size
		} else {
			held += size
		}
	})
}

// Outline implements batch.Store.
func (s *Store) Outline(ctx context.Context, id string, from, limit, most int, states ...batch.Status,
) ([]batch.Item, error) {
	return s.find(ctx, id, from, limit, states, func(item *batch.Item) {
		item.Result, item.LeftOut = item.Result.Begin(most)
	})
}

// find returns copies of the items of a page, each bounded by bound.
func (s *Store) find(ctx context.Context, id string, from, limit int, states []batch.Status,
	bound func(*batch.Item),
) ([]batch.Item, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var found []batch.Item
	for i := max(from, 0); i < len(r.items) && len(found) < limit; i++ {
		if len(states) == 0 || slices.Contains(states, r.items[i].Status) {
			item := copied(&r.items[i])
			bound(&item)
			found = append(found, item)
		}
	}
	return found, nil
}

// Result implements batch.Store.
func (s *Store) Result(ctx context.Context, id string, index int) (*batch.Result, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if index < 0 || index >= len(r.items) {
		return nil, fmt.Errorf("item %d of batch %s: %w", index, id, batch.ErrNotFound)
	}
	return copied(&r.items[index]).Result, nil
}

// Waiting implements batch.Store.
func (s *Store) Waiting(ctx context.Context, id string, now time.Time, limit int) (
	[]batch.Item, time.Time, error,
) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer r.mu.Unlock()
	items, next := r.waiting(now, limit)
	return items, next, nil
}

// Chunks implements batch.Store.
func (s *Store) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	chunks := make([]batch.Chunk, 0, len(r.chunks))
	for _, c := range r.chunks {
		chunks = append(chunks, c.Chunk)
	}
	return chunks, nil
}

// Delete implements batch.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	r, err := s.locked(ctx, id)
	if err != nil {
		return err
	}
	if !r.batch.Status.Over() {
		r.mu.Unlock()
		return fmt.Errorf("batch %s is %v: %w: cancel it first", id, r.batch.Status, batch.ErrState)
	}
	r.deleted = true
	r.ring()
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.batches, id)
	return nil
}

// Sweep implements batch.Store. A batch in memory exists whole or not at all.
func (s *Store) Sweep(ctx context.Context, _ time.Time, _ time.Duration) error { return ctx.Err() }

// Watch implements batch.Store.
func (s *Store) Watch(ctx context.Context, id string) (<-chan struct{}, func(), bool, error) {
	r, err := s.locked(ctx, id)
	if err != nil {
		return nil, nil, false, err
	}
	defer r.mu.Unlock()
	changed := make(chan struct{}, 1)
	r.watchers[changed] = struct{}{}
	stop := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, changed)
	}
	return changed, stop, true, nil
}

// Describe implements batch.Store.
func (s *Store) Describe() (name string, durable bool) { return "memory", false }

// Close implements batch.Store. The batches are gone.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = map[string]*record{}
	return nil
}

package memstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/signal"
)

// record is a batch with its items and chunks.
type record struct {
	mu       sync.Mutex
	batch    batch.Batch
	items    []batch.Item
	counts   map[batch.Status]int
	chunks   map[string]*chunk
	watchers map[chan struct{}]struct{}
	deleted  bool
	// firstWaiting is at most the index of the first item that waits.
	firstWaiting int
}

// chunk is a chunk with what was given to it.
type chunk struct {
	batch.Chunk
	// members are the indexes of items that were ever part of the chunk, running
	// how many are in progress under it.
	members []int
	running int
}

func newRecord(b *batch.Batch, arguments [][]string, now time.Time) *record {
	r := &record{
		batch: batch.Batch{
			ID: b.ID, Template: b.Template, MaxAttempts: max(b.MaxAttempts, 1), Items: len(arguments),
			Status: batch.Created, CreatedAt: milliseconds(b.CreatedAt),
		},
		items: make([]batch.Item, len(arguments)), counts: map[batch.Status]int{batch.Created: len(arguments)},
		chunks: map[string]*chunk{}, watchers: map[chan struct{}]struct{}{},
	}
	if r.batch.CreatedAt.IsZero() {
		r.batch.CreatedAt = now
	}
	r.batch.Template.Config.Environment = slices.Clone(b.Template.Config.Environment)
	r.batch.Template.Config.Labels = maps.Clone(b.Template.Config.Labels)
	for i, list := range arguments {
		r.items[i] = batch.Item{
			Index: i, ID: batch.ItemID(&b.Template, list), Arguments: slices.Clone(list), Status: batch.Created,
			UpdatedAt: r.batch.CreatedAt,
		}
	}
	return r
}

// copied returns an item that shares nothing that may be written.
func copied(item *batch.Item) batch.Item {
	c := *item
	c.Arguments, c.FailedOn = slices.Clone(item.Arguments), slices.Clone(item.FailedOn)
	if item.Result != nil {
		result := *item.Result
		c.Result = &result
	}
	return c
}

// waits reports whether an item can be given to a worker, now or later.
func waits(item *batch.Item) bool { return item.Status == batch.Created || item.Status == batch.Failed }

// set moves an item to a state.
func (r *record) set(item *batch.Item, status batch.Status, now time.Time) {
	if item.Status == batch.InProgress {
		r.chunks[item.Chunk].running--
	}
	r.counts[item.Status]--
	item.Status, item.UpdatedAt = status, now
	r.counts[status]++
	if status == batch.InProgress {
		r.chunks[item.Chunk].running++
	}
	if waits(item) {
		r.firstWaiting = min(r.firstWaiting, item.Index)
	}
}

// fail makes an item one that has failed for good.
func (r *record) fail(item *batch.Item, reason string, now time.Time) {
	item.Reason, item.DueAt = reason, time.Time{}
	r.set(item, batch.PermanentlyFailed, now)
}

// ring tells the watchers that something changed.
func (r *record) ring() {
	for changed := range r.watchers {
		signal.Send(changed)
	}
}

// waiting returns up to limit items that can be given to a worker, and when
// more become due.
func (r *record) waiting(now time.Time, limit int) (items []batch.Item, next time.Time) {
	for r.firstWaiting < len(r.items) && !waits(&r.items[r.firstWaiting]) {
		r.firstWaiting++
	}
	created, failed := r.counts[batch.Created], r.counts[batch.Failed]
	for i := r.firstWaiting; i < len(r.items) && (failed > 0 || created > 0 && len(items) < limit); i++ {
		item := &r.items[i]
		switch {
		case item.Status == batch.Created:
			created--
		case item.Status != batch.Failed:
			continue
		case item.DueAt.After(now):
			failed--
			if next.IsZero() || item.DueAt.Before(next) {
				next = item.DueAt
			}
			continue
		default:
			failed--
		}
		if len(items) < limit {
			items = append(items, copied(item))
		}
	}
	return items, next
}

// inProgress are the items that are in progress under a chunk.
func (r *record) inProgress(c *chunk) (items []*batch.Item) {
	for _, i := range c.members {
		if item := &r.items[i]; item.Status == batch.InProgress && item.Chunk == c.ID {
			items = append(items, item)
		}
	}
	return items
}

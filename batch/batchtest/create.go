package batchtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func testCreate(f *fixture) {
	want := f.newBatch(7)
	arguments := [][]string{{"one"}, nil, {"--a", "b c", "日本\x00\n$.{}"}}
	require.NoError(f, f.s.Create(f.Context(), want, arguments))

	got := f.get(want.ID)
	require.Equal(f, batch.Batch{
		ID: want.ID, Template: want.Template, MaxAttempts: 7, Items: 3, Status: batch.Created, CreatedAt: got.CreatedAt,
	}, got)
	require.WithinDuration(f, f.now, got.CreatedAt, 0)
	f.requireProgress(want.ID, batch.Progress{batch.Created: 3})
	items := f.items(want.ID)
	require.Len(f, items, 3)
	for i, item := range items {
		require.Equal(f, batch.ItemID(&want.Template, arguments[i]), item.ID)
		require.Len(f, item.Arguments, len(arguments[i]))
		require.Subset(f, item.Arguments, arguments[i])
		require.Equal(f, batch.Created, item.Status)
		require.Empty(f, item.Chunk)
		require.Empty(f, item.Worker)
		require.Empty(f, item.FailedOn)
		require.Empty(f, item.Reason)
		require.Zero(f, item.Attempts)
		require.Nil(f, item.Result)
		require.True(f, item.DueAt.IsZero())
		require.False(f, item.UpdatedAt.IsZero())
	}
	require.Empty(f, f.chunks(want.ID))
	require.Equal(f, batch.Created, f.settle(want.ID).Status)

	one := f.create(1, [][]string{{}})
	require.Equal(f, 1, f.get(one).Items)
	f.requireProgress(one, batch.Progress{batch.Created: 1})
}

// testCreateBoundsTheTemplate has all stores take the same.
func testCreateBoundsTheTemplate(f *fixture) {
	for name, unit := range map[string]string{"text": "x", "HTML": "<&>", "lines": "a\n"} {
		b := f.newBatch(1)
		b.Template.Config.Stdin = ""
		empty, err := b.Template.Encode()
		require.NoError(f, err)
		one, err := json.Marshal(unit)
		require.NoError(f, err)
		if name == "HTML" {
			one = []byte(`"` + unit + `"`)
		}
		room := batch.MaxTemplate - len(empty) - len(`"stdin":"",`)
		times := room / (len(one) - len(`""`))
		b.Template.Config.Stdin = strings.Repeat(unit, times+1)
		err = f.s.Create(f.Context(), b, lists(1))
		require.ErrorIs(f, err, batch.ErrBadBatch, name)
		require.ErrorContains(f, err, fmt.Sprint("at most ", batch.MaxTemplate))
		_, err = f.s.Get(f.Context(), b.ID)
		require.ErrorIs(f, err, batch.ErrNotFound, "nothing was written")

		b.Template.Config.Stdin = strings.Repeat(unit, times)
		require.NoError(f, f.s.Create(f.Context(), b, lists(1)), name)
		require.NoError(f, f.s.SetReason(f.Context(), b.ID, strings.Repeat("r", 8<<10)))
		require.Equal(f, b.Template, f.get(b.ID).Template)
	}
}

func testCreateRefusesAnIDInUse(f *fixture) {
	id := f.create(1, lists(2))
	again := f.newBatch(5)
	again.ID = id
	require.ErrorIs(f, f.s.Create(f.Context(), again, lists(3)), batch.ErrExists)
	require.Equal(f, 1, f.get(id).MaxAttempts)
	f.requireProgress(id, batch.Progress{batch.Created: 2})
}

// testCreateAtOnce has several calls create the same batch.
func testCreateAtOnce(f *fixture) {
	items := 1000
	if f.h.Small {
		items = 200
	}
	b := f.newBatch(5)
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			switch err := f.s.Create(f.Context(), b, lists(items)); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, batch.ErrExists):
				_, err := f.s.Get(f.Context(), b.ID)
				assert.NoError(f, err, "it exists, and is not there")
			default:
				assert.ErrorIs(f, err, batch.ErrBusy)
			}
		})
	}
	wg.Wait()
	require.EqualValues(f, 1, made.Load())
	f.requireProgress(b.ID, batch.Progress{batch.Created: items})
}

func testCreateIsAllOrNothing(f *fixture) {
	const items = 1000
	for _, wait := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, time.Second} {
		b := f.newBatch(1)
		ctx, cancel := context.WithTimeout(f.Context(), wait)
		made := f.s.Create(ctx, b, lists(items))
		cancel()
		// A sweep is for what was interrupted long ago: nothing is written behind it.
		if f.h.Settle != nil {
			f.h.Settle(f.s)
		}
		listed, err := f.s.List(f.Context(), true, "", 100)
		require.NoError(f, err)
		found, err := f.s.Get(f.Context(), b.ID)
		if err == nil {
			require.Equal(f, items, found.Items)
			f.requireProgress(b.ID, batch.Progress{batch.Created: items})
			continue
		}
		require.ErrorIs(f, err, batch.ErrNotFound)
		require.Error(f, made, "a batch that was made is not there")
		for _, other := range listed {
			require.NotEqual(f, b.ID, other.ID)
		}
		require.NoError(f, f.s.Sweep(f.Context(), f.now.Add(time.Hour), time.Minute))
		require.NoError(f, f.s.Create(f.Context(), b, lists(3)))
		f.requireProgress(b.ID, batch.Progress{batch.Created: 3})
	}
	kept := f.create(1, lists(2))
	require.NoError(f, f.s.Sweep(f.Context(), f.now.Add(time.Hour), time.Minute))
	f.requireProgress(kept, batch.Progress{batch.Created: 2})
}

// testCreateGoesOn interrupts the creation of a batch, and repeats it at once.
func testCreateGoesOn(f *fixture) {
	items := 1000
	if f.h.Small {
		items = 200
	}
	for _, wait := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, time.Second} {
		b := f.newBatch(3)
		ctx, cancel := context.WithTimeout(f.Context(), wait)
		_ = f.s.Create(ctx, b, lists(items)) // it may have come to its end
		cancel()
		if _, err := f.s.Get(f.Context(), b.ID); err == nil {
			require.ErrorIs(f, f.s.Create(f.Context(), b, lists(items)), batch.ErrExists)
		} else {
			b.CreatedAt = f.now.Add(time.Minute)
			require.NoError(f, f.s.Create(f.Context(), b, lists(items)))
		}
		f.requireProgress(b.ID, batch.Progress{batch.Created: items})
		require.WithinDuration(f, b.CreatedAt, f.get(b.ID).CreatedAt, 0)
		require.Len(f, f.items(b.ID), items)
	}
}

// testLarge creates a batch of many items and pages through it.
func testLarge(f *fixture) {
	const items, page = 5000, 777
	arguments := lists(items)
	id := f.create(3, arguments)
	require.Equal(f, items, f.progress(id)[batch.Created])
	next := 0
	for next < items {
		found, err := f.s.Items(f.Context(), id, next, page)
		require.NoError(f, err)
		require.Len(f, found, min(page, items-next))
		for _, item := range found {
			require.Equal(f, next, item.Index)
			require.Equal(f, arguments[next], item.Arguments)
			next++
		}
	}
	most := items
	if f.h.Small {
		most = 5
	}
	c := f.assign(id, "w", indexes(0, most)...)
	require.Equal(f, most, f.chunk(c).Items)
	waiting, _ := f.waiting(id, f.now)
	require.Equal(f, indexes(most, items), waiting)
	ended := make([]batch.Completion, most)
	for i := range ended {
		ended[i] = f.succeeds(i)
	}
	f.end(c, ended...)
	progress := f.progress(id)
	require.Equal(f, most, progress[batch.Done])
	require.Equal(f, items-most, progress[batch.Created])
}

// testIdenticalItems checks that items with the same id are kept apart.
func testIdenticalItems(f *fixture) {
	id := f.create(2, [][]string{{"a b"}, {"a", "b"}, {"a b"}, {"a b"}, {"c"}})
	items := f.items(id)
	require.Len(f, items, 5)
	for i := range 4 {
		require.Equal(f, items[0].ID, items[i].ID)
	}
	require.Equal(f, []string{"a b"}, items[0].Arguments)
	require.Equal(f, []string{"a", "b"}, items[1].Arguments)
	c := f.assign(id, "w1", 0, 2)
	other := f.assign(id, "w2", 1, 3, 4)
	f.end(c, f.succeeds(0), f.fails(2))
	f.end(other, f.fails(1), f.succeeds(3), f.succeeds(4))
	items = f.items(id)
	for i, want := range []batch.Status{batch.Done, batch.Failed, batch.Failed, batch.Done, batch.Done} {
		require.Equal(f, want, items[i].Status, "item %d", i)
		require.NotNil(f, items[i].Result)
		if want == batch.Done {
			require.Equal(f, f.succeeds(i).Result, *items[i].Result)
		} else {
			require.Equal(f, f.fails(i).Result, *items[i].Result)
		}
	}
	f.requireProgress(id, batch.Progress{batch.Done: 3, batch.Failed: 2})
}

func testUnknownBatch(f *fixture) {
	ctx, id := f.Context(), uuid.NewString()
	c := f.newChunk(id, "w")
	for name, call := range map[string]func() error{
		"Get":       func() error { _, err := f.s.Get(ctx, id); return err },
		"List":      func() error { _, err := f.s.List(ctx, false, id, 10); return err },
		"Progress":  func() error { _, err := f.s.Progress(ctx, id); return err },
		"Items":     func() error { _, err := f.s.Items(ctx, id, 0, 10); return err },
		"Outline":   func() error { _, err := f.s.Outline(ctx, id, 0, 10, 1); return err },
		"Waiting":   func() error { _, _, err := f.s.Waiting(ctx, id, f.now, 10); return err },
		"Chunks":    func() error { _, err := f.s.Chunks(ctx, id); return err },
		"Assign":    func() error { _, err := f.s.Assign(ctx, &c, []int{0}); return err },
		"Release":   func() error { _, err := f.s.Release(ctx, id, c.ID); return err },
		"Settle":    func() error { _, err := f.s.Settle(ctx, id, f.now); return err },
		"SetReason": func() error { return f.s.SetReason(ctx, id, "why") },
		"Cancel":    func() error { return f.s.Cancel(ctx, id, "why", f.now) },
		"Retry":     func() error { _, err := f.s.Retry(ctx, id); return err },
		"Delete":    func() error { return f.s.Delete(ctx, id) },
		"Watch":     func() error { return watchError(ctx, f.s, id) },
	} {
		require.ErrorIs(f, call(), batch.ErrNotFound, name)
	}
	known := f.create(1, lists(1))
	_, err := f.s.Release(ctx, known, c.ID)
	require.ErrorIs(f, err, batch.ErrNotFound)
	if r, ok := f.s.(batch.Recorder); ok {
		for _, id := range []string{id, known} {
			_, err := r.Complete(ctx, id, c.ID, []batch.Completion{f.succeeds(0)})
			require.ErrorIs(f, err, batch.ErrNotFound)
		}
	}
}

// watchError returns the error of Watch for an unknown batch. A store that can't
// report changes need not look for the batch.
func watchError(ctx context.Context, s batch.Store, id string) error {
	_, stop, ok, err := s.Watch(ctx, id)
	if stop != nil {
		stop()
	}
	if err == nil && !ok {
		return batch.ErrNotFound
	}
	return err
}

package batchtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/batch"
)

// testModel compares a store with a naive one over programs of calls.
func testModel(f *fixture) {
	rapid.Check(f.T, func(t *rapid.T) {
		attempts := rapid.IntRange(1, 3).Draw(t, "attempts")
		most := 8
		if f.h.Small {
			most = 4
		}
		arguments := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a b", ""}), 0, 2), 1, most).
			Draw(t, "arguments")
		b := f.newBatch(attempts)
		m := &machine{
			fixture: f, id: b.ID, model: newNaive(attempts, &b.Template, arguments), added: map[string]bool{},
		}
		require.NoError(t, f.s.Create(f.Context(), b, arguments))
		t.Repeat(map[string]func(*rapid.T){
			"assign": m.assign, "assign more": m.assignMore, "complete": m.complete, "complete late": m.completeLate,
			"release": m.release, "settle": m.settle, "cancel": m.cancel, "retry": m.retry, "reason": m.setReason,
			"waiting": m.waiting, "": m.check,
		})
		m.remove(t)
	})
}

// machine is a batch in a store and in the naive one.
type machine struct {
	*fixture
	id    string
	model *naive
	// added are chunks that got items more than once, maybe some again.
	added map[string]bool
}

// draw draws some indexes of items, some of which may not exist.
func (m *machine) drawItems(t *rapid.T) []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.model.items)), 1, 4, rapid.ID).Draw(t, "items")
}

// drawChunk draws a chunk, and skips the step if there is none.
func (m *machine) drawChunk(t *rapid.T) batch.Chunk {
	if len(m.model.chunks) == 0 {
		t.Skip("no chunk")
	}
	n := rapid.IntRange(0, len(m.model.chunks)-1).Draw(t, "chunk")
	return *m.model.chunks[slices.Sorted(maps.Keys(m.model.chunks))[n]]
}

func (m *machine) assign(t *rapid.T) {
	c := m.newChunk(m.id, rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "worker"))
	// Chunks are drawn in the order of their ids.
	c.ID = fmt.Sprintf("%08d%s", len(m.model.chunks), uuid.NewString()[8:])
	m.assignTo(t, c)
}

func (m *machine) assignMore(t *rapid.T) {
	c := m.drawChunk(t)
	if c.Status != batch.InProgress || len(m.model.running(c.ID)) == 0 {
		t.Skip("the chunk is over")
	}
	m.added[c.ID] = true
	m.assignTo(t, c)
}

func (m *machine) assignTo(t *rapid.T, c batch.Chunk) {
	items := m.drawItems(t)
	want := m.model.assign(c, items)
	got, err := m.s.Assign(m.Context(), &c, items)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
}

func (m *machine) drawEnd(t *rapid.T, index int) batch.Completion {
	end := m.succeeds(index)
	switch rapid.IntRange(0, 4).Draw(t, "end") {
	case 0, 1:
		end = m.fails(index)
		end.DueAt = m.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "due")) * time.Hour)
	case 2:
		end = m.fails(index)
		end.Permanent = true
	}
	end.Result.Stdout = rapid.StringN(0, 5, 20).Draw(t, "stdout")
	return end
}

func (m *machine) complete(t *rapid.T) {
	c := m.drawChunk(t)
	running := m.model.running(c.ID)
	if len(running) == 0 {
		t.Skip("nothing is in progress")
	}
	if m.h.Execute == nil {
		running = running[:rapid.IntRange(1, len(running)).Draw(t, "ended")]
	} else if m.model.status == batch.PermanentlyFailed {
		t.Skip("what was cancelled may end by itself")
	}
	var ended []batch.Completion
	for _, i := range running {
		ended = append(ended, m.drawEnd(t, i))
	}
	m.model.complete(c.ID, ended)
	m.end(c, ended...)
}

// completeLate reports anything for any chunk.
func (m *machine) completeLate(t *rapid.T) {
	if m.h.Execute != nil {
		t.Skip("the store runs its items itself")
	}
	c := m.drawChunk(t)
	var ended []batch.Completion
	for _, i := range m.drawItems(t) {
		ended = append(ended, m.drawEnd(t, i))
	}
	want := m.model.complete(c.ID, ended)
	got, err := m.recorder().Complete(m.Context(), m.id, c.ID, ended)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (m *machine) release(t *rapid.T) {
	c := m.drawChunk(t)
	if m.h.Execute != nil && m.model.status == batch.PermanentlyFailed {
		t.Skip("what was cancelled may end by itself")
	}
	if len(m.model.running(c.ID)) == 0 && c.Status == batch.InProgress {
		t.Skip("done and not settled: one or the other")
	}
	want := m.model.release(c.ID)
	got, err := m.s.Release(m.Context(), m.id, c.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (m *machine) settle(t *rapid.T) {
	m.model.settle()
	b, err := m.s.Settle(m.Context(), m.id, m.now)
	require.NoError(t, err)
	require.Equal(t, m.model.status, b.Status)
	chunks, err := m.s.Chunks(m.Context(), m.id)
	require.NoError(t, err)
	require.Len(t, chunks, len(m.model.chunks))
	for _, c := range chunks {
		want := m.model.chunks[c.ID]
		require.NotNil(t, want)
		require.Equal(t, want.Status, c.Status, "chunk %s", c.ID)
		if !m.added[c.ID] {
			require.Equal(t, want.Items, c.Items, "chunk %s", c.ID)
		}
		require.Equal(t, want.Worker, c.Worker)
	}
}

func (m *machine) cancel(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("most batches go on")
	}
	if m.h.Execute != nil && len(m.model.in(batch.InProgress)) > 0 {
		t.Skip("what was cancelled may end by itself")
	}
	m.sameError(t, m.model.cancel("enough"), m.s.Cancel(m.Context(), m.id, "enough", m.now))
}

func (m *machine) setReason(t *rapid.T) {
	reason := rapid.SampledFrom([]string{"", "no workers", "busy"}).Draw(t, "reason")
	m.sameError(t, m.model.setReason(reason), m.s.SetReason(m.Context(), m.id, reason))
}

func (m *machine) sameError(t *rapid.T, want, got error) {
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.ErrorIs(t, got, want)
}

func (m *machine) retry(t *rapid.T) {
	want := m.model.retry()
	got, err := m.s.Retry(m.Context(), m.id)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (m *machine) waiting(t *rapid.T) {
	// Half an hour away from any time that something is due at.
	now := m.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "hours"))*time.Hour + 30*time.Minute)
	want, wantNext := m.model.waiting(now)
	limit := rapid.IntRange(1, len(m.model.items)).Draw(t, "limit")
	items, next, err := m.s.Waiting(m.Context(), m.id, now, limit)
	require.NoError(t, err)
	require.Len(t, items, min(limit, len(want)))
	for _, item := range items {
		require.Contains(t, want, item.Index)
	}
	require.Equal(t, wantNext.IsZero(), next.IsZero())
	m.requireTime(wantNext, next)
}

// check compares all that is stored.
func (m *machine) check(t *rapid.T) {
	b, err := m.s.Get(m.Context(), m.id)
	require.NoError(t, err)
	require.Equal(t, m.model.status, b.Status)
	require.Equal(t, m.model.reason, b.Reason)
	require.Equal(t, b.Status.Over(), !b.FinishedAt.IsZero())
	items, err := m.s.Items(m.Context(), m.id, 0, batch.MaxItems)
	require.NoError(t, err)
	require.Len(t, items, len(m.model.items))
	progress, err := m.s.Progress(m.Context(), m.id)
	require.NoError(t, err)
	for i := range items {
		require.Equal(t, shown(&m.model.items[i]), shown(&items[i]))
	}
	for _, status := range batch.Statuses() {
		require.Equal(t, len(m.model.in(status)), progress[status], "%v", status)
	}
}

// remove deletes the batch, if need be after it is cancelled.
func (m *machine) remove(t *rapid.T) {
	err := m.s.Delete(m.Context(), m.id)
	if !m.model.status.Over() {
		require.ErrorIs(t, err, batch.ErrState)
		require.NoError(t, m.s.Cancel(m.Context(), m.id, "over", m.now))
		err = m.s.Delete(m.Context(), m.id)
	}
	require.NoError(t, err)
	_, err = m.s.Get(m.Context(), m.id)
	require.True(t, errors.Is(err, batch.ErrNotFound))
}

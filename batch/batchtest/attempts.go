package batchtest

import (
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func testAssign(f *fixture) {
	id := f.create(3, lists(6))
	c := f.newChunk(id, "worker 1")
	require.Equal(f, []int{1, 4}, f.give(&c, []int{4, 1}))
	require.Equal(f, batch.InProgress, f.get(id).Status)
	f.requireProgress(id, batch.Progress{batch.Created: 4, batch.InProgress: 2})
	got := f.chunk(c)
	require.WithinDuration(f, f.now, got.CreatedAt, 0)
	got.CreatedAt = c.CreatedAt
	require.Equal(f, batch.Chunk{
		ID: c.ID, Batch: id, Worker: "worker 1", Status: batch.InProgress, Items: 2, CreatedAt: c.CreatedAt,
	}, got)
	for _, i := range []int{1, 4} {
		item := f.items(id)[i]
		require.Equal(f, c.ID, item.Chunk)
		require.Equal(f, "worker 1", item.Worker)
		require.Zero(f, item.Attempts)
	}
}

// testAssignAgain repeats an assignment, and adds to it.
func testAssignAgain(f *fixture) {
	id := f.create(3, lists(6))
	c := f.assign(id, "w", 0, 1)
	for range 2 {
		require.Equal(f, []int{0, 1}, f.give(&c, []int{0, 1}))
	}
	require.Equal(f, []int{1, 2}, f.give(&c, []int{1, 2, 2}))
	f.requireProgress(id, batch.Progress{batch.Created: 3, batch.InProgress: 3})
	chunks := f.chunks(id)
	require.Len(f, chunks, 1)
	require.Equal(f, 3, chunks[0].Items)
	f.end(c, f.succeeds(0), f.succeeds(1), f.succeeds(2))
	f.requireProgress(id, batch.Progress{batch.Created: 3, batch.Done: 3})
}

func testAssignOnlyWhatWaits(f *fixture) {
	id := f.create(2, lists(5))
	first := f.assign(id, "w", 0, 1, 2)
	failed, lost := f.fails(1), f.fails(2)
	lost.Permanent = true
	f.end(first, f.succeeds(0), failed, lost)
	running := f.assign(id, "w", 3)

	c := f.newChunk(id, "w2")
	require.Empty(f, f.give(&c, []int{0, 2, 3, -1, 5, 1 << 30}))
	require.Len(f, f.chunks(id), 2, "a chunk without items")
	require.Equal(f, []int{1, 4}, f.give(&c, indexes(0, 5)))
	require.Equal(f, running.ID, f.items(id)[3].Chunk)
	require.Equal(f, first.ID, f.items(id)[0].Chunk)

	cancelled := f.create(2, lists(2))
	require.NoError(f, f.s.Cancel(f.Context(), cancelled, "enough", f.now))
	late := f.newChunk(cancelled, "w")
	require.Empty(f, f.give(&late, []int{0, 1}))
	require.Equal(f, batch.PermanentlyFailed, f.get(cancelled).Status)
}

// testTwoHeadsAssign lets heads assign the same items: each is won once.
func testTwoHeadsAssign(f *fixture) {
	const items, heads = 30, 4
	id := f.create(3, lists(items))
	handles := f.handles(heads)
	won := make([][]int, heads)
	chunks := make([]batch.Chunk, heads)
	var wg sync.WaitGroup
	for h := range heads {
		chunks[h] = f.newChunk(id, "w")
		wg.Go(func() {
			given, err := handles[h].Assign(f.Context(), &chunks[h], indexes(0, items))
			if err != nil {
				f.Error(err)
			}
			won[h] = given
		})
	}
	wg.Wait()
	by := map[int]string{}
	for h, given := range won {
		for _, i := range given {
			require.Empty(f, by[i], "item %d was won twice", i)
			by[i] = chunks[h].ID
		}
	}
	require.Len(f, by, items)
	for _, item := range f.items(id) {
		require.Equal(f, by[item.Index], item.Chunk)
	}
	f.requireProgress(id, batch.Progress{batch.InProgress: items})
}

// handles are n stores on the same data, every other one a second handle.
func (f *fixture) handles(n int) []batch.Store {
	f.Helper()
	other := f.s
	if f.h.Reopen != nil {
		other = f.h.Reopen(f.T, f.s)
	}
	all := make([]batch.Store, n)
	for i := range all {
		all[i] = []batch.Store{f.s, other}[i%2]
	}
	return all
}

func testComplete(f *fixture) {
	id := f.create(3, lists(3))
	c := f.assign(id, "w1", 0, 1)
	f.end(c, f.succeeds(0), f.fails(1))
	items := f.items(id)
	require.Equal(f, batch.Done, items[0].Status)
	require.Equal(f, f.succeeds(0).Result, *items[0].Result)
	require.Zero(f, items[0].Attempts)
	require.Equal(f, c.ID, items[0].Chunk)
	require.Equal(f, batch.Failed, items[1].Status)
	require.Equal(f, f.fails(1).Result, *items[1].Result)
	require.Equal(f, 1, items[1].Attempts)
	require.Equal(f, []string{"w1"}, items[1].FailedOn)
	require.Equal(f, c.ID, items[1].Chunk)
	require.Empty(f, items[1].Reason)

	again := f.assign(id, "w2", 1)
	items = f.items(id)
	require.Equal(f, batch.InProgress, items[1].Status)
	require.Equal(f, again.ID, items[1].Chunk)
	require.Equal(f, "w2", items[1].Worker)
	require.Equal(f, 1, items[1].Attempts)
	require.Equal(f, f.fails(1).Result, *items[1].Result, "the last attempt that ended")
	f.end(again, f.succeeds(1))
	items = f.items(id)
	require.Equal(f, batch.Done, items[1].Status)
	require.Equal(f, f.succeeds(1).Result, *items[1].Result)
	require.Equal(f, 1, items[1].Attempts)
	f.requireProgress(id, batch.Progress{batch.Done: 2, batch.Created: 1})

	// An exit code that is not marked as a failure is one, and a failure without an
	// exit code as well.
	if f.h.Execute == nil {
		c = f.assign(id, "w1", 2)
		f.end(c, batch.Completion{Index: 2, Result: batch.Result{ExitCode: 1}})
		require.Equal(f, batch.Failed, f.items(id)[2].Status)
		c = f.assign(id, "w1", 2)
		f.end(c, batch.Completion{Index: 2, Failed: true, Reason: "timed out"})
		require.Equal(f, batch.Failed, f.items(id)[2].Status)
		require.Equal(f, 2, f.items(id)[2].Attempts)
	}
}

// testOutputs checks that outputs come back as they are.
func testOutputs(f *fixture) {
	large := 3 << 20
	outputs := []batch.Result{
		{Stdout: "", Stderr: "", ExitCode: 0},
		{
			Stdout: "日本\x00\r\n$a.b", Stderr: "{\"a\":1}", ExitCode: 0,
			Usage: batch.Usage{WallClock: time.Second, CPUUser: 7, CPUSys: 1 << 40, MemoryMaxKB: 4 << 20},
		},
		{Stdout: "not utf-8: \xff\x00\xfe", Stderr: "\x80", ExitCode: 255},
		{Stdout: "", Stderr: "only err", ExitCode: -1, Usage: batch.Usage{CPUUser: 1, MemoryMaxKB: 1}},
		{Stdout: strings.Repeat("long ", large/5), ExitCode: 0},
	}
	id := f.create(1, lists(len(outputs)))
	c := f.assign(id, "w", indexes(0, len(outputs))...)
	var ended []batch.Completion
	for i, result := range outputs {
		end := batch.Completion{Index: i, Result: result, At: f.now, Failed: result.ExitCode != 0}
		if end.Failed {
			end.Reason = "failed"
		}
		ended = append(ended, end)
	}
	f.end(c, ended...)
	for i, item := range f.items(id) {
		want := batch.Done
		if outputs[i].ExitCode != 0 {
			want = batch.PermanentlyFailed
			require.NotEmpty(f, item.Reason)
		}
		require.Equal(f, want, item.Status, "item %d", i)
		require.NotNil(f, item.Result)
		require.Equal(f, outputs[i].ExitCode, item.Result.ExitCode)
		require.Equal(f, outputs[i].Usage, item.Result.Usage)
		require.True(f, outputs[i].Stdout == item.Result.Stdout, "stdout of item %d", i)
		require.True(f, outputs[i].Stderr == item.Result.Stderr, "stderr of item %d", i)
	}
}

func testAttempts(f *fixture) {
	for _, limit := range []int{1, 2, 10} {
		id := f.create(limit, lists(1))
		for attempt := 1; attempt <= limit; attempt++ {
			require.Equal(f, attempt-1, f.items(id)[0].Attempts)
			waiting, _ := f.waiting(id, f.now.Add(time.Hour))
			require.Equal(f, []int{0}, waiting)
			f.end(f.assign(id, "w", 0), f.fails(0))
		}
		item := f.items(id)[0]
		require.Equal(f, batch.PermanentlyFailed, item.Status)
		require.Equal(f, limit, item.Attempts)
		require.NotEmpty(f, item.Reason)
		require.NotEmpty(f, item.FailedOn)
		require.Equal(f, f.fails(0).Result, *item.Result)
		waiting, next := f.waiting(id, f.now.Add(time.Hour))
		require.Empty(f, waiting)
		require.True(f, next.IsZero())
		require.Equal(f, batch.Done, f.settle(id).Status)
	}
}

func testPermanent(f *fixture) {
	id := f.create(10, lists(1))
	end := f.fails(0)
	end.Permanent, end.Reason = true, "the module is not valid"
	f.end(f.assign(id, "w", 0), end)
	item := f.items(id)[0]
	require.Equal(f, batch.PermanentlyFailed, item.Status)
	require.Equal(f, 1, item.Attempts)
	require.Contains(f, item.Reason, "the module is not valid")
	require.Equal(f, end.Result, *item.Result)
}

// testStaleCompletions reports what does not count.
func testStaleCompletions(f *fixture) {
	r := f.recorder()
	id := f.create(3, lists(4))
	report := func(c batch.Chunk, ended ...batch.Completion) []bool {
		f.Helper()
		counted, err := r.Complete(f.Context(), id, c.ID, ended)
		require.NoError(f, err)
		return counted
	}
	first := f.assign(id, "w1", 0, 1)
	require.Equal(f, []bool{true, true}, report(first, f.succeeds(0), f.fails(1)))
	want := f.items(id)

	other := f.succeeds(0)
	other.Result.Stdout = "another"
	require.Equal(f, []bool{false, false, false, false, false, false},
		report(first, other, f.fails(0), f.fails(1), f.succeeds(1), f.succeeds(2), f.succeeds(99)))
	require.Equal(f, []bool{false}, report(first, batch.Completion{Index: -1}))
	require.Empty(f, report(first))
	require.Equal(f, want, f.items(id))

	second := f.assign(id, "w2", 1, 2, 3)
	require.Equal(f, []bool{false, false}, report(first, f.succeeds(1), f.fails(2)))
	_, err := r.Complete(f.Context(), id, f.newChunk(id, "w").ID, []batch.Completion{f.succeeds(1)})
	require.ErrorIs(f, err, batch.ErrNotFound)
	require.Equal(f, []bool{true, false, true}, report(second, f.succeeds(1), f.succeeds(1), f.fails(2)))
	require.Equal(f, 1, f.release(second))
	require.Equal(f, []bool{false}, report(second, f.succeeds(3)))
	require.Zero(f, f.items(id)[3].Attempts)
	f.requireProgress(id, batch.Progress{batch.Done: 2, batch.Failed: 1, batch.Created: 1})
}

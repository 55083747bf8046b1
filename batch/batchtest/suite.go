// Package batchtest is the suite that every batch.Store passes.
package batchtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// Harness is a store under test.
type Harness struct {
	// Open returns an empty store, which the test's end closes.
	Open func(t *testing.T) batch.Store
	// Reopen returns a second handle on the data of a store, as another process
	// has one. Nil for a store that only one process can use.
	Reopen func(t *testing.T, s batch.Store) batch.Store
	// Execute runs attempts of items that are in progress under a chunk so that
	// they end as given, and returns when they have. The items are all that the
	// chunk has in progress. Nil for a batch.Recorder, which learns of them by Complete.
	Execute func(t *testing.T, s batch.Store, c batch.Chunk, ended []batch.Completion)
	// Settle returns once what calls have begun whose contexts ended is written, or
	// never will be. Nil for a store whose calls leave nothing under way.
	Settle func(s batch.Store)
	// Small is set for a store whose server is slow: the parts that are large
	// are smaller.
	Small bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, part := range []struct {
		name string
		run  func(*fixture)
	}{
		{"Create", testCreate}, {"CreateRefusesAnIDInUse", testCreateRefusesAnIDInUse}, {"CreateAtOnce", testCreateAtOnce},
		{"CreateIsAllOrNothing", testCreateIsAllOrNothing}, {"CreateBoundsTheTemplate", testCreateBoundsTheTemplate},
		{"CreateGoesOn", testCreateGoesOn}, {"Large", testLarge},
		{"IdenticalItems", testIdenticalItems}, {"UnknownBatch", testUnknownBatch}, {"List", testList},
		{"Items", testItems}, {"LargeResults", testLargeResults}, {"Outlines", testOutlines},
		{"Waiting", testWaiting}, {"Reason", testReason}, {"Watch", testWatch},
		{"SecondHandle", testSecondHandle}, {"Describe", testDescribe}, {"CancelledContext", testCancelledContext},
		{"Assign", testAssign}, {"AssignAgain", testAssignAgain}, {"AssignOnlyWhatWaits", testAssignOnlyWhatWaits},
		{"TwoHeadsAssign", testTwoHeadsAssign}, {"Chunks", testChunks}, {"Complete", testComplete}, {"Outputs", testOutputs},
		{"Attempts", testAttempts}, {"Permanent", testPermanent}, {"StaleCompletions", testStaleCompletions},
		{"Release", testRelease}, {"ReleaseKeepsAttempts", testReleaseKeepsAttempts}, {"Settle", testSettle},
		{"SettleWaitsForFailedItems", testSettleWaitsForFailedItems},
		{"Cancel", testCancel}, {"CancelInProgress", testCancelInProgress}, {"Retry", testRetry},
		{"RetryBesideASettle", testRetryBesideASettle},
		{"RetryCancelled", testRetryCancelled}, {"Delete", testDelete}, {"Heads", testHeads}, {"Model", testModel},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(newFixture(t, h))
		})
	}
}

// fixture is a store in a test.
type fixture struct {
	*testing.T
	h   Harness
	s   batch.Store
	now time.Time
}

func newFixture(t *testing.T, h Harness) *fixture {
	return &fixture{T: t, h: h, s: h.Open(t), now: time.Now().UTC().Truncate(time.Millisecond)}
}

// recorder returns the store as a batch.Recorder. A store that runs its items
// skips the test.
func (f *fixture) recorder() batch.Recorder {
	r, ok := f.s.(batch.Recorder)
	if !ok {
		f.Skip("the store runs its items itself")
	}
	return r
}

// lists are n different lists of arguments.
func lists(n int) [][]string {
	arguments := make([][]string, n)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprintf("https://example.com/page/%d", i)}
	}
	return arguments
}

// indexes are the numbers from, from+1, … below to.
func indexes(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// create creates a batch.
func (f *fixture) create(attempts int, arguments [][]string) string {
	f.Helper()
	b := f.newBatch(attempts)
	require.NoError(f, f.s.Create(f.Context(), b, arguments))
	return b.ID
}

func (f *fixture) newBatch(attempts int) *batch.Batch {
	return &batch.Batch{
		ID: uuid.NewString(), MaxAttempts: attempts, CreatedAt: f.now,
		Template: batch.Template{
			FunctionID: "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q", Method: "echo.wasm",
			Config: batch.Config{
				Nodes: 4, Stdin: "in", Environment: []batch.EnvVar{{Name: "A", Value: "b=c"}}, Timeout: 30, Concurrency: 2,
				RatePerHost: 2.5, RunTime: 1500, Memory: 1 << 20, Labels: map[string]string{"zone": "a", "arch": "arm64"},
				Entry: "main",
			},
		},
	}
}

func (f *fixture) newChunk(id, worker string) batch.Chunk {
	return batch.Chunk{
		ID: uuid.NewString(), Batch: id, Worker: worker, Status: batch.InProgress, CreatedAt: f.now,
	}
}

// assign gives items that all wait to a worker.
func (f *fixture) assign(id, worker string, items ...int) batch.Chunk {
	f.Helper()
	c := f.newChunk(id, worker)
	require.Equal(f, slices.Sorted(slices.Values(items)), f.give(&c, items))
	return c
}

// give asks for items for a chunk, and returns those that it has then.
func (f *fixture) give(c *batch.Chunk, items []int) []int {
	f.Helper()
	given, err := f.s.Assign(f.Context(), c, items)
	require.NoError(f, err)
	return given
}

// release gives the items of a chunk back, and returns how many there were.
func (f *fixture) release(c batch.Chunk) int {
	f.Helper()
	n, err := f.s.Release(f.Context(), c.Batch, c.ID)
	require.NoError(f, err)
	return n
}

func (f *fixture) retry(id string) int {
	f.Helper()
	n, err := f.s.Retry(f.Context(), id)
	require.NoError(f, err)
	return n
}

func (f *fixture) progress(id string) batch.Progress {
	f.Helper()
	p, err := f.s.Progress(f.Context(), id)
	require.NoError(f, err)
	return p
}

func (f *fixture) chunks(id string) []batch.Chunk {
	f.Helper()
	chunks, err := f.s.Chunks(f.Context(), id)
	require.NoError(f, err)
	return chunks
}

// end makes attempts of a chunk's items end, which all are in progress there.
func (f *fixture) end(c batch.Chunk, ended ...batch.Completion) {
	f.Helper()
	if f.h.Execute != nil {
		f.h.Execute(f.T, f.s, c, ended)
		return
	}
	counted, err := f.recorder().Complete(f.Context(), c.Batch, c.ID, ended)
	require.NoError(f, err)
	require.Equal(f, slices.Repeat([]bool{true}, len(ended)), counted)
}

// succeeds is an attempt that ends well.
func (f *fixture) succeeds(index int) batch.Completion {
	return batch.Completion{Index: index, Result: batch.Result{Stdout: fmt.Sprint("out ", index)}, At: f.now}
}

// fails is an attempt that ends with an exit code, the next may begin at once.
func (f *fixture) fails(index int) batch.Completion {
	return batch.Completion{
		Index: index, Result: batch.Result{Stdout: "some", Stderr: fmt.Sprint("err ", index), ExitCode: 3},
		Failed: true, Reason: "exit code 3", DueAt: f.now, At: f.now,
	}
}

func (f *fixture) get(id string) batch.Batch {
	f.Helper()
	b, err := f.s.Get(f.Context(), id)
	require.NoError(f, err)
	return b
}

// items returns all items of a batch.
func (f *fixture) items(id string) []batch.Item {
	f.Helper()
	items, err := f.s.Items(f.Context(), id, 0, batch.MaxItems)
	require.NoError(f, err)
	for i := range items {
		require.Equal(f, i, items[i].Index)
	}
	return items
}

// requireProgress checks the counts, and that the items' states agree.
func (f *fixture) requireProgress(id string, want batch.Progress) {
	f.Helper()
	got := f.progress(id)
	counted := batch.Progress{}
	for _, item := range f.items(id) {
		counted[item.Status]++
	}
	for _, status := range batch.Statuses() {
		require.Equal(f, want[status], got[status], "progress: %v", status)
		require.Equal(f, want[status], counted[status], "items: %v", status)
	}
}

// waiting returns the indexes of the items that wait, in order.
func (f *fixture) waiting(id string, now time.Time) (found []int, next time.Time) {
	f.Helper()
	items, next, err := f.s.Waiting(f.Context(), id, now, batch.MaxItems)
	require.NoError(f, err)
	for _, item := range items {
		found = append(found, item.Index)
	}
	slices.Sort(found)
	return found, next
}

func (f *fixture) settle(id string) batch.Batch {
	f.Helper()
	b, err := f.s.Settle(f.Context(), id, f.now)
	require.NoError(f, err)
	return b
}

// chunk returns a chunk of a batch.
func (f *fixture) chunk(c batch.Chunk) batch.Chunk {
	f.Helper()
	chunks := f.chunks(c.Batch)
	at := slices.IndexFunc(chunks, func(other batch.Chunk) bool { return other.ID == c.ID })
	require.GreaterOrEqual(f, at, 0, "chunk %s is missing", c.ID)
	return chunks[at]
}

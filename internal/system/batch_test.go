package system

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// head runs a head of batches that are kept as futures, until the test ends.
func (p *plant) head() *head.Head {
	cluster := p.client.Cluster()
	h := head.New(head.Options{
		Store: futurestore.New(cluster, futurestore.Options{}), Dispatcher: head.NewCluster(cluster),
		BootDelay: time.Millisecond, Look: 20 * time.Millisecond,
	})
	storetest.Background(p.t, h.Run)
	return h
}

// awaitBatch looks at a batch until done.
func (p *plant) awaitBatch(h *head.Head, id string, done func(batch.Batch, batch.Progress) bool) batch.Batch {
	var b batch.Batch
	require.Eventually(p.t, func() bool {
		var err error
		b, err = h.Store().Get(p.ctx, id)
		require.NoError(p.t, err)
		progress, err := h.Store().Progress(p.ctx, id)
		require.NoError(p.t, err)
		return done(b, progress)
	}, time.Minute, 5*time.Millisecond)
	return b
}

// TestCancelOfABatchThatWaitsForItsPace cancels a batch of modules that has a
// timeout and a slow pace: its items are cancelled, and its worker goes on.
func TestCancelOfABatchThatWaitsForItsPace(t *testing.T) {
	t.Parallel()
	p := newPlant(t, "memory:")
	p.start(workers.Options{Slots: 4, Modules: p.modules(wasm.Config{PoolSize: 1})},
		map[string]workers.Function{"echo": echo})
	h := p.head()
	_, err := modules.Of(p.client.Cluster()).Put(p.ctx, assemble("wasi_snapshot_preview1", "fd_write"), "nothing")
	require.NoError(t, err)
	arguments := make([][]string, 8)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprintf("http://example.com/%d", i)}
	}
	made, _, err := h.Submit(p.ctx, batch.Request{
		Template: batch.Template{FunctionID: "nothing", Config: batch.Config{
			Timeout: 30, Concurrency: 3, RatePerHost: 0.001,
		}},
		Arguments: arguments,
	})
	require.NoError(t, err)
	p.awaitBatch(h, made.ID, func(_ batch.Batch, progress batch.Progress) bool {
		return progress[batch.Done] == 1 && progress[batch.InProgress] > 0
	})
	require.NoError(t, h.Cancel(p.ctx, made.ID, "enough"))
	b := p.awaitBatch(h, made.ID, func(b batch.Batch, progress batch.Progress) bool {
		return progress.Over(len(arguments))
	})
	require.Equal(t, batch.PermanentlyFailed, b.Status)
	require.Equal(t, "enough", b.Reason)
	items, err := h.Store().Items(p.ctx, made.ID, 0, len(arguments), batch.PermanentlyFailed)
	require.NoError(t, err)
	require.Len(t, items, len(arguments)-1)
	f, err := p.client.Submit(p.ctx, futures.Task{Function: "go:echo", Args: []byte("still there")})
	require.NoError(t, err)
	r, err := f.Await(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "still there", string(r.Value))
	p.check()
}

// TestBatchOverATypedFunction runs a batch whose items are calls of a Go function
// that takes its list of arguments.
func TestBatchOverATypedFunction(t *testing.T) {
	t.Parallel()
	p := newPlant(t, "memory:")
	join := futures.Define[[]string, map[string]int]("join")
	count := futures.Define[int, int]("count")
	name, run := join.Bind(func(_ context.Context, words []string) (map[string]int, error) {
		return map[string]int{strings.Join(words, "+"): len(words)}, nil
	})
	other, refuse := count.Bind(func(_ context.Context, n int) (int, error) { return n, nil })
	p.start(workers.Options{Slots: 4}, map[string]workers.Function{name: run, other: refuse})
	h := p.head()
	submit := func(function string) batch.Batch {
		made, _, err := h.Submit(p.ctx, batch.Request{
			Template:  batch.Template{FunctionID: "go:" + function, Config: batch.Config{Concurrency: 4}},
			Arguments: [][]string{{"a"}, {"b", "c"}, {}}, MaxAttempts: 3,
		})
		require.NoError(t, err)
		return p.awaitBatch(h, made.ID, func(b batch.Batch, _ batch.Progress) bool { return b.Status.Over() })
	}
	items, err := h.Store().Items(p.ctx, submit("join").ID, 0, 3)
	require.NoError(t, err)
	require.Len(t, items, 3)
	for i, want := range []string{`{"a":1}`, `{"b+c":2}`, `{"":0}`} {
		require.Equal(t, batch.Done, items[i].Status, items[i].Reason)
		require.JSONEq(t, want, items[i].Result.Stdout)
	}

	items, err = h.Store().Items(p.ctx, submit("count").ID, 0, 3)
	require.NoError(t, err)
	for _, item := range items {
		require.Equal(t, batch.PermanentlyFailed, item.Status)
		require.Equal(t, 1, item.Attempts, "no further attempt could decode them")
		require.Contains(t, item.Reason, "arguments of go:count")
	}
}

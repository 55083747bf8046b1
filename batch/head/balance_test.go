package head_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// gated is a worker whose items wait for a gate.
type gated struct {
	*workers.Worker
	gate  chan struct{}
	began chan string
}

// workGated runs a worker that tells what it begins, and waits for open with it.
func (b *bed) workGated(slots int) *gated {
	g := &gated{gate: make(chan struct{}), began: make(chan string, 100)}
	var err error
	g.Worker, err = workers.FromCluster(b.cluster, workers.Options{Slots: slots})
	require.NoError(b, err)
	require.NoError(b, g.Register("run", func(ctx context.Context, args []byte) ([]byte, error) {
		g.began <- string(args)
		b.mu.Lock()
		b.runs[string(args)] = append(b.runs[string(args)], "once")
		b.mu.Unlock()
		select {
		case <-g.gate:
			return args, nil
		case <-ctx.Done():
			return nil, errors.New("stopped")
		}
	}))
	storetest.Background(b, g.Run)
	<-g.Ready()
	return g
}

// counting counts what a head does to learn where items may go.
type counting struct {
	head.Dispatcher
	calls atomic.Int64
}

func (c *counting) RollCall(ctx context.Context, t *batch.Template) ([]head.Candidate, error) {
	c.calls.Add(1)
	return c.Dispatcher.RollCall(ctx, t)
}

// countingMover is a store that counts.
type countingMover struct {
	batch.Mover
	settled, asked atomic.Int64
}

func (c *countingMover) SettleOpen(ctx context.Context, id string, now time.Time) (batch.Batch, []batch.Load, error) {
	c.settled.Add(1)
	return c.Mover.SettleOpen(ctx, id, now)
}

func (c *countingMover) Move(ctx context.Context, from string, to *batch.Chunk, most int) (int, error) {
	c.asked.Add(1)
	return c.Mover.Move(ctx, from, to, most)
}

// eachMover runs a test on the store that moves items, with a head that does so at once.
func eachMover(t *testing.T, test func(*bed, *counting, *countingMover)) {
	eachStore(t, func(b *bed) {
		mover, ok := b.store.(batch.Mover)
		if !ok {
			return
		}
		calls, moves := &counting{Dispatcher: b.options.Dispatcher}, &countingMover{Mover: mover}
		b.options.Dispatcher, b.options.Store, b.options.MoveAfter = calls, moves, time.Millisecond
		test(b, calls, moves)
	})
}

// TestAWorkerThatComesLateGetsItems has a worker run one item after the other while others
// wait, and then a second one come.
func TestAWorkerThatComesLateGetsItems(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{-1, 2} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			eachMover(t, func(b *bed, _ *counting, _ *countingMover) {
				first := b.workGated(1)
				b.start()
				request := batch.Request{Template: template(nodes), Arguments: numbered("go", 9)}
				request.Template.Config.Concurrency = 1
				made := b.submit(request)
				<-first.began
				second := b.workGated(1)
				<-second.began // while the first item of the first worker runs
				third := b.workGated(1)
				if nodes < 0 {
					<-third.began
				}
				for _, g := range []*gated{first, second, third} {
					close(g.gate)
				}
				require.Equal(b, batch.Done, b.await(made.ID, over).Status)
				for _, item := range b.items(made.ID) {
					require.Equal(b, batch.Done, item.Status)
					require.Equal(b, 0, item.Attempts)
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				require.Len(b, b.runs, 9)
				for key, times := range b.runs {
					require.Len(b, times, 1, key)
				}
				chunks, err := b.store.Chunks(b.Context(), made.ID)
				require.NoError(b, err)
				items, moved, by := 0, 0, map[string]bool{}
				for _, c := range chunks {
					items, moved, by[c.Worker] = items+c.Items, moved+c.Moved, true
					require.Equal(b, batch.Done, c.Status)
					require.Zero(b, c.Lost)
				}
				require.Equal(b, 9, items, "each counts once")
				require.Positive(b, moved)
				require.True(b, by[string(first.ID())] && by[string(second.ID())])
			})
		})
	}
}

// TestAFoundBatchForAllBeginsWithWhoIsThere has a head start on a batch that asks for all workers
// there are: those that come after it get items too.
func TestAFoundBatchForAllBeginsWithWhoIsThere(t *testing.T) {
	t.Parallel()
	eachMover(t, func(b *bed, _ *counting, _ *countingMover) {
		first := b.workGated(1)
		made, _, err := head.New(b.options).Submit(b.Context(), batch.Request{
			Template: template(-1), Arguments: numbered("go", 9),
		})
		require.NoError(b, err)
		b.options.BootDelay = time.Hour
		b.start()
		<-first.began
		second := b.workGated(1)
		<-second.began
		close(first.gate)
		close(second.gate)
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
	})
}

// TestNothingIsReadWhereNothingCanMove has a batch that asks for one worker, which has items
// that it has not begun.
func TestNothingIsReadWhereNothingCanMove(t *testing.T) {
	t.Parallel()
	eachMover(t, func(b *bed, calls *counting, moves *countingMover) {
		first := b.workGated(2)
		b.start()
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("go", 9)})
		<-first.began
		b.workGated(1)
		before, settled := calls.calls.Load(), moves.settled.Load()
		require.Eventually(b, func() bool { return moves.settled.Load() > settled+20 }, time.Minute, time.Millisecond)
		require.Equal(b, before, calls.calls.Load())
		require.Zero(b, moves.asked.Load())
		close(first.gate)
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
	})
}

// TestTheChunkOfALostWorkerFails has a worker die that runs an item and has others, and ends
// one.
func TestTheChunkOfALostWorkerFails(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.start()
		doomed, err := b.cluster.Register(b.Context(), layout.WorkerInfo{
			Functions: []string{"go:run"}, Capacity: layout.Resources{Slots: 4},
		})
		require.NoError(b, err)
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("go", 6)})
		var claimed []fdbmodel.ClaimedFuture
		require.Eventually(b, func() bool {
			answer, err := doomed.Claim(b.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.NoError(b, err)
			claimed = append(claimed, answer.Futures...)
			return len(claimed) >= 2
		}, time.Minute, time.Millisecond)
		_, err = doomed.Finish(b.Context(), []fdbmodel.Completion{{Future: &claimed[0], Result: &layout.Result{}}})
		require.NoError(b, err)
		survivor := b.work(workers.Options{Slots: 4})
		b.forceReap(doomed.ID())
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
		var chunks []batch.Chunk
		require.Eventually(b, func() bool {
			chunks, err = b.store.Chunks(b.Context(), made.ID)
			require.NoError(b, err)
			return !slices.ContainsFunc(chunks, func(c batch.Chunk) bool { return c.Status == batch.InProgress })
		}, time.Minute, time.Millisecond)
		for _, c := range chunks {
			want := map[string]batch.Status{
				string(doomed.ID()): batch.Failed, string(survivor.ID()): batch.Done,
			}[c.Worker]
			require.Equal(b, want, c.Status, "%+v", c)
			require.False(b, c.FinishedAt.IsZero())
		}
		if _, ok := b.store.(batch.Mover); ok {
			at := slices.IndexFunc(chunks, func(c batch.Chunk) bool { return c.Worker == string(doomed.ID()) })
			require.Equal(b, 6, chunks[at].Items)
			require.Equal(b, 5, chunks[at].Lost, "it ended one")
		}
	})
}

// forceReap declares a worker dead that does not beat, and takes back what it has.
func (b *bed) forceReap(id layout.WorkerID) {
	_, err := b.cluster.ForceReap(b.Context(), id)
	require.NoError(b, err)
}

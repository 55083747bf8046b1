package workers

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// progressStore counts the transactions that write progress.
type progressStore struct {
	kv.Database
	began atomic.Int64
	fails atomic.Bool
}

// Begin implements kv.Database.
func (s *progressStore) Begin(o kv.Options) kv.Tx {
	tx := s.Database.Begin(o)
	if o.Tag != "futura-progress" {
		return tx
	}
	s.began.Add(1)
	if s.fails.Load() {
		return failedCommit{tx}
	}
	return tx
}

// failedCommit is a transaction that can't commit.
type failedCommit struct{ kv.Tx }

var errNoCommit = errors.New("no commit today")

// Commit implements kv.Tx.
func (failedCommit) Commit(context.Context) (kv.Committed, error) { return kv.Committed{}, errNoCommit }

func progressBed(t *testing.T) (*bed, *progressStore) {
	store := &progressStore{Database: storetest.New(t)}
	return bedOn(t, store, layout.Config{}, clock.NewVirtual(epoch)), store
}

// reported is what readers see of a future's progress.
func (b *bed) reported(id layout.ID) *layout.ProgressRecord {
	row := b.row(id)
	return row.Reported()
}

// check requires that the cluster is sound.
func (b *bed) check() {
	report, err := audit.Check(b.ctx, b.cluster, audit.Options{})
	require.NoError(b.t, err)
	require.Empty(b.t, report.Problems)
}

// TestProgressIsSeen while the function runs, at most once a second for all functions
// of a worker together, and the last one always.
func TestProgressIsSeen(t *testing.T) {
	t.Parallel()
	b, store := progressBed(t)
	const functions, steps = 20, 1000
	next, ends := make(chan struct{}), newBlocker(false)
	b.start(Options{Slots: functions}, map[string]Function{"import": func(ctx context.Context, _ []byte) ([]byte, error) {
		for i := range int64(steps) {
			require.NoError(t, Progress(ctx, i+1, steps, strings.Repeat("x", 1000)))
		}
		next <- struct{}{}
		if err := Progress(ctx, steps, steps, "almost"); err != nil {
			return nil, err
		}
		value, err := ends.run(ctx, nil)
		return value, errors.Join(err, Progress(ctx, steps, steps, "done"))
	}})
	ids := b.many(functions, "go:import")
	for range functions {
		b.await("the loops", func() bool {
			select {
			case <-next:
				return true
			default:
				return false
			}
		})
	}
	for _, id := range ids {
		b.await("its progress", func() bool {
			p := b.reported(id)
			return p != nil && p.Done == steps && p.Text == "almost"
		})
	}
	most := int64(b.clock.Now().Sub(epoch)/progressEvery) + 2
	require.LessOrEqual(t, store.began.Load(), most, "%d functions have told %d steps each", functions, steps)
	began, closed := store.began.Load(), b.clock.Now()
	close(ends.end)
	b.awaitOver(ids...)
	most = began + int64(b.clock.Now().Sub(closed)/progressEvery) + 1
	for _, id := range ids {
		require.Equal(t, "done", b.reported(id).Text)
	}
	require.LessOrEqual(t, store.began.Load(), most, "the end takes it along")
	b.check()
}

// TestProgressOfAFailure is that of the attempt that failed last, and goes with a
// discard.
func TestProgressOfAFailure(t *testing.T) {
	t.Parallel()
	b, _ := progressBed(t)
	b.start(Options{Slots: 1}, map[string]Function{"import": func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := InfoFrom(ctx)
		if info.Attempt == 1 {
			require.NoError(t, Progress(ctx, 7, 0, "row 7"))
		}
		require.Error(t, Progress(ctx, -1, 0, ""))
		return nil, errors.New("no such table")
	}})
	id := b.one("go:import", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 })
	b.await("the first failure", func() bool { return b.row(id).Exception != nil })
	if stateOf(b, id) == layout.Delayed {
		require.Equal(t, int64(7), b.reported(id).Done)
	}
	b.awaitOver(id)
	require.Nil(t, b.reported(id), "the second attempt has told nothing")
	row := b.row(id)
	past := row.PastAttempts()
	require.Len(t, past, 2)
	require.NotZero(t, past[0].StartedAt)
	require.GreaterOrEqual(t, past[0].At, past[0].StartedAt)
	require.NoError(t, b.cluster.Discard(b.ctx, id))
	b.check()
}

// TestProgressThatCanNotBeWritten is written with the end, and does not disturb the
// function.
func TestProgressThatCanNotBeWritten(t *testing.T) {
	t.Parallel()
	b, store := progressBed(t)
	store.fails.Store(true)
	ends := newBlocker(false)
	b.start(Options{Slots: 1}, map[string]Function{"import": func(ctx context.Context, args []byte) ([]byte, error) {
		require.NoError(t, Progress(ctx, 1, 2, ""))
		return ends.run(ctx, args)
	}})
	id := b.one("go:import")
	b.begins(ends)
	b.await("two attempts", func() bool { return store.began.Load() > 1 })
	require.Nil(t, b.reported(id))
	close(ends.end)
	b.awaitOver(id)
	require.Equal(t, int64(1), b.reported(id).Done)
}

// TestProgressOfOneThatWasDeclaredDead is not written, and that of the next attempt is.
func TestProgressOfOneThatWasDeclaredDead(t *testing.T) {
	t.Parallel()
	b, _ := progressBed(t)
	var hand seam.Worker
	first, tell := newBlocker(false), make(chan struct{})
	functions := map[string]Function{"import": func(ctx context.Context, args []byte) ([]byte, error) {
		if _, err := first.run(ctx, args); err != nil {
			return nil, err
		}
		<-tell
		return nil, Progress(ctx, 1, 1, "late")
	}}
	one := b.start(Options{Slots: 1, Seam: &hand}, functions)
	id := b.one("go:import")
	b.begins(first)
	hand.Freeze()
	one.Pause()
	b.declareDead(one.ID())
	second := newBlocker(false)
	b.start(Options{Slots: 1}, map[string]Function{"import": func(ctx context.Context, args []byte) ([]byte, error) {
		require.NoError(t, Progress(ctx, 5, 9, "on time"))
		return second.run(ctx, args)
	}})
	b.begins(second)
	b.await("its progress", func() bool { return b.reported(id) != nil })
	close(first.end)
	close(tell)
	hand.Thaw()
	b.await("the end of the first", func() bool { return one.Stats().Running == 0 })
	require.Equal(t, "on time", b.reported(id).Text)
	close(second.end)
	b.awaitOver(id)
	b.check()
}

// TestProgressElsewhere is an error.
func TestProgressElsewhere(t *testing.T) {
	t.Parallel()
	require.Error(t, Progress(context.Background(), 1, 2, ""))
}

// TestProgressOfAManualWorker is written in its function, once a second at most.
func TestProgressOfAManualWorker(t *testing.T) {
	t.Parallel()
	b, store := progressBed(t)
	hand := &seam.Worker{Manual: true}
	w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: hand})
	require.NoError(t, err)
	var id layout.ID
	require.NoError(t, w.Register("import", func(ctx context.Context, _ []byte) ([]byte, error) {
		for i := range int64(10) {
			require.NoError(t, Progress(ctx, i, 9, ""))
			require.Equal(t, i/5*5, b.reported(id).Done)
			b.clock.Advance(200 * time.Millisecond)
		}
		return nil, nil
	}))
	id = b.one("go:import")
	for stateOf(b, id) != layout.Realized {
		_, err := hand.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
	}
	require.Equal(t, int64(9), b.reported(id).Done)
	require.Equal(t, int64(2), store.began.Load())
}

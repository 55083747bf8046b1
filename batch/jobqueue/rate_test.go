package jobqueue_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// pace are the moments at which each block of jobs was done.
type pace struct {
	size  int
	at    []time.Time
	spent []time.Duration // of processor time, by this process
}

// pass notes that all jobs up to an index are done.
func (b *pace) pass(index int) {
	for len(b.at)*b.size <= index {
		b.at, b.spent = append(b.at, time.Now()), append(b.spent, processorTime())
	}
}

// requireFlat requires that the second half of ten blocks takes about as much processor
// time as the first: wall time depends on what else the machine does. Short runs are too
// short for that.
func (b *pace) requireFlat(t *testing.T) {
	for i := 1; i < len(b.at); i++ {
		took, spent := b.at[i].Sub(b.at[i-1]), b.spent[i]-b.spent[i-1]
		t.Logf("block %d: %.0f jobs/s, %.2f µs of processor time each", i, float64(b.size)/took.Seconds(),
			float64(spent.Microseconds())/float64(b.size))
	}
	require.Len(t, b.at, 11)
	first, second := b.spent[5]-b.spent[0], b.spent[10]-b.spent[5]
	if long {
		require.Less(t, second, 3*first/2, "jobs cost more and more")
	}
}

// TestManyJobsBehindASlowOne has the first of very many jobs last until the others
// have come as far as they may. It is not parallel, because it measures memory.
func TestManyJobsBehindASlowOne(t *testing.T) {
	const ahead = 5000
	n := 50_000
	if long {
		n = 1_000_000
	}
	ctx := context.Background()
	cluster := openCluster(t, modeltest.OpenMemory(t))
	in, out := newLog[int](t, cluster, "in"), newLog[int](t, cluster, "out")
	for at := 0; at < n; at += 1000 {
		jobs := make([]int, 1000)
		for i := range jobs {
			jobs[i] = at + i + 1
		}
		_, err := in.Append(ctx, jobs...)
		require.NoError(t, err)
	}
	var begun atomic.Int64
	slow, stuck, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	marks := pace{size: n / 10}
	handle := func(_ context.Context, job jobqueue.Job[int], o *jobqueue.Output) error {
		if begun.Add(1) == ahead {
			close(stuck)
		}
		if job.Value == 1 {
			<-slow
		}
		return out.Emit(o, job.Value)
	}
	o := jobqueue.Options{MaxProcessing: 64, MaxSearchAhead: ahead, OnAdvance: func(processed uint64) {
		marks.pass(int(processed))
		if processed == uint64(n) {
			close(over)
		}
	}}
	s, err := jobqueue.NewStage(cluster, in, "stage", handle, jobqueue.StageOptions{Options: o})
	require.NoError(t, err)
	before := heap()
	require.NoError(t, s.Start())
	<-stuck
	grown := heap() - before
	require.Equal(t, ahead, s.Size())
	require.EqualValues(t, ahead, begun.Load(), "no more are started")
	require.Zero(t, s.LastProcessedIndex())
	require.Less(t, grown, int64(16<<20))
	t.Logf("%d jobs behind the first take %d bytes each", ahead, grown/ahead)
	marks.pass(0)
	close(slow)
	<-over
	require.EqualValues(t, n, begun.Load(), "each is run once")
	marks.requireFlat(t)
	require.NoError(t, s.Stop(ctx))
	head, err := out.Head(ctx)
	require.NoError(t, err)
	require.EqualValues(t, n, head)
	for _, index := range []int{1, n / 2, n} {
		job, err := out.AtIndex(ctx, uint64(index))
		require.NoError(t, err)
		require.Equal(t, index, job)
	}
}

// TestManyJobsBehindASlowOneWithoutABound shows what MaxSearchAhead bounds.
func TestManyJobsBehindASlowOneWithoutABound(t *testing.T) {
	n := 200_000
	if long {
		n = 1_000_000
	}
	var jobs source
	jobs.push(n)
	var begun atomic.Int64
	marks := pace{size: n / 10}
	marks.pass(0)
	slow, all, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	worker := jobqueue.WorkerFunc[uint64](func(_ context.Context, job jobqueue.Job[uint64]) error {
		if now := begun.Add(1); now%int64(n/10) == 0 {
			marks.pass(int(now)) // by one goroutine at a time: it takes long until the next block
			if now == int64(n) {
				close(all)
			}
		}
		if job.Index == 1 {
			<-slow
		}
		return nil
	})
	c, err := jobqueue.New(&jobs, &progress{}, worker, jobqueue.Options{MaxProcessing: 64,
		OnAdvance: func(processed uint64) {
			if processed == uint64(n) {
				close(over)
			}
		}})
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background()))
	<-all
	marks.requireFlat(t)
	require.Equal(t, n, c.Size())
	close(slow)
	<-over
	require.Zero(t, c.Size())
	require.NoError(t, c.Stop(context.Background()))
}

// numbers are jobs that are their indexes, up to one. It keeps nothing.
type numbers uint64

func (n numbers) AtIndex(_ context.Context, index uint64) (uint64, error) {
	if index > uint64(n) {
		return 0, jobqueue.ErrNoJob
	}
	return index, nil
}

func (n numbers) Head(context.Context) (uint64, error) { return uint64(n), nil }

// TestMemoryOfManyJobs measures what a consumer takes behind a slow job, and at each
// tenth after it: it grows no more. It is not parallel, because it measures memory.
func TestMemoryOfManyJobs(t *testing.T) {
	const ahead = 5000
	n := 100_000
	if long {
		n = 1_000_000
	}
	var begun atomic.Int64
	slow, stuck, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	worker := jobqueue.WorkerFunc[uint64](func(_ context.Context, job jobqueue.Job[uint64]) error {
		if begun.Add(1) == ahead {
			close(stuck)
		}
		if job.Index == 1 {
			<-slow
		}
		return nil
	})
	var taken []int64
	c, err := jobqueue.New(numbers(n), &progress{}, worker, jobqueue.Options{MaxProcessing: 64, MaxSearchAhead: ahead,
		OnAdvance: func(processed uint64) {
			for uint64((len(taken)+1)*n/10) <= processed {
				taken = append(taken, heap())
			}
			if processed == uint64(n) {
				close(over)
			}
		}})
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background()))
	<-stuck
	behind := heap()
	close(slow)
	<-over
	t.Logf("behind the first: %d bytes, at each tenth: %d", behind, taken)
	require.Len(t, taken, 10)
	for _, bytes := range taken {
		require.Less(t, bytes, behind+1<<20)
	}
	require.NoError(t, c.Stop(context.Background()))
}

// BenchmarkConsumer processes jobs that take no time, from memory.
func BenchmarkConsumer(b *testing.B) {
	var jobs source
	jobs.push(b.N)
	over := make(chan struct{})
	worker := jobqueue.WorkerFunc[uint64](func(context.Context, jobqueue.Job[uint64]) error { return nil })
	c, err := jobqueue.New(&jobs, &progress{}, worker, jobqueue.Options{MaxProcessing: 64,
		OnAdvance: func(processed uint64) {
			if processed == uint64(b.N) {
				close(over)
			}
		}})
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, c.Start(context.Background()))
	<-over
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	require.NoError(b, c.Stop(context.Background()))
}

// BenchmarkStage passes jobs from one log to the next, on disk with syncs and in
// memory.
func BenchmarkStage(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkStage(b, openBenchStore(b, "")) })
	b.Run("disk", func(b *testing.B) { benchmarkStage(b, openBenchStore(b, b.TempDir())) })
}

func openBenchStore(b *testing.B, dir string) kv.Database {
	if dir == "" {
		db := embedded.OpenMemory(embedded.Options{})
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		return db
	}
	db, err := embedded.Open(context.Background(), dir, embedded.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return db
}

func benchmarkStage(b *testing.B, db kv.Database) {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	require.NoError(b, err)
	in, err := jobqueue.NewLog(cluster, "in", jobqueue.LogOptions[int]{})
	require.NoError(b, err)
	out, err := jobqueue.NewLog(cluster, "out", jobqueue.LogOptions[int]{})
	require.NoError(b, err)
	jobs := make([]int, 1000)
	for at := 0; at < b.N; at += len(jobs) {
		_, err := in.Append(ctx, jobs[:min(len(jobs), b.N-at)]...)
		require.NoError(b, err)
	}
	over := make(chan struct{})
	handle := func(_ context.Context, job jobqueue.Job[int], o *jobqueue.Output) error {
		return out.Emit(o, job.Value)
	}
	s, err := jobqueue.NewStage(cluster, in, "stage", handle, jobqueue.StageOptions{Options: jobqueue.Options{
		MaxProcessing: 64, MaxSearchAhead: 10_000, OnAdvance: func(processed uint64) {
			if processed == uint64(b.N) {
				close(over)
			}
		}}})
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, s.Start())
	<-over
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	require.NoError(b, s.Stop(ctx))
	in.Close()
	out.Close()
}

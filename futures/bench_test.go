package futures_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// BenchmarkNotices delivers the ends of 200,000 awaited futures to one client.
// All of them are in its mailbox, where each value has the notices of one
// Finish.
func BenchmarkNotices(b *testing.B) {
	const n = 200_000
	ctx := context.Background()
	db := storetest.New(b)
	defer db.Close()
	var delivering time.Duration
	for range b.N {
		var manual seam.Client
		c, err := futures.New(ctx, db, futures.Options{Seam: &manual})
		require.NoError(b, err)
		fs := make([]*futures.Future, 0, n)
		reg, err := c.Cluster().Register(ctx, layout.WorkerInfo{
			Functions: []string{"go:upper"}, Capacity: layout.Resources{Slots: 64},
		})
		require.NoError(b, err)
		tasks := make([]futures.Task, 1000)
		for i := range tasks {
			tasks[i] = futures.Task{Function: "go:upper"}
		}
		for len(fs) < n {
			some, err := c.SubmitMany(ctx, tasks)
			require.NoError(b, err)
			fs = append(fs, some...)
		}
		e := &executor{reg, echo}
		waited := make(chan error)
		go func() {
			_, err := c.AwaitAll(ctx, fs)
			waited <- err
		}()
		for ran := 0; ran < n; {
			ran += e.batch(b)
		}
		start := time.Now()
		for next := start; !next.After(start); {
			next, err = manual.Step(ctx, start)
			require.NoError(b, err)
		}
		require.NoError(b, <-waited)
		delivering += time.Since(start)
		require.NoError(b, c.Close(ctx))
	}
	b.ReportMetric(float64(n*b.N)/delivering.Seconds(), "notices/s")
}

// BenchmarkAwaited reports the memory that a client needs for an awaited
// future: the handle, its entry, and its share of an AwaitAll.
func BenchmarkAwaited(b *testing.B) {
	const n = 200_000
	ctx := context.Background()
	db := storetest.New(b)
	defer db.Close()
	errDriven := errors.New("driven")
	driven := uint64(0)
	c, err := futures.New(ctx, db, futures.Options{Seam: &seam.Client{Drive: func(context.Context) error {
		driven = heap()
		return errDriven
	}}})
	require.NoError(b, err)
	defer c.Close(ctx)
	var used uint64
	for range b.N {
		before := heap()
		fs := make([]*futures.Future, n)
		for i := range fs {
			fs[i] = c.Future(futures.ID{byte(i), byte(i >> 8), byte(i >> 16)})
		}
		_, err := c.AwaitAll(ctx, fs)
		require.ErrorIs(b, err, errDriven)
		runtime.KeepAlive(fs)
		used = driven - before
	}
	b.ReportMetric(float64(used)/n, "B/future")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

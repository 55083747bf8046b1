package jobqueue_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/internal/storetest"
)

// TestPipelineOnAStore passes jobs from log to log in real time, on FoundationDB where
// the tests run on that. The stages are woken by the store.
func TestPipelineOnAStore(t *testing.T) {
	t.Parallel()
	const n = 300
	ctx := context.Background()
	cluster := openCluster(t, storetest.New(t))
	in, out := newLog[int](t, cluster, "in"), newLog[int](t, cluster, "out")
	over := make(chan struct{})
	first, err := jobqueue.NewStage(cluster, in, "first",
		func(_ context.Context, job jobqueue.Job[int], o *jobqueue.Output) error {
			return out.Emit(o, job.Value)
		},
		jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 8}})
	require.NoError(t, err)
	var got []int
	second, err := jobqueue.NewStage(cluster, out, "second",
		func(_ context.Context, job jobqueue.Job[int], _ *jobqueue.Output) error {
			got = append(got, job.Value)
			return nil
		}, jobqueue.StageOptions{Options: jobqueue.Options{OnAdvance: func(processed uint64) {
			if processed == n {
				close(over)
			}
		}}})
	require.NoError(t, err)
	require.NoError(t, first.Start())
	require.NoError(t, second.Start())
	<-first.Ready()
	<-second.Ready()
	for i := range n / 3 {
		_, err := in.Append(ctx, 3*i+1, 3*i+2, 3*i+3)
		require.NoError(t, err)
	}
	<-over
	require.NoError(t, first.Stop(ctx))
	require.NoError(t, second.Stop(ctx))
	require.Equal(t, upTo(n), got)
	w := &world{T: t, ctx: ctx, cluster: cluster}
	w.audit()
}

// TestAnAppendKeepsNoMemoryOfItsCaller has the bytes of a job change once an append has returned that the store has yet
// to take.
func TestAnAppendKeepsNoMemoryOfItsCaller(t *testing.T) {
	t.Parallel()
	store := storetest.NewSilent(storetest.New(t))
	log := newLog[[]byte](t, openCluster(t, store), "in")
	ctx, cancel := context.WithCancel(t.Context())
	job := []byte("first")
	store.Leave()
	ended := make(chan error, 1)
	go func() {
		_, err := log.Append(ctx, job)
		ended <- err
	}()
	<-store.Asked()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	copy(job, "other")
	store.Return()
	_, err := log.Append(t.Context(), []byte("second"))
	require.NoError(t, err)
	got, err := log.AtIndex(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "first", string(got))
}

// TestAnAppendThatNobodyWaitsForIsNotBegun has appends end with their contexts while the store does not answer the one
// before them: they neither pile up nor come later.
func TestAnAppendThatNobodyWaitsForIsNotBegun(t *testing.T) {
	t.Parallel()
	store := storetest.NewSilent(storetest.New(t))
	log := newLog[string](t, openCluster(t, store), "in")
	store.Leave()
	first := make(chan error, 1)
	go func() {
		_, err := log.Append(t.Context(), "first")
		first <- err
	}()
	<-store.Asked()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		_, err := log.Append(ctx, "given up")
		require.ErrorIs(t, err, context.Canceled)
	}
	store.Return()
	require.NoError(t, <-first)
	at, err := log.Append(t.Context(), "second")
	require.NoError(t, err)
	require.EqualValues(t, 2, at)
}

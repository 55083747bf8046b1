package head_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/internal/bubble"
)

// contended is a store in which another call creates each batch, from other lists if it has some, and takes a
// time, or for ever if that is negative.
type contended struct {
	batch.Recorder
	takes  time.Duration
	others [][]string
	asked  atomic.Int32 // calls of Get
}

func (s *contended) Get(ctx context.Context, id string) (batch.Batch, error) {
	s.asked.Add(1)
	return s.Recorder.Get(ctx, id)
}

func (s *contended) Create(ctx context.Context, b *batch.Batch, arguments [][]string) error {
	if s.others != nil {
		arguments = s.others
	}
	if s.takes >= 0 {
		time.AfterFunc(s.takes, func() { _ = s.Recorder.Create(context.WithoutCancel(ctx), b, arguments) })
	}
	return batch.ErrBusy
}

// submit submits a request with a key to a head that runs until ctx ends, and returns how long that took.
func (s *contended) submit(ctx, run context.Context, t *testing.T) (time.Duration, error) {
	s.Recorder = memstore.New()
	h := head.New(head.Options{Store: s, Dispatcher: reach{&outage{}}})
	ended := make(chan error, 1)
	run, stop := context.WithCancel(run)
	go func() { ended <- h.Run(run) }()
	synctest.Wait()
	begun := time.Now()
	b, existed, err := h.Submit(ctx, batch.Request{
		Template: batch.Template{FunctionID: "f"}, Arguments: [][]string{{"a"}, {"b"}}, Key: "k",
	})
	took := time.Since(begun)
	if err == nil {
		require.True(t, existed)
		require.Equal(t, 2, b.Items)
	}
	stop()
	require.NoError(t, <-ended)
	return took, err
}

func TestARequestWaitsForTheSameOne(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := &contended{takes: 20 * time.Second}
		took, err := s.submit(t.Context(), t.Context(), t)
		require.NoError(t, err)
		require.InDelta(t, 20, took.Seconds(), 1)
		require.Less(t, s.asked.Load(), int32(40), "it looks once a second")

		_, err = (&contended{others: [][]string{{"a"}, {"c"}}}).submit(t.Context(), t.Context(), t)
		require.ErrorIs(t, err, batch.ErrExists)
	})
}

func TestARequestDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		never := contended{takes: -1}
		took, err := never.submit(t.Context(), t.Context(), t)
		require.ErrorIs(t, err, batch.ErrBusy)
		require.Equal(t, time.Minute, took)

		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		took, err = never.submit(soon, t.Context(), t)
		require.ErrorIs(t, err, batch.ErrBusy)
		require.Equal(t, 5*time.Second, took)

		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, leave)
		_, err = never.submit(gone, t.Context(), t)
		require.ErrorIs(t, err, context.Canceled)

		stopped, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		took, err = never.submit(t.Context(), stopped, t)
		require.ErrorIs(t, err, batch.ErrBusy, "the head stops")
		require.Equal(t, 5*time.Second, took)
	})
}

// sealed fails where results are read.
type sealed struct{ batch.Recorder }

func (sealed) Items(context.Context, string, int, int, ...batch.Status) ([]batch.Item, error) {
	return nil, errors.New("results are read")
}

// TestARepeatedRequestReadsNoResults repeats the request of a batch, and one that differs in its last list.
func TestARepeatedRequestReadsNoResults(t *testing.T) {
	t.Parallel()
	h := head.New(head.Options{Store: sealed{memstore.New()}, Dispatcher: reach{&outage{}}})
	arguments := make([][]string, 501)
	r := batch.Request{Template: batch.Template{FunctionID: "f"}, Arguments: arguments, Key: "k"}
	first, existed, err := h.Submit(t.Context(), r)
	require.NoError(t, err)
	require.False(t, existed)
	again, existed, err := h.Submit(t.Context(), r)
	require.NoError(t, err)
	require.True(t, existed)
	require.Equal(t, first.ID, again.ID)
	r.Arguments = append(slices.Clone(arguments[:500]), []string{"other"})
	_, _, err = h.Submit(t.Context(), r)
	require.ErrorIs(t, err, batch.ErrExists)
}

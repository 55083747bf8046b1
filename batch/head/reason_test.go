package head_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/internal/bubble"
)

// endless is a dispatcher whose workers don't end.
type endless struct{ reach }

func (endless) Run(ctx context.Context, _ head.Order, _ func(context.Context, []batch.Completion) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestTheReasonOfAnotherHeadEnds has a head give out a batch that waited for workers under a head before it.
func TestTheReasonOfAnotherHeadEnds(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "b", 1, 2)
		require.NoError(t, store.SetReason(t.Context(), "b", "0 of 1 workers are running"))
		runHead(t, time.Minute, store, endless{reach{&outage{Recorder: store}}})
		requireStatus(t, store, "b", batch.InProgress)
		got, err := store.Get(t.Context(), "b")
		require.NoError(t, err)
		require.Empty(t, got.Reason)
		require.NoError(t, store.Close(t.Context()))
	})
}

// littered is a store whose remains can't be removed.
type littered struct{ *memstore.Store }

func (littered) Sweep(context.Context, time.Time, time.Duration) error { return errOutage }

// TestWhatCantBeSweptKeepsNoBatchBack has a head find a batch beside what it can't remove.
func TestWhatCantBeSweptKeepsNoBatchBack(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "b", 1, 2)
		runHead(t, 2*time.Minute, littered{store}, reach{&outage{Recorder: store}})
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestAnEmptyListIsTheSameAsNone repeats a request whose empty lists the store returns as none.
func TestAnEmptyListIsTheSameAsNone(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.start()
		r := batch.Request{Template: template(1), Arguments: numbered("go", 1), Key: "k"}
		r.Template.Config.Environment, r.Template.Config.Labels = []batch.EnvVar{}, map[string]string{}
		made := b.submit(r)
		for _, empty := range []bool{true, false} {
			if !empty {
				r.Template.Config.Environment, r.Template.Config.Labels = nil, nil
			}
			again, existed, err := b.head.Submit(b.Context(), r)
			require.NoError(b, err)
			require.True(b, existed)
			require.Equal(b, made.ID, again.ID)
		}
		r.Template.Config.Stdin = "other"
		_, _, err := b.head.Submit(b.Context(), r)
		require.ErrorIs(b, err, batch.ErrExists)
	})
}

// TestARepeatedRequestDrivesABatchThatNoHeadDoes has a head make a batch and end, and its client repeat the request
// to another one.
func TestARepeatedRequestDrivesABatchThatNoHeadDoes(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		o := head.Options{Store: store, Dispatcher: reach{&outage{Recorder: store}}}
		r := batch.Request{Template: batch.Template{FunctionID: "f"}, Arguments: numbered("a", 2), Key: "k"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		other, ended := head.New(o), make(chan error, 1)
		go func() { ended <- other.Run(ctx) }()
		synctest.Wait()
		made, _, err := head.New(o).Submit(t.Context(), r)
		require.NoError(t, err)
		again, existed, err := other.Submit(t.Context(), r)
		require.NoError(t, err)
		require.True(t, existed)
		require.Equal(t, made.ID, again.ID)
		require.NoError(t, <-ended)
		requireStatus(t, store, made.ID, batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

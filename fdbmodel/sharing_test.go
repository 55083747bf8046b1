package fdbmodel_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/internal/storetest"
)

// TestTwoClustersOnOneStore uses the same ids and functions in both.
func TestTwoClustersOnOneStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	one, err := fdbmodel.Open(ctx, db, "one", fdbmodel.Options{Config: layout.Config{Shards: 16}})
	require.NoError(t, err)
	two, err := fdbmodel.Open(ctx, db, "one-more", fdbmodel.Options{Config: layout.Config{Shards: 16}})
	require.NoError(t, err)
	ids, err := one.DrawIDs(20)
	require.NoError(t, err)
	var subs []fdbmodel.Submission
	for _, id := range ids {
		subs = append(subs, fdbmodel.Submission{ID: id, Spec: layout.Spec{Function: "go:f", Session: "s"}})
	}
	for _, c := range []*fdbmodel.Cluster{one, two} {
		_, err := c.Submit(ctx, subs) // which finds its own futures if its commit had an unknown result
		require.NoError(t, err)
		counts, err := c.Counts(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(len(ids)), counts.Total(layout.Ready))
	}
	w, err := one.Register(ctx, layout.WorkerInfo{ID: "same", Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: 50}})
	require.NoError(t, err)
	answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 50}, Max: 50})
	require.NoError(t, err)
	require.Len(t, answer.Futures, len(ids))
	for i := range answer.Futures {
		_, err := w.Finish(ctx, []fdbmodel.Completion{{Future: &answer.Futures[i], Result: &layout.Result{}}})
		require.NoError(t, err)
	}
	counts, err := two.Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(len(ids)), counts.Total(layout.Ready))
	require.Equal(t, int64(0), counts.Total(layout.Realized))
	members, err := two.Workers(ctx)
	require.NoError(t, err)
	require.Empty(t, members)
	notices, watch, err := mailbox.Open(two, "s").Listen(ctx)
	require.NoError(t, err)
	require.Empty(t, notices)
	watch.Cancel()
	require.NoError(t, fdbmodel.Wipe(ctx, db, "one"))
	report, err := audit.Check(ctx, two, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Equal(t, int64(len(ids)), report.Futures)
}

// TestFewFuturesManyWorkers lets 200 workers fight for ten futures.
func TestFewFuturesManyWorkers(t *testing.T) {
	t.Parallel()
	const futures, workers = 10, 200
	ctx := context.Background()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "few", fdbmodel.Options{Config: layout.Config{Shards: 16}})
	require.NoError(t, err)
	subs := make([]fdbmodel.Submission, futures)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
	}
	_, err = c.Submit(ctx, subs)
	require.NoError(t, err)
	var realized atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 3}})
			if err != nil {
				errs[i] = err
				return
			}
			for realized.Load() < futures && errs[i] == nil {
				answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 3}, Max: 3})
				errs[i] = err
				for n := range answer.Futures {
					outcomes, err := w.Finish(ctx, []fdbmodel.Completion{{Future: &answer.Futures[n], Result: &layout.Result{}}})
					errs[i] = errors.Join(errs[i], err)
					// It is applied already if the commit before had an unknown result.
					if err == nil && (outcomes[0] == fdbmodel.Applied || outcomes[0] == fdbmodel.Already) {
						realized.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, int64(futures), realized.Load())
	report, err := audit.Check(ctx, c, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}
